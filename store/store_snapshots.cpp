// SPDX-License-Identifier: Apache-2.0
#include "store/folder_files.hpp"
#include "store/layout.hpp"
#include "store/plain_view.hpp"
#include "store/state.hpp"
#include "store/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace modeld::store {
namespace {

constexpr std::uint32_t k_manifest_mode = 0644;

/// A FileSet that keeps its blobs from collection.
class HeldFiles final : public FileSet {
public:
  HeldFiles(std::unique_ptr<FileSet> files, BlobHold hold)
      : files_(std::move(files)), hold_(std::move(hold)) {}

  std::string_view name() const override { return files_->name(); }
  const std::vector<Entry>& entries() const override { return files_->entries(); }
  Result<std::span<const std::byte>> bytes(std::string_view path) const override {
    return files_->bytes(path);
  }
  void trim() const override { files_->trim(); }

private:
  std::unique_ptr<FileSet> files_;
  BlobHold hold_;
};

std::string full_name(const RepoId& repo, const GitOid& commit) {
  return repo.text + '@' + commit.hex();
}

Result<void> check_files(const Snapshot& snapshot) {
  std::string_view before;
  const auto listing = snapshot.listing();
  for (const ListedFile& file : listing) {
    if (auto ok = check_repo_path(file.path); !ok) {
      return fail(std::move(ok).error().context("publishing a snapshot"));
    }
    const bool inside = !before.empty() && file.path.starts_with(std::string(before) + '/');
    if (file.path <= before || inside) {
      return fail(
          Errc::malformed,
          fmt::format("publishing '{}': paths '{}' and '{}' are not in order, or one is the "
                      "folder of the other",
                      full_name(snapshot.repo, snapshot.commit), before, file.path));
    }
    before = file.path;
  }
  return {};
}

Result<void> check_blobs(Index& index, const Snapshot& snapshot) {
  for (const SnapshotFile& file : snapshot.files) {
    MODELD_ASSIGN(const auto row, index.find_blob(file.sha256));
    const std::string doing =
        fmt::format("publishing '{}': '{}'", full_name(snapshot.repo, snapshot.commit), file.path);
    if (!row || row->damaged) {
      return fail(Errc::not_found,
                  fmt::format("{}: blob {} is not here", doing, file.sha256.hex()));
    }
    if (row->info.size != file.size) {
      return fail(Errc::digest_mismatch,
                  fmt::format("{}: blob {} has {} bytes, listed are {}", doing, file.sha256.hex(),
                              row->info.size, file.size));
    }
  }
  return {};
}

Result<std::vector<Variant>> variants_of(Index& index, const RepoId& repo, const GitOid& commit) {
  MODELD_ASSIGN(const auto keys, index.list_variant_keys(repo, commit));
  std::vector<Variant> variants;
  for (const Sha256Digest& key : keys) {
    MODELD_ASSIGN(auto variant, index.find_variant(key));
    if (variant) variants.push_back(std::move(*variant));
  }
  return variants;
}

tl::unexpected<Error> no_such_snapshot(const RepoId& repo, const GitOid& commit) {
  return fail(Errc::not_found,
              fmt::format("looking for '{}': no such snapshot", full_name(repo, commit)),
              fmt::format("fetch it with modelctl pull {}", full_name(repo, commit)));
}

} // namespace

Result<void> Store::publish_snapshot(const Snapshot& given, std::optional<std::uint32_t> payer) {
  MODELD_TRY(check_files(given));
  State& s = *state_;
  const Changed changed(s);
  std::vector<Sha256Digest> digests;
  for (const SnapshotFile& file : given.files) {
    digests.push_back(file.sha256);
  }
  const BlobHold held = hold(digests);
  MODELD_TRY(bring_in(*this, digests, payer));
  const std::lock_guard manifests(s.manifests);
  std::vector<Variant> variants;
  std::optional<Snapshot> there;
  Snapshot snapshot = given;
  {
    auto index = s.writer.lock();
    MODELD_ASSIGN(there, index->find_snapshot(given.repo, given.commit));
    if (there) {
      auto both = there->merged_with(given);
      if (!both) {
        return fail(std::move(both).error().context(
            fmt::format("publishing '{}'", full_name(given.repo, given.commit))));
      }
      snapshot = *std::move(both);
    }
    MODELD_TRY(check_blobs(*index, snapshot));
    if (there == snapshot && plain_view_complete(s.disk, snapshot)) return {};
    MODELD_ASSIGN(variants, variants_of(*index, snapshot.repo, snapshot.commit));
  }
  const std::string manifest = layout::snapshot_manifest(snapshot.repo, snapshot.commit);
  MODELD_TRY(s.disk.make_folders(folder_of(manifest)));
  MODELD_TRY(s.disk.replace_file(manifest, snapshot.to_json(), k_manifest_mode));
  MODELD_TRY(build_plain_view(s.disk, snapshot, variants, s.temporary("view")));
  if (there == snapshot) return {}; // the view had to be mended only
  auto index = s.writer.lock();
  MODELD_ASSIGN(auto txn, index->begin());
  if (payer) {
    for (const SnapshotFile& file : snapshot.files) {
      MODELD_TRY(index->charge(file.sha256, *payer));
    }
  }
  if (there) {
    MODELD_TRY(index->extend_snapshot(snapshot));
  } else {
    MODELD_TRY(index->put_snapshot(snapshot, time_of(s.disk, manifest)));
  }
  return txn.commit();
}

Result<std::optional<Snapshot>> Store::find_snapshot(const RepoId& repo,
                                                     const GitOid& commit) const {
  {
    auto index = state_->reader.lock();
    MODELD_ASSIGN(const auto info, index->snapshot_info(repo, commit));
    if (info && info->damaged) {
      return fail(Errc::corrupt,
                  fmt::format("opening '{}': a blob of it is damaged", full_name(repo, commit)),
                  fmt::format("run modelctl repair {}", full_name(repo, commit)));
    }
    // Removed, or grown, between the looks of one statement and the next.
    for (auto known = info; known;) {
      MODELD_ASSIGN(auto snapshot, index->find_snapshot(repo, commit));
      MODELD_ASSIGN(const auto again, index->snapshot_info(repo, commit));
      const bool steady = again && known->files == again->files && known->absent == again->absent;
      if (snapshot && steady && snapshot->files.size() == again->files &&
          snapshot->absent.size() == again->absent) {
        return snapshot;
      }
      known = again;
    }
    if (info) return std::nullopt;
  }
  // Not under the lock: a shared disk may take its time.
  return state_->shared->find_snapshot(repo, commit);
}

Result<std::vector<SnapshotInfo>> Store::list_snapshots() const {
  std::vector<SnapshotInfo> all;
  {
    auto index = state_->reader.lock();
    MODELD_ASSIGN(all, index->list_snapshots());
  }
  const auto own = static_cast<std::ptrdiff_t>(all.size());
  const auto before = [](const SnapshotInfo& a, const SnapshotInfo& b) {
    return std::tie(a.repo, a.commit) < std::tie(b.repo, b.commit);
  };
  for (SnapshotInfo& info : state_->shared->list_snapshots()) {
    if (std::binary_search(all.begin(), all.begin() + own, info, before)) continue;
    all.push_back(std::move(info));
  }
  if (std::ssize(all) > own) std::sort(all.begin(), all.end(), before);
  return all;
}

Result<std::optional<SnapshotInfo>> Store::snapshot_info(const RepoId& repo,
                                                         const GitOid& commit) const {
  {
    auto index = state_->reader.lock();
    MODELD_ASSIGN(const auto own, index->snapshot_info(repo, commit));
    if (own) return own;
  }
  for (const SnapshotInfo& info : state_->shared->list_snapshots()) {
    if (info.repo == repo && info.commit == commit) return info;
  }
  return std::nullopt;
}

Result<void> Store::remove_snapshot(const RepoId& repo, const GitOid& commit) {
  State& s = *state_;
  const Changed changed(s);
  const std::lock_guard manifests(s.manifests);
  std::vector<Variant> variants;
  {
    auto index = s.writer.lock();
    MODELD_ASSIGN(const auto info, index->snapshot_info(repo, commit));
    if (!info) return no_such_snapshot(repo, commit);
    MODELD_ASSIGN(const auto pins, index->pins_of(repo, commit));
    if (!pins.empty()) {
      return fail(Errc::conflict,
                  fmt::format("removing '{}': pinned as '{}'", full_name(repo, commit),
                              fmt::join(pins, "', '")),
                  fmt::format("run modelctl unpin {}", pins.front()));
    }
    MODELD_ASSIGN(variants, variants_of(*index, repo, commit));
    MODELD_ASSIGN(auto txn, index->begin());
    MODELD_TRY(index->delete_snapshot(repo, commit));
    MODELD_TRY(txn.commit());
  }
  const std::string manifest = layout::snapshot_manifest(repo, commit);
  MODELD_TRY(s.disk.unlink(manifest));
  MODELD_TRY(s.disk.sync_folder(folder_of(manifest)));
  const std::string view = layout::view(repo, commit);
  if (variants.empty()) {
    MODELD_TRY(s.disk.remove_tree(view));
    remove_empty_folders(s.disk, folder_of(view), layout::k_views);
    return {};
  }
  // Variants outlive their snapshot: the folder keeps their links only.
  return build_plain_view(s.disk, Snapshot{repo, commit, {}}, variants, s.temporary("view"));
}

std::filesystem::path Store::snapshot_folder(const RepoId& repo, const GitOid& commit) const {
  const std::string view = layout::view(repo, commit);
  if (!state_->shared->empty() && !state_->disk.exists(layout::snapshot_manifest(repo, commit))) {
    if (const auto path = state_->shared->find_path(view)) return *path;
  }
  return root() / view;
}

Result<std::unique_ptr<FileSet>> Store::snapshot_files(const Snapshot& snapshot) {
  std::vector<FilePlace> places;
  std::vector<Sha256Digest> digests;
  for (const SnapshotFile& file : snapshot.files) {
    digests.push_back(file.sha256);
    places.push_back({file.path, blob_path(file.sha256), file.size});
  }
  auto held = hold(std::move(digests));
  MODELD_ASSIGN(const auto there, find_snapshot(snapshot.repo, snapshot.commit));
  if (!there) return no_such_snapshot(snapshot.repo, snapshot.commit);
  return std::make_unique<HeldFiles>(
      make_file_set(std::string(snapshot.repo.name()), std::move(places)), std::move(held));
}

Result<std::vector<GitOid>> Store::find_commits(const RepoId& repo, std::string_view prefix) const {
  auto index = state_->reader.lock();
  MODELD_ASSIGN(auto commits, index->list_commits(repo));
  std::erase_if(commits, [prefix](const GitOid& c) { return !c.hex().starts_with(prefix); });
  return commits;
}

// ---- what is known of a repository's name

namespace {

/// Changes a repository's record: file, then row. The caller holds State::manifests.
template <class Change>
Result<void> change_repo(Store::State& s, const RepoId& repo, Change change) {
  const Changed changed(s);
  RepoRow row{repo, repo, false, {}, {}};
  {
    auto index = s.reader.lock();
    MODELD_ASSIGN(const auto found, index->find_repo(repo));
    if (found) row = *found;
    const RepoRow before = row;
    change(row);
    if (found && row == before) return {};
  }
  const std::string manifest = layout::repo_manifest(repo);
  MODELD_TRY(s.disk.make_folders(folder_of(manifest)));
  MODELD_TRY(s.disk.replace_file(manifest, row.to_json(), k_manifest_mode));
  auto index = s.writer.lock();
  MODELD_ASSIGN(auto txn, index->begin());
  MODELD_TRY(index->put_repo(row));
  return txn.commit();
}

} // namespace

Result<void> Store::record_ref(const Ref& ref) {
  const std::lock_guard manifests(state_->manifests);
  return change_repo(*state_, ref.repo, [&ref](RepoRow& row) {
    row.canonical = ref.canonical;
    const auto at = std::lower_bound(
        row.refs.begin(), row.refs.end(), ref.revision,
        [](const Ref& r, const std::string& revision) { return r.revision < revision; });
    if (at != row.refs.end() && at->revision == ref.revision) {
      *at = ref;
    } else {
      row.refs.insert(at, ref);
    }
    for (Ref& other : row.refs) {
      other.canonical = ref.canonical;
    }
  });
}

Result<std::optional<Ref>> Store::find_ref(const RepoId& repo, std::string_view revision) const {
  {
    auto index = state_->reader.lock();
    MODELD_ASSIGN(auto ref, index->find_ref(repo, revision));
    if (ref) return ref;
  }
  return state_->shared->find_ref(repo, revision);
}

Result<std::vector<Ref>> Store::list_refs() const {
  std::vector<Ref> refs;
  {
    auto index = state_->reader.lock();
    MODELD_ASSIGN(refs, index->list_refs());
  }
  const auto own = static_cast<std::ptrdiff_t>(refs.size());
  const auto before = [](const Ref& a, const Ref& b) {
    return std::tie(a.repo, a.revision) < std::tie(b.repo, b.revision);
  };
  for (Ref& ref : state_->shared->list_refs()) {
    if (std::binary_search(refs.begin(), refs.begin() + own, ref, before)) continue;
    refs.push_back(std::move(ref));
  }
  return refs;
}

Result<void> Store::record_access(const RepoId& repo, bool gated,
                                  std::optional<std::uint32_t> uid) {
  const std::lock_guard manifests(state_->manifests);
  return change_repo(*state_, repo, [&](RepoRow& row) {
    row.gated = gated;
    if (!uid) return;
    const auto at = std::lower_bound(row.users.begin(), row.users.end(), *uid);
    if (at == row.users.end() || *at != *uid) row.users.insert(at, *uid);
  });
}

Result<bool> Store::may_read(const RepoId& repo, std::uint32_t uid) const {
  {
    auto index = state_->reader.lock();
    MODELD_ASSIGN(const bool allowed, index->may_read(repo, uid));
    if (!allowed || state_->shared->empty()) return allowed;
    MODELD_ASSIGN(const auto row, index->find_repo(repo));
    if (row) return allowed;
  }
  const auto row = state_->shared->find_repo(repo);
  return !row || !row->gated || std::binary_search(row->users.begin(), row->users.end(), uid);
}

Result<std::optional<std::vector<RepoId>>> Store::gated_repos() const {
  if (!state_->shared->empty()) return std::nullopt;
  auto index = state_->reader.lock();
  MODELD_ASSIGN(auto repos, index->list_gated_repos());
  return repos;
}

} // namespace modeld::store
