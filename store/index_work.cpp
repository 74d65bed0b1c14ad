// SPDX-License-Identifier: Apache-2.0
#include "store/index.hpp"

#include <tuple>

// Jobs, pins and leases: the second half of Index.

namespace modeld::store {
namespace {

JobRecord read_job(const Query& query) {
  JobRecord job;
  job.id = query.text(0);
  job.kind = query.text(1);
  job.state = job_state_from_slug(query.text(2)).value_or(JobState::failed);
  job.phase = query.text(3);
  job.request = query.text(4);
  job.result = query.text(5);
  job.error = query.text(6);
  job.done = query.size(7);
  job.total = query.size(8);
  job.uid = static_cast<std::uint32_t>(query.integer(9));
  job.created = query.integer(10);
  job.updated = query.integer(11);
  return job;
}

Result<std::vector<JobRecord>> read_jobs(Query query) {
  std::vector<JobRecord> jobs;
  for (;;) {
    MODELD_ASSIGN(const bool row, query.step());
    if (!row) return jobs;
    jobs.push_back(read_job(query));
  }
}

Result<std::vector<std::string>> read_texts(Query& query) {
  std::vector<std::string> texts;
  for (;;) {
    MODELD_ASSIGN(const bool row, query.step());
    if (!row) return texts;
    texts.push_back(query.text(0));
  }
}

} // namespace

Result<void> Index::put_job(const JobRecord& job) {
  return db_
      .query("INSERT INTO jobs (id, kind, state, phase, request, result, error, done, total, uid, "
             "created, updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO "
             "UPDATE SET kind = excluded.kind, state = excluded.state, phase = excluded.phase, "
             "request = excluded.request, result = excluded.result, error = excluded.error, "
             "done = excluded.done, total = excluded.total, uid = excluded.uid, "
             "created = excluded.created, updated = excluded.updated")
      .bind(job.id, job.kind, slug(job.state), job.phase, job.request, job.result, job.error,
            job.done, job.total, job.uid, job.created, job.updated)
      .run();
}

Result<std::optional<JobRecord>> Index::find_job(std::string_view id) {
  auto query = db_.query("SELECT id, kind, state, phase, request, result, error, done, total, uid, "
                         "created, updated FROM jobs WHERE id = ?");
  query.bind(id);
  MODELD_ASSIGN(const bool row, query.step());
  if (!row) return std::nullopt;
  return read_job(query);
}

Result<std::vector<JobRecord>> Index::list_jobs() {
  return read_jobs(db_.query("SELECT id, kind, state, phase, request, result, error, done, total, "
                             "uid, created, updated FROM jobs ORDER BY created DESC, id DESC"));
}

Result<std::vector<JobRecord>> Index::unfinished_jobs() {
  return read_jobs(db_.query("SELECT id, kind, state, phase, request, result, error, done, total, "
                             "uid, created, updated FROM jobs "
                             "WHERE state IN ('queued', 'running') ORDER BY created, id"));
}

Result<void> Index::delete_job(std::string_view id) {
  return db_.query("DELETE FROM jobs WHERE id = ?").bind(id).run();
}

Result<void> Index::keep_for_job(std::string_view job, const Sha256Digest& digest) {
  return db_
      .query("INSERT OR IGNORE INTO job_blobs (job, digest) SELECT id, ?2 FROM jobs WHERE id = ?1")
      .bind(job, digest)
      .run();
}

Result<std::vector<std::pair<std::string, Sha256Digest>>> Index::list_job_blobs() {
  auto query = db_.query("SELECT b.job, b.digest FROM job_blobs b JOIN jobs j ON j.id = b.job "
                         "WHERE j.state IN ('queued', 'running') ORDER BY b.job, b.digest");
  std::vector<std::pair<std::string, Sha256Digest>> rows;
  for (;;) {
    MODELD_ASSIGN(const bool row, query.step());
    if (!row) return rows;
    rows.emplace_back(query.text(0), query.digest<Sha256Digest>(1));
  }
}

Result<void> Index::put_pin(const Pin& pin) {
  MODELD_TRY(db_.query("INSERT INTO pins (name, repo, commit_id, uid, created) "
                       "VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
                       "repo = excluded.repo, commit_id = excluded.commit_id, uid = excluded.uid, "
                       "created = excluded.created")
                 .bind(pin.name, pin.repo.text, pin.commit, pin.uid, pin.created)
                 .run());
  MODELD_TRY(db_.query("DELETE FROM pin_recipes WHERE name = ?").bind(pin.name).run());
  for (const std::string& recipe : pin.recipes) {
    MODELD_TRY(db_.query("INSERT INTO pin_recipes (name, recipe) VALUES (?, ?)")
                   .bind(pin.name, recipe)
                   .run());
  }
  return {};
}

Result<std::optional<Pin>> Index::find_pin(std::string_view name) {
  auto query = db_.query("SELECT name, repo, commit_id, uid, created FROM pins WHERE name = ?");
  query.bind(name);
  MODELD_ASSIGN(const bool row, query.step());
  if (!row) return std::nullopt;
  Pin pin{query.text(0),
          RepoId{query.text(1)},
          query.digest<GitOid>(2),
          {},
          static_cast<std::uint32_t>(query.integer(3)),
          query.integer(4)};
  auto recipes = db_.query("SELECT recipe FROM pin_recipes WHERE name = ? ORDER BY recipe");
  recipes.bind(name);
  MODELD_ASSIGN(pin.recipes, read_texts(recipes));
  return pin;
}

Result<std::vector<Pin>> Index::list_pins() {
  auto query = db_.query("SELECT name FROM pins ORDER BY name");
  MODELD_ASSIGN(const auto names, read_texts(query));
  std::vector<Pin> pins;
  for (const std::string& name : names) {
    MODELD_ASSIGN(auto pin, find_pin(name));
    if (pin) pins.push_back(std::move(*pin));
  }
  return pins;
}

Result<std::vector<std::string>> Index::pins_of(const RepoId& repo, const GitOid& commit) {
  auto query = db_.query("SELECT name FROM pins WHERE repo = ? AND commit_id = ? ORDER BY name");
  query.bind(repo.text, commit);
  return read_texts(query);
}

Result<void> Index::delete_pin(std::string_view name) {
  return db_.query("DELETE FROM pins WHERE name = ?").bind(name).run();
}

Result<void> Index::put_link(const LinkRecord& link) {
  MODELD_TRY(db_.query("INSERT INTO links (id, target, root, repo, commit_id, uid, created, "
                       "standing) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
                       "target = excluded.target, root = excluded.root, repo = excluded.repo, "
                       "commit_id = excluded.commit_id, uid = excluded.uid, "
                       "created = excluded.created, standing = excluded.standing")
                 .bind(link.id, link.target, link.root, link.repo.text, link.commit, link.uid,
                       link.created, link.standing)
                 .run());
  MODELD_TRY(db_.query("DELETE FROM link_files WHERE id = ?").bind(link.id).run());
  for (const LinkedFile& file : link.files) {
    if (!file.blob) continue;
    MODELD_TRY(db_.query("INSERT INTO link_files (id, path, digest, form) VALUES (?, ?, ?, ?)")
                   .bind(link.id, file.path, *file.blob, slug(file.form))
                   .run());
  }
  return {};
}

Result<std::vector<LinkRecord>> Index::list_links() {
  auto query =
      db_.query("SELECT id, target, root, repo, commit_id, uid, created, standing FROM links "
                "ORDER BY target, root, repo, commit_id, id");
  std::vector<LinkRecord> links;
  for (;;) {
    MODELD_ASSIGN(const bool row, query.step());
    if (!row) break;
    links.push_back({query.text(0),
                     query.text(1),
                     query.text(2),
                     RepoId{query.text(3)},
                     query.digest<GitOid>(4),
                     static_cast<std::uint32_t>(query.integer(5)),
                     query.integer(6),
                     query.integer(7) != 0,
                     {}});
  }
  for (LinkRecord& link : links) {
    auto files = db_.query("SELECT path, digest, form FROM link_files WHERE id = ? ORDER BY path");
    files.bind(link.id);
    for (;;) {
      MODELD_ASSIGN(const bool row, files.step());
      if (!row) break;
      const auto form = link_form_from_slug(files.text(2));
      link.files.push_back({files.text(0), form.value_or(LinkForm::copy),
                            files.digest<Sha256Digest>(1), files.digest<Sha256Digest>(1)});
    }
  }
  return links;
}

Result<void> Index::delete_link(std::string_view id) {
  return db_.query("DELETE FROM links WHERE id = ?").bind(id).run();
}

Result<std::vector<std::pair<std::string, Sha256Digest>>> Index::list_link_blobs() {
  auto query = db_.query("SELECT DISTINCT l.target || ' ' || l.root, f.digest FROM link_files f "
                         "JOIN links l ON l.id = f.id WHERE l.standing = 0 ORDER BY 1, 2");
  std::vector<std::pair<std::string, Sha256Digest>> rows;
  for (;;) {
    MODELD_ASSIGN(const bool row, query.step());
    if (!row) return rows;
    rows.emplace_back(query.text(0), query.digest<Sha256Digest>(1));
  }
}

Result<void> Index::put_lease(const LeaseRow& row) {
  const LeaseHolder& holder = row.lease.holder;
  return db_
      .query("INSERT INTO leases (id, digest, pid, start_ticks, boot_id, deadline, uid, created, "
             "note) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .bind(row.lease.id, row.lease.blob, holder.pid, holder.start_ticks, row.boot_id,
            holder.deadline, row.lease.uid, row.lease.created, row.lease.note)
      .run();
}

Result<std::vector<LeaseRow>> Index::list_leases() {
  auto query = db_.query("SELECT id, digest, pid, start_ticks, boot_id, deadline, uid, created, "
                         "note FROM leases ORDER BY created, id");
  std::vector<LeaseRow> rows;
  for (;;) {
    MODELD_ASSIGN(const bool found, query.step());
    if (!found) return rows;
    LeaseRow row;
    row.lease.id = query.text(0);
    row.lease.blob = query.digest<Sha256Digest>(1);
    row.lease.holder.pid = static_cast<std::int32_t>(query.integer(2));
    row.lease.holder.kind =
        row.lease.holder.pid != 0 ? LeaseHolder::Kind::process : LeaseHolder::Kind::deadline;
    row.lease.holder.start_ticks = query.size(3);
    row.boot_id = query.text(4);
    row.lease.holder.deadline = query.integer(5);
    row.lease.uid = static_cast<std::uint32_t>(query.integer(6));
    row.lease.created = query.integer(7);
    row.lease.note = query.text(8);
    rows.push_back(std::move(row));
  }
}

Result<bool> Index::delete_lease(std::string_view id) {
  MODELD_TRY(db_.query("DELETE FROM leases WHERE id = ?").bind(id).run());
  return db_.changes() > 0;
}

} // namespace modeld::store
