// SPDX-License-Identifier: Apache-2.0
#include "store/show.hpp"

#include "store/collect.hpp"
#include "store/layout.hpp"
#include "store/manifests.hpp"
#include "store/plain_view.hpp"
#include "store/quarantine.hpp"
#include "store/reach.hpp"
#include "store/show_files.hpp"
#include "store/state.hpp"

#include <fmt/format.h>

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

namespace modeld::store {
namespace {

namespace fs = std::filesystem;

Result<Disk> open_root(const ShowOptions& options, DiskWatcher* watcher) {
  if (!options.root.is_absolute()) {
    return fail(Errc::invalid_argument, fmt::format("showing a model in '{}': not an absolute path",
                                                    options.root.string()));
  }
  const fs::path there = existing_ancestor(options.root);
  if (there != options.root) {
    MODELD_ASSIGN(const auto above, Disk::open(there, watcher));
    MODELD_TRY(above.make_folders(options.root.lexically_relative(there).string()));
  }
  return Disk::open(options.root, watcher);
}

/// Folders that a failed call made for its root are removed again, as far as they are empty.
class MadeFolders {
public:
  MadeFolders(const fs::path& root, DiskWatcher* watcher)
      : root_(root), there_(existing_ancestor(root)), watcher_(watcher) {}
  ~MadeFolders() {
    for (fs::path at = root_; !kept_ && at != there_; at = at.parent_path()) {
      const auto above = Disk::open(at.parent_path(), watcher_);
      if (!above || !above->remove_folder(at.filename().string())) return;
    }
  }
  MadeFolders(const MadeFolders&) = delete;
  MadeFolders& operator=(const MadeFolders&) = delete;

  void keep() { kept_ = true; }

private:
  fs::path root_;
  fs::path there_;
  DiskWatcher* watcher_;
  bool kept_ = false;
};

bool lists(const LinkRecord& record, const std::string& path) {
  return std::any_of(record.files.begin(), record.files.end(),
                     [&path](const LinkedFile& file) { return file.path == path; });
}

/// One call of show().
class Showing {
public:
  Showing(Store& store, const Disk& root, LinkForm form, std::vector<LinkRecord> records)
      : files_(store, root), state_(store.internals()), root_(root), form_(form),
        records_(std::move(records)) {}

  /// Decides for each file before any is made.
  Result<void> look(const std::vector<ShownFile>& plan, ShowReport& report) {
    for (const ShownFile& file : plan) {
      MODELD_TRY(check_repo_path(file.path));
      const LinkedFile linked = files_.describe(file, form_);
      const Found found = files_.look_at(file);
      const bool ours = is_ours(linked.path);
      if (found == Found::other && !(ours && !file.text.empty())) {
        // What the program itself keeps there is its own, and newer or more than what we know.
        if (file.path.find("/refs/") != std::string::npos) {
          report.already_there.push_back(linked.path + " (with another commit)");
          continue;
        }
        if (file.path.find("/trees/") != std::string::npos) {
          report.already_there.push_back(linked.path);
          continue;
        }
        return fail(Errc::conflict,
                    fmt::format("showing '{}': another file is there that modeld did not make",
                                linked.path),
                    "move the other file away, or choose another folder");
      }
      if (found == Found::equal && !ours) {
        report.already_there.push_back(linked.path);
        continue;
      }
      report.link.files.push_back(linked);
      if (found != Found::equal) to_make_.push_back(file);
    }
    return {};
  }

  /// What will be copied has to fit, before the first byte of it.
  Result<void> check_space() const {
    if (form_ != LinkForm::copy) return {};
    std::uint64_t needed = 0;
    for (const ShownFile& file : to_make_) {
      if (!file.blob) continue;
      MODELD_ASSIGN(const auto size, state_.disk.size_of(layout::blob(*file.blob)));
      needed += size;
    }
    struct statvfs info {};
    if (fstatvfs(root_.fd(), &info) != 0) {
      return fail(from_errno(errno, fmt::format("looking at '{}'", root_.root().string())));
    }
    const std::uint64_t free = info.f_bavail * info.f_frsize;
    if (needed <= free) return {};
    return fail(Error{Errc::no_space,
                      fmt::format("copying a model to '{}': {} bytes needed, {} free",
                                  root_.root().string(), needed, free),
                      "leave out --copy: links use no space",
                      {{"needed", std::to_string(needed)}, {"free", std::to_string(free)}},
                      0});
  }

  Result<void> make() {
    for (const ShownFile& file : to_make_) {
      auto made = files_.make(file, form_);
      if (!made) {
        take_back();
        return made;
      }
      made_.push_back(file.path);
    }
    return {};
  }

  /// Files of the record as it was that do not belong to it any more, last made first.
  Result<void> drop_old(const LinkRecord& previous, const LinkRecord& now) {
    for (auto file = previous.files.rbegin(); file != previous.files.rend(); ++file) {
      const bool kept = lists(now, file->path) ||
                        std::any_of(records_.begin(), records_.end(), [&](const auto& other) {
                          return other.id != now.id && lists(other, file->path);
                        });
      if (!kept) MODELD_TRY(files_.remove(*file));
    }
    return {};
  }

  /// Removes what make() made in this call.
  void take_back() {
    for (auto path = made_.rbegin(); path != made_.rend(); ++path) {
      [[maybe_unused]] const auto ignored = root_.unlink(*path);
      remove_empty_folders(root_, folder_of(*path), ".");
    }
  }

private:
  bool is_ours(const std::string& path) const {
    return std::any_of(records_.begin(), records_.end(),
                       [&path](const LinkRecord& record) { return lists(record, path); });
  }

  ShownFiles files_;
  Store::State& state_;
  const Disk& root_;
  LinkForm form_;
  std::vector<LinkRecord> records_;
  std::vector<ShownFile> to_make_;
  std::vector<std::string> made_;
};

LinkRecord new_record(ShowTarget target, const ShowSubject& subject, const ShowOptions& options,
                      const std::vector<LinkRecord>& records) {
  LinkRecord record{random_id(),
                    std::string(slug(target)),
                    options.root.string(),
                    subject.snapshot.repo,
                    subject.snapshot.commit,
                    options.uid,
                    now(),
                    options.standing,
                    {}};
  for (const LinkRecord& known : records) {
    if (known.target == record.target && known.root == record.root && known.repo == record.repo &&
        known.commit == record.commit) {
      record.id = known.id;
      record.created = known.created;
      // Asked for by hand once, it keeps what it shows.
      record.standing = record.standing && known.standing;
    }
  }
  return record;
}

std::vector<Sha256Digest> blobs_of(const std::vector<ShownFile>& plan) {
  std::vector<Sha256Digest> digests;
  for (const ShownFile& file : plan) {
    if (file.blob) digests.push_back(*file.blob);
  }
  return digests;
}

Result<void> save(Store::State& s, const LinkRecord& record) {
  auto index = s.writer.lock();
  MODELD_ASSIGN(auto txn, index->begin());
  MODELD_TRY(index->put_link(record));
  return txn.commit();
}

Result<void> forget(Store::State& s, const LinkRecord& record) {
  {
    auto index = s.writer.lock();
    MODELD_ASSIGN(auto txn, index->begin());
    MODELD_TRY(index->delete_link(record.id));
    MODELD_TRY(txn.commit());
  }
  MODELD_TRY(s.disk.unlink(layout::link_manifest(record.id)));
  return s.disk.sync_folder(layout::k_links);
}

/// Every file that is shown now.
Result<void> check_files(const ShowReport& report, std::optional<std::uint32_t> reader) {
  if (!reader) return {};
  const Account account = account_of(*reader);
  for (const LinkedFile& file : report.link.files) {
    MODELD_TRY(check_reachable(file.path, account));
  }
  return {};
}

/// What was shown before stays part of the record, in front: it was made first.
void keep_old(const LinkRecord& previous, LinkRecord& record) {
  std::vector<LinkedFile> old;
  for (const LinkedFile& file : previous.files) {
    if (!lists(record, file.path)) old.push_back(file);
  }
  record.files.insert(record.files.begin(), old.begin(), old.end());
}

/// The record as it was before a call that failed.
Result<void> put_back(Store::State& s, const LinkRecord& record,
                      const std::optional<LinkRecord>& previous) {
  if (!previous) return forget(s, record);
  MODELD_TRY(s.disk.replace_file(layout::link_manifest(previous->id), previous->to_json(), 0644));
  return save(s, *previous);
}

} // namespace

Result<FormChoice> check_place(Store& store, const ShowOptions& options) {
  if (options.reader_uid) {
    MODELD_TRY(check_reachable(existing_ancestor(options.root), account_of(*options.reader_uid)));
  }
  return choose_form(store, options);
}

Result<ShowReport> show(Store& store, ShowTarget target, const ShowSubject& subject,
                        const ShowOptions& options) {
  Store::State& s = store.internals();
  MODELD_ASSIGN(const auto plan, plan_show(target, subject));
  const BlobHold held = store.hold(blobs_of(plan));
  MODELD_TRY(bring_in(store, blobs_of(plan)));
  for (const Sha256Digest& blob : blobs_of(plan)) {
    MODELD_TRY(check_before_use(store, blob));
  }
  ShowReport report;
  report.missing = not_shown(target, subject);
  MODELD_ASSIGN(report.choice, check_place(store, options)); // before anything is made
  MadeFolders made_folders(options.root, s.disk.watcher());
  MODELD_ASSIGN(const auto root, open_root(options, s.disk.watcher()));
  const std::lock_guard manifests(s.manifests);
  MODELD_ASSIGN(auto records, read_link_records(s.disk));
  report.link = new_record(target, subject, options, records);
  const auto before = std::find_if(records.begin(), records.end(), [&report](const auto& known) {
    return known.id == report.link.id;
  });
  const auto previous = before == records.end() ? std::nullopt : std::optional(*before);
  Showing showing(store, root, report.choice.form, std::move(records));
  MODELD_TRY(showing.look(plan, report));
  MODELD_TRY(showing.check_space());
  if (previous && !options.replace) keep_old(*previous, report.link);
  // The record comes first: after a crash it tells which files may be ours.
  MODELD_TRY(s.disk.make_folders(layout::k_links));
  MODELD_TRY(
      s.disk.replace_file(layout::link_manifest(report.link.id), report.link.to_json(), 0644));
  MODELD_TRY(save(s, report.link));
  if (auto made = showing.make(); !made) {
    [[maybe_unused]] const auto ignored = put_back(s, report.link, previous);
    return fail(std::move(made).error());
  }
  if (previous && options.replace) MODELD_TRY(showing.drop_old(*previous, report.link));
  if (auto reached = check_files(report, options.reader_uid); !reached) {
    showing.take_back();
    [[maybe_unused]] const auto ignored = put_back(s, report.link, previous);
    return fail(std::move(reached).error());
  }
  made_folders.keep();
  return report;
}

Result<std::vector<std::string>> hide(Store& store, std::string_view id) {
  Store::State& s = store.internals();
  const std::lock_guard manifests(s.manifests);
  MODELD_ASSIGN(const auto records, read_link_records(s.disk));
  const auto record = std::find_if(records.begin(), records.end(),
                                   [id](const LinkRecord& known) { return known.id == id; });
  if (record == records.end()) {
    return fail(Errc::not_found, fmt::format("hiding link '{}': no such link", id));
  }
  std::vector<std::string> left;
  auto root = Disk::open(record->root, s.disk.watcher());
  if (root) {
    const ShownFiles files(store, *root);
    for (auto file = record->files.rbegin(); file != record->files.rend(); ++file) {
      const bool shared = std::any_of(records.begin(), records.end(), [&](const LinkRecord& other) {
        return other.id != record->id && lists(other, file->path);
      });
      if (shared) continue;
      MODELD_ASSIGN(const bool gone, files.remove(*file));
      if (!gone) left.push_back(file->path);
    }
  } else if (root.error().code != Errc::not_found) {
    return fail(std::move(root).error());
  }
  MODELD_TRY(forget(s, *record));
  return left;
}

Result<std::vector<LinkRecord>> list_links(Store& store) {
  // Each record is replaced as a whole, so nobody has to wait for a long check to end.
  return read_link_records(store.internals().disk);
}

Result<std::size_t> mend_links(Store& store) {
  const std::lock_guard manifests(store.internals().manifests);
  MODELD_ASSIGN(const auto records, read_link_records(store.internals().disk));
  std::size_t mended = 0;
  for (const LinkRecord& record : records) {
    const auto root = Disk::open(record.root, store.internals().disk.watcher());
    if (!root) continue; // not mounted, or gone: nothing to put anything into
    const ShownFiles files(store, *root);
    for (const LinkedFile& file : record.files) {
      MODELD_ASSIGN(const bool made, files.mend(file));
      if (made) ++mended;
    }
  }
  return mended;
}

Result<std::vector<LinkProblem>> check_links(Store& store) {
  MODELD_ASSIGN(const auto records, list_links(store));
  std::vector<LinkProblem> problems;
  for (const LinkRecord& record : records) {
    auto root = Disk::open(record.root);
    for (const LinkedFile& file : record.files) {
      if (!root) {
        problems.push_back({record.id, file.path, root.error().message});
        continue;
      }
      const std::string wrong = ShownFiles(store, *root).problem(file);
      if (!wrong.empty()) problems.push_back({record.id, file.path, wrong});
    }
  }
  return problems;
}

} // namespace modeld::store
