// SPDX-License-Identifier: Apache-2.0
#include "daemon/link_work.hpp"

#include "daemon/catalog.hpp"
#include "daemon/link_subject.hpp"
#include "daemon/log.hpp"
#include "daemon/pull_work.hpp"
#include "daemon/request_body.hpp"
#include "daemon/variant_work.hpp"
#include "schema/json.hpp"
#include "store/quarantine.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>

namespace modeld::daemon {
namespace {

using boost::json::array;
using boost::json::object;
using store::ShowSubject;
using store::ShowTarget;

// Folders of other programs are changed by one job at a time, of which a process has one set: what
// one job hides must not come back by another that had looked before.
std::mutex& one_at_a_time() {
  static std::mutex mutex;
  return mutex;
}

// Something changed since the last round of bringing links up to date began.
std::atomic<bool>& out_of_date() {
  static std::atomic<bool> flag{false};
  return flag;
}

tl::unexpected<Error> not_one_of(std::string_view member, std::string_view found,
                                 std::string_view allowed) {
  return fail(
      Errc::invalid_argument,
      fmt::format("reading the request: '{}' is '{}', allowed are {}", member, found, allowed));
}

// What could not be shown, and why: the rest is.
struct Skipped {
  std::string ref;
  Error error;
};

struct Shown {
  std::vector<store::ShowReport> reports;
  std::vector<Skipped> skipped;
};

object answer_of(const Shown& shown) {
  array links;
  for (const store::ShowReport& report : shown.reports) {
    object link = link_json(report.link);
    link["form"] = slug(report.choice.form);
    link["why"] = report.choice.why;
    array already;
    for (const std::string& path : report.already_there) {
      already.emplace_back(path);
    }
    link["already_there"] = std::move(already);
    link["partial"] = report.missing.any;
    link["absent"] = report.missing.files;
    link["absent_bytes"] = report.missing.bytes;
    links.push_back(std::move(link));
  }
  array skipped;
  for (const Skipped& one : shown.skipped) {
    skipped.push_back(object{{"ref", one.ref}, {"error", api::error_to_json(one.error)}});
  }
  return {{"views", std::move(links)}, {"skipped", std::move(skipped)}};
}

Result<store::ShowReport> show_one(Services& services, Job& job, ShowTarget target,
                                   ShowSubject subject, const store::ShowOptions& options) {
  if (target == ShowTarget::ollama) MODELD_TRY(add_facts(services, job, subject));
  return store::show(services.store, target, subject, options);
}

// What a ref means, pulled and built where it is not here yet.
Result<ShowSubject> subject_of(Services& services, Job& job, const ModelRef& ref) {
  const Peer peer{job.uid(), 0, 0};
  const auto look = [&]() -> Result<std::optional<ShowSubject>> {
    MODELD_ASSIGN(const auto place, find_place(services.store, ref));
    if (!place) return std::optional<ShowSubject>{};
    MODELD_ASSIGN(const bool allowed, may_read(services.store, place->repo, peer));
    if (!allowed) return std::optional<ShowSubject>{};
    if (!ref.selector.empty()) return selected_subject(services.store, *place, ref.selector);
    MODELD_ASSIGN(auto subject, whole_subject(services.store, *place));
    const bool empty = subject.snapshot.files.empty() && subject.variants.empty();
    return empty ? std::nullopt : std::optional(std::move(subject));
  };
  MODELD_ASSIGN(auto here, look());
  if (here) return *std::move(here);
  JobRequest request = ref.selector.empty()
                           ? pull_request(ref, {PullFor::itself}, {}, job.uid(), job.token())
                           : variant_request(ref, {}, job.uid(), job.token());
  request.by_client = false;
  MODELD_ASSIGN(const auto child, services.jobs.submit(std::move(request)));
  MODELD_TRY(services.jobs.follow(job, child));
  MODELD_ASSIGN(here, look());
  if (here) return *std::move(here);
  return fail(Errc::not_found, fmt::format("showing '{}': there is nothing of it here", ref.str()));
}

// Whether a record shows exactly what there is to show, so that nothing needs to be done.
bool shows_all(const store::LinkRecord& record, const ShowSubject& subject, ShowTarget target) {
  if (record.standing && target == ShowTarget::huggingface) {
    const auto refs = std::count_if(record.files.begin(), record.files.end(), [](const auto& file) {
      return file.path.find("/refs/") != std::string::npos;
    });
    if (static_cast<std::size_t>(refs) != subject.revisions.size()) return false;
  }
  std::set<Sha256Digest> shown;
  for (const store::LinkedFile& file : record.files) {
    if (file.blob) shown.insert(*file.blob);
  }
  std::set<Sha256Digest> wanted;
  const bool everything = target == ShowTarget::huggingface || target == ShowTarget::folder;
  for (const SnapshotFile& file : subject.snapshot.files) {
    if (everything || file.path.ends_with(".gguf")) wanted.insert(file.sha256);
  }
  for (const store::Variant& variant : subject.variants) {
    if (everything || variant.file_name.ends_with(".gguf")) wanted.insert(variant.result);
  }
  return shown == wanted;
}

Result<void> show_all(Services& services, Job& job, const store::StandingLink& standing,
                      Shown& shown) {
  store::ShowOptions options;
  options.root = standing.root;
  options.form = standing.form;
  options.allow_copy = standing.allow_copy;
  options.allow_symlink = standing.allow_symlink;
  options.uid = standing.uid;
  options.standing = true;
  options.replace = true;
  MODELD_ASSIGN(const auto places, places_of(services.store, {standing.uid, 0, 0}));
  MODELD_ASSIGN(const auto records, store::list_links(services.store));
  for (const Place& place : places) {
    if (job.cancelled()) return fail(Errc::cancelled, "showing models: cancelled");
    auto subject = whole_subject(services.store, place);
    const std::string ref = fmt::format("{}@{}", place.repo.text, place.commit.hex());
    if (!subject) {
      shown.skipped.push_back({ref, std::move(subject).error()});
      continue;
    }
    const bool done = std::any_of(records.begin(), records.end(), [&](const auto& record) {
      return record.target == slug(standing.target) && record.root == standing.root &&
             record.repo == place.repo && record.commit == place.commit &&
             shows_all(record, *subject, standing.target);
    });
    if (done) continue;
    auto report = show_one(services, job, standing.target, *std::move(subject), options);
    if (report) {
      shown.reports.push_back(*std::move(report));
    } else if (report.error().code == Errc::cancelled) {
      return fail(std::move(report).error());
    } else {
      shown.skipped.push_back({ref, std::move(report).error()});
    }
  }
  return {};
}

// Of what was linked by hand, what is not here any more: the rest of it stays.
Result<void> refresh(Services& services, Job& job, const store::LinkRecord& record) {
  MODELD_ASSIGN(const auto here, store::blobs_of(services.store, record.repo, record.commit));
  std::set<Sha256Digest> left;
  bool gone = false;
  store::ShowOptions options;
  for (const store::LinkedFile& file : record.files) {
    if (!file.blob) continue;
    options.form = file.form;
    if (here.contains(*file.blob)) {
      left.insert(*file.blob);
    } else {
      gone = true;
    }
  }
  if (!gone) return {};
  const auto target = store::show_target_from_slug(record.target);
  if (left.empty() || !target) {
    MODELD_TRY(store::hide(services.store, record.id));
    return {};
  }
  MODELD_ASSIGN(auto subject, whole_subject(services.store, {record.repo, record.commit}));
  std::erase_if(subject.snapshot.files,
                [&](const SnapshotFile& file) { return !left.contains(file.sha256); });
  std::erase_if(subject.variants,
                [&](const store::Variant& variant) { return !left.contains(variant.result); });
  options.root = record.root;
  options.uid = record.uid;
  options.standing = record.standing;
  options.replace = true;
  MODELD_TRY(show_one(services, job, *target, std::move(subject), options));
  return {};
}

// Nothing of the store's own may be shown into the store, nor the store into itself.
Result<void> check_root(const store::Store& store, const std::filesystem::path& root) {
  std::error_code ec;
  const auto inside = std::filesystem::weakly_canonical(root, ec);
  const auto own = std::filesystem::weakly_canonical(store.root(), ec);
  const auto at = std::mismatch(own.begin(), own.end(), inside.begin(), inside.end());
  if (at.first != own.end()) return {};
  return fail(Errc::invalid_argument,
              fmt::format("showing a model in '{}': that is inside of the store '{}'",
                          root.string(), own.string()),
              "the store has plain paths under views/ already; modelctl show prints them");
}

} // namespace

Result<LinkRequest> LinkRequest::from_json(const object& body, std::uint32_t uid) {
  LinkRequest request;
  MODELD_ASSIGN(const bool all, optional_flag(body, "all"));
  MODELD_ASSIGN(const auto ref, optional_text(body, "ref"));
  if (all == ref.has_value()) {
    return fail(Errc::invalid_argument, "reading the request: it must have one of 'ref' and 'all'");
  }
  if (ref) {
    MODELD_TRY(ModelRef::parse(*ref));
    request.ref = *ref;
  }
  MODELD_ASSIGN(const auto target, required_text(body, "target"));
  const auto known = store::show_target_from_slug(target);
  if (!known) {
    return not_one_of("target", target,
                      "huggingface, ollama, lmstudio, llamacpp, models-dir and folder");
  }
  request.target = *known;
  MODELD_ASSIGN(const auto root, required_text(body, "root"));
  request.options.root = std::filesystem::path(root).lexically_normal();
  if (!request.options.root.has_filename()) {
    request.options.root = request.options.root.parent_path();
  }
  if (!request.options.root.is_absolute()) {
    return not_one_of("root", root, "absolute paths");
  }
  MODELD_ASSIGN(const auto form, optional_text(body, "form"));
  if (form) {
    request.options.form = store::link_form_from_slug(*form);
    if (!request.options.form || *request.options.form == store::LinkForm::written) {
      return not_one_of("form", *form, "reflink, hardlink, symlink and copy");
    }
  }
  MODELD_ASSIGN(request.options.allow_copy, optional_flag(body, "allow_copy"));
  MODELD_ASSIGN(const bool no_symlinks, optional_flag(body, "no_symlinks"));
  request.options.allow_symlink = !no_symlinks;
  MODELD_ASSIGN(const auto reader, optional_number(body, "reader"));
  if (reader && *reader > UINT32_MAX)
    return not_one_of("reader", fmt::to_string(*reader), "user ids");
  if (reader) request.options.reader_uid = static_cast<std::uint32_t>(*reader);
  request.options.uid = uid;
  MODELD_ASSIGN(request.plan, optional_flag(body, "plan"));
  if (request.plan && all) {
    return fail(Errc::invalid_argument, "reading the request: 'plan' goes with a 'ref' only");
  }
  return request;
}

object link_json(const store::LinkRecord& link) {
  array files;
  for (const store::LinkedFile& file : link.files) {
    files.push_back(object{{"path", file.path},
                           {"form", slug(file.form)},
                           {"blob", file.blob ? file.blob->hex() : std::string()}});
  }
  array names;
  for (std::string& name : store::shown_names(link)) {
    names.emplace_back(std::move(name));
  }
  return {{"id", link.id},
          {"target", link.target},
          {"root", link.root},
          {"repo", link.repo.text},
          {"commit", link.commit.hex()},
          {"uid", link.uid},
          {"created", link.created},
          {"standing", link.standing},
          {"names", std::move(names)},
          {"files", std::move(files)}};
}

object standing_json(const store::StandingLink& link) {
  return {{"id", link.id},
          {"target", slug(link.target)},
          {"root", link.root},
          {"uid", link.uid},
          {"created", link.created}};
}

namespace {

// What the caller may make with their own rights; nothing is written, and nothing is kept for it.
Result<object> plan_answer(Services& services, Job& job, const LinkRequest& request,
                           ShowSubject subject) {
  if (request.target == ShowTarget::ollama) MODELD_TRY(add_facts(services, job, subject));
  MODELD_ASSIGN(const auto plan, store::plan_show(request.target, subject));
  const auto missing = store::not_shown(request.target, subject);
  array files;
  for (const store::ShownFile& file : plan) {
    files.push_back(object{
        {"path", (request.options.root / file.path).string()},
        {"source", file.blob ? services.store.blob_path(*file.blob).string() : std::string()},
        {"text", file.text},
        {"target", file.target}});
  }
  return object{{"plan", std::move(files)},
                {"repo", subject.snapshot.repo.text},
                {"commit", subject.snapshot.commit.hex()},
                {"partial", missing.any},
                {"absent", missing.files},
                {"absent_bytes", missing.bytes}};
}

} // namespace

Result<object> run_link(Services& services, Job& job) {
  MODELD_ASSIGN(LinkRequest request, LinkRequest::from_json(job.detail(), job.uid()));
  MODELD_TRY(check_root(services.store, request.options.root));
  job.begin_phase("linking");
  Shown shown;
  if (request.ref.empty()) {
    const std::lock_guard alone(one_at_a_time());
    MODELD_TRY(store::check_place(services.store, request.options)); // before it is promised
    store::StandingLink standing;
    standing.target = request.target;
    standing.root = request.options.root.string();
    standing.form = request.options.form;
    standing.allow_copy = request.options.allow_copy;
    standing.allow_symlink = request.options.allow_symlink;
    standing.uid = job.uid();
    MODELD_ASSIGN(standing, store::put_standing(services.store, std::move(standing)));
    MODELD_TRY(show_all(services, job, standing, shown));
    return answer_of(shown);
  }
  MODELD_ASSIGN(const auto ref, ModelRef::parse(request.ref));
  if (!request.plan) { // before anything is downloaded for it
    const std::lock_guard alone(one_at_a_time());
    if (auto place = store::check_place(services.store, request.options); !place) {
      return fail(std::move(place).error().context(fmt::format("linking '{}'", request.ref)));
    }
  }
  MODELD_ASSIGN(auto subject, subject_of(services, job, ref));
  job.begin_phase("linking");
  if (request.plan) return plan_answer(services, job, request, std::move(subject));
  const std::lock_guard alone(one_at_a_time());
  auto report = show_one(services, job, request.target, std::move(subject), request.options);
  if (!report) {
    return fail(std::move(report).error().context(fmt::format("linking '{}'", request.ref)));
  }
  shown.reports.push_back(*std::move(report));
  return answer_of(shown);
}

Result<object> run_unlink(Services& services, Job& job) {
  MODELD_ASSIGN(const auto id, json_string(job.detail(), "id"));
  job.begin_phase("unlinking");
  const std::lock_guard alone(one_at_a_time());
  array removed;
  array left;
  MODELD_ASSIGN(const auto standing, store::list_standing(services.store));
  MODELD_ASSIGN(const auto links, store::list_links(services.store));
  const auto all = std::find_if(standing.begin(), standing.end(),
                                [&id](const store::StandingLink& link) { return link.id == id; });
  if (all != standing.end()) {
    MODELD_TRY(store::delete_standing(services.store, id));
    removed.emplace_back(id);
  }
  bool found = all != standing.end();
  for (const store::LinkRecord& link : links) {
    const bool of_all = all != standing.end() && link.standing &&
                        link.target == slug(all->target) && link.root == all->root;
    if (link.id != id && !of_all) continue;
    found = true;
    MODELD_ASSIGN(const auto kept, store::hide(services.store, link.id));
    removed.emplace_back(fmt::format("{} {}@{}", link.target, link.repo.text, link.commit.hex()));
    for (const std::string& path : kept) {
      left.emplace_back(path);
    }
  }
  if (!found) return fail(Errc::not_found, fmt::format("hiding link '{}': no such link", id));
  return object{{"removed", std::move(removed)}, {"left", std::move(left)}};
}

namespace {

Result<Shown> sync_once(Services& services, Job& job) {
  const std::lock_guard alone(one_at_a_time());
  out_of_date() = false;
  MODELD_TRY(store::mend_links(services.store));
  MODELD_ASSIGN(const auto records, store::list_links(services.store));
  for (const store::LinkRecord& record : records) {
    if (auto done = refresh(services, job, record); !done) {
      if (done.error().code == Errc::cancelled) return fail(std::move(done).error());
      log_warning("bringing '{}' up to date: {}", record.root, done.error().message);
    }
  }
  MODELD_ASSIGN(const auto standing, store::list_standing(services.store));
  Shown shown;
  for (const store::StandingLink& link : standing) {
    MODELD_TRY(show_all(services, job, link, shown));
  }
  for (const Skipped& one : shown.skipped) {
    // Most models have no GGUF file for a program that wants one.
    if (one.error.code != Errc::not_found) {
      log_warning("showing '{}': {}", one.ref, one.error.message);
    }
  }
  return shown;
}

} // namespace

Result<object> run_link_sync(Services& services, Job& job) {
  job.begin_phase("linking");
  while (true) {
    MODELD_ASSIGN(const Shown shown, sync_once(services, job));
    if (!out_of_date() || job.cancelled()) return answer_of(shown);
  }
}

void sync_links_later(Services& services) {
  out_of_date() = true; // a round that runs already goes on with another one
  const auto links = store::list_links(services.store);
  const auto standing = store::list_standing(services.store);
  if (links && standing && links->empty() && standing->empty()) return;
  JobRequest request;
  request.kind = "sync";
  request.ref = "links";
  request.key = "sync";
  request.by_client = false;
  if (auto job = services.jobs.submit(std::move(request)); !job) {
    log_warning("bringing links up to date: {}", job.error().message);
  }
}

} // namespace modeld::daemon
