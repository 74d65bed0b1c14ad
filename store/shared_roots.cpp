// SPDX-License-Identifier: Apache-2.0
#include "store/shared_roots.hpp"

#include "store/layout.hpp"
#include "store/manifests.hpp"
#include "store/state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace modeld::store {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t k_max_marker = 4096;

} // namespace

Result<std::unique_ptr<SharedRoots>> SharedRoots::open(const std::vector<fs::path>& roots) {
  auto shared = std::make_unique<SharedRoots>();
  for (const fs::path& path : roots) {
    const auto missing = [&path](std::string_view why) {
      return fail(Errc::not_found,
                  fmt::format("opening the shared store '{}': {}", path.string(), why),
                  "mount the file system of the shared store; store.shared_roots lists what is "
                  "looked into");
    };
    auto disk = Disk::open(path);
    if (!disk) return missing(disk.error().message);
    const auto marker = disk->read_text(layout::k_marker, k_max_marker);
    if (!marker || !marker->starts_with("modeld.store ")) {
      return missing(fmt::format("it has no {}", layout::k_marker));
    }
    shared->roots_.push_back({std::move(*disk), *marker});
  }
  return shared;
}

bool SharedRoots::is_there(const Root& root) const {
  // By path, not by the kept descriptor: that would still see what an unmounted disk had.
  std::error_code ec;
  if (!fs::exists(root.disk.root() / layout::k_marker, ec)) return false;
  const auto marker = root.disk.read_text(layout::k_marker, k_max_marker);
  return marker && *marker == root.id;
}

template <class Look>
auto SharedRoots::first(Look look) const -> decltype(look(std::declval<const Root&>())) {
  for (const Root& root : roots_) {
    if (!is_there(root)) continue;
    if (auto found = look(root)) return found;
  }
  return std::nullopt;
}

std::optional<RepoRow> SharedRoots::find_repo(const RepoId& repo) const {
  return first([&repo](const Root& root) -> std::optional<RepoRow> {
    const auto text = root.disk.read_text(layout::repo_manifest(repo), k_max_manifest);
    auto row = text ? RepoRow::from_json(*text) : fail(text.error());
    if (!row || row->repo != repo) return std::nullopt;
    return std::move(*row);
  });
}

std::optional<Ref> SharedRoots::find_ref(const RepoId& repo, std::string_view revision) const {
  const auto row = find_repo(repo);
  if (!row) return std::nullopt;
  for (const Ref& ref : row->refs) {
    if (ref.revision == revision) return ref;
  }
  return std::nullopt;
}

bool SharedRoots::has_blob(const Root& root, const Sha256Digest& digest, std::uint64_t size) {
  const auto found = root.disk.size_of(layout::blob(digest));
  return found && *found == size;
}

std::optional<Snapshot> SharedRoots::read_snapshot(const Root& root,
                                                   const std::string& path) const {
  const auto text = root.disk.read_text(path, k_max_manifest);
  auto snapshot = text ? Snapshot::from_json(*text) : fail(text.error());
  if (!snapshot || layout::snapshot_manifest(snapshot->repo, snapshot->commit) != path) {
    return std::nullopt;
  }
  const bool whole = std::all_of(
      snapshot->files.begin(), snapshot->files.end(),
      [&root](const SnapshotFile& file) { return has_blob(root, file.sha256, file.size); });
  if (!whole) return std::nullopt;
  return std::move(*snapshot);
}

std::optional<Snapshot> SharedRoots::find_snapshot(const RepoId& repo, const GitOid& commit) const {
  return first([&](const Root& root) {
    return read_snapshot(root, layout::snapshot_manifest(repo, commit));
  });
}

std::vector<Variant> SharedRoots::variants_of(const Root& root) const {
  const std::int64_t mtime = mtime_ns_of(root.disk, layout::k_variants);
  const std::lock_guard lock(mutex_);
  Variants& known = variants_[root.disk.root().string()];
  if (known.mtime_ns == mtime && mtime != 0) return known.all;
  known = {mtime, {}};
  const auto paths = list_manifests(root.disk, layout::k_variants, 0);
  for (const std::string& path : paths ? *paths : std::vector<std::string>{}) {
    const auto text = root.disk.read_text(path, k_max_manifest);
    auto variant = text ? Variant::from_json(*text) : fail(text.error());
    if (variant && layout::variant_manifest(variant->key) == path &&
        has_blob(root, variant->result, variant->size)) {
      known.all.push_back(std::move(*variant));
    }
  }
  return known.all;
}

std::optional<Variant> SharedRoots::find_variant(const Sha256Digest& key) const {
  return first([&](const Root& root) -> std::optional<Variant> {
    for (Variant& variant : variants_of(root)) {
      if (variant.key == key) return std::move(variant);
    }
    return std::nullopt;
  });
}

std::optional<Variant> SharedRoots::find_variant(const RepoId& repo, const GitOid& commit,
                                                 std::string_view recipe,
                                                 std::string_view converter) const {
  return first([&](const Root& root) -> std::optional<Variant> {
    for (Variant& variant : variants_of(root)) {
      if (variant.repo == repo && variant.commit == commit && variant.recipe == recipe &&
          variant.converter == converter) {
        return std::move(variant);
      }
    }
    return std::nullopt;
  });
}

std::vector<SnapshotInfo> SharedRoots::list_snapshots() const {
  std::vector<SnapshotInfo> all;
  for (const Root& root : roots_) {
    if (!is_there(root)) continue;
    const auto paths = list_manifests(root.disk, layout::k_snapshots, 2);
    for (const std::string& path : paths ? *paths : std::vector<std::string>{}) {
      if (path.ends_with("/repo.json")) continue;
      const auto snapshot = read_snapshot(root, path);
      if (!snapshot) continue;
      all.push_back({snapshot->repo, snapshot->commit, snapshot->files.size(), snapshot->bytes(),
                     time_of(root.disk, path), 0, false});
    }
  }
  return all;
}

std::vector<Variant> SharedRoots::list_variants() const {
  std::vector<Variant> all;
  for (const Root& root : roots_) {
    if (!is_there(root)) continue;
    auto variants = variants_of(root);
    all.insert(all.end(), std::make_move_iterator(variants.begin()),
               std::make_move_iterator(variants.end()));
  }
  return all;
}

std::vector<Ref> SharedRoots::list_refs() const {
  std::vector<Ref> all;
  for (const Root& root : roots_) {
    if (!is_there(root)) continue;
    const auto paths = list_manifests(root.disk, layout::k_snapshots, 2);
    for (const std::string& path : paths ? *paths : std::vector<std::string>{}) {
      if (!path.ends_with("/repo.json")) continue;
      const auto text = root.disk.read_text(path, k_max_manifest);
      const auto row = text ? RepoRow::from_json(*text) : fail(text.error());
      if (row) all.insert(all.end(), row->refs.begin(), row->refs.end());
    }
  }
  return all;
}

std::optional<SharedRoots::Place> SharedRoots::find_blob(const Sha256Digest& digest) const {
  return first([&digest](const Root& root) -> std::optional<Place> {
    const auto size = root.disk.size_of(layout::blob(digest));
    if (!size) return std::nullopt;
    return Place{root.disk.root() / layout::blob(digest), *size};
  });
}

std::optional<fs::path> SharedRoots::find_path(const std::string& relative) const {
  return first([&relative](const Root& root) -> std::optional<fs::path> {
    std::error_code ec;
    const auto path = root.disk.root() / relative;
    return fs::exists(path, ec) ? std::optional(path) : std::nullopt;
  });
}

Result<void> bring_in(Store& store, const std::vector<Sha256Digest>& digests) {
  Store::State& s = store.internals();
  if (s.shared->empty()) return {};
  for (const Sha256Digest& digest : digests) {
    {
      auto index = s.reader.lock();
      MODELD_ASSIGN(const auto row, index->find_blob(digest));
      if (row) continue;
    }
    const auto place = s.shared->find_blob(digest);
    if (!place) continue;
    Expected expected;
    expected.size = place->size;
    expected.sha256 = digest;
    expected.what = place->path.string();
    MODELD_ASSIGN(expected.space, store.reserve_space(place->size));
    MODELD_TRY(store.ingest_file(place->path, std::move(expected)));
  }
  return {};
}

} // namespace modeld::store
