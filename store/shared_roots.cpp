// SPDX-License-Identifier: Apache-2.0
#include "store/shared_roots.hpp"

#include "store/layout.hpp"
#include "store/state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace modeld::store {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t k_max_marker = 4096;

Result<std::shared_ptr<const SharedRoot>> open_root(const fs::path& path, SharedRoot::Looks looks) {
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
  return std::make_shared<const SharedRoot>(std::move(*disk), *marker, std::move(looks));
}

} // namespace

/// One thread's look at a root; without a root where it is not there, or somebody hangs in it.
class SharedRoots::Visit {
public:
  Visit(Entry& entry, std::chrono::milliseconds patience) : turn_(entry.turn, std::defer_lock) {
    if (!take_turn(entry, patience)) return;
    if (!entry.root->is_there()) {
      // Mounted again it is another folder to the kernel: what we hold open leads nowhere.
      auto again = open_root(entry.path, entry.looks);
      if (!again || (*again)->marker() != entry.root->marker()) return;
      entry.root = *std::move(again);
    }
    root_ = entry.root;
  }

  const SharedRoot* root() const { return root_.get(); }

private:
  bool take_turn(Entry& entry, std::chrono::milliseconds patience) {
    if (entry.hangs && !turn_.try_lock()) return false;
    while (!turn_.owns_lock()) {
      const std::uint64_t before = entry.looks->load();
      if (turn_.try_lock_for(patience)) break;
      if (before != entry.looks->load()) continue; // slow, but getting on
      entry.hangs = true;
      return false;
    }
    entry.hangs = false;
    return true;
  }

  std::unique_lock<std::timed_mutex> turn_;
  std::shared_ptr<const SharedRoot> root_;
};

Result<std::unique_ptr<SharedRoots>> SharedRoots::open(const std::vector<fs::path>& roots,
                                                       std::chrono::milliseconds patience) {
  auto shared = std::make_unique<SharedRoots>();
  shared->patience_ = patience;
  for (const fs::path& path : roots) {
    auto entry = std::make_unique<Entry>();
    MODELD_ASSIGN(entry->root, open_root(path, entry->looks));
    entry->path = path;
    shared->roots_.push_back(std::move(entry));
  }
  return shared;
}

template <class Look>
auto SharedRoots::first(Look look) const -> decltype(look(std::declval<const SharedRoot&>())) {
  for (const auto& entry : roots_) {
    const Visit visit(*entry, patience_);
    if (visit.root() == nullptr) continue;
    if (auto found = look(*visit.root())) return found;
  }
  return std::nullopt;
}

template <class List>
auto SharedRoots::each(List list) const -> decltype(list(std::declval<const SharedRoot&>())) {
  decltype(list(std::declval<const SharedRoot&>())) all;
  for (const auto& entry : roots_) {
    const Visit visit(*entry, patience_);
    if (visit.root() == nullptr) continue;
    auto some = list(*visit.root());
    all.insert(all.end(), std::make_move_iterator(some.begin()),
               std::make_move_iterator(some.end()));
  }
  return all;
}

std::optional<RepoRow> SharedRoots::find_repo(const RepoId& repo) const {
  return first([&repo](const SharedRoot& root) { return root.find_repo(repo); });
}

std::optional<Ref> SharedRoots::find_ref(const RepoId& repo, std::string_view revision) const {
  const auto row = find_repo(repo);
  if (!row) return std::nullopt;
  for (const Ref& ref : row->refs) {
    if (ref.revision == revision) return ref;
  }
  return std::nullopt;
}

std::optional<Snapshot> SharedRoots::find_snapshot(const RepoId& repo, const GitOid& commit) const {
  return first([&](const SharedRoot& root) { return root.find_snapshot(repo, commit); });
}

std::optional<Variant> SharedRoots::find_variant(const Sha256Digest& key) const {
  return first([&](const SharedRoot& root) -> std::optional<Variant> {
    for (Variant& variant : root.list_variants()) {
      if (variant.key == key) return std::move(variant);
    }
    return std::nullopt;
  });
}

std::optional<Variant> SharedRoots::find_variant(const RepoId& repo, const GitOid& commit,
                                                 std::string_view recipe,
                                                 std::string_view converter) const {
  return first([&](const SharedRoot& root) -> std::optional<Variant> {
    for (Variant& variant : root.list_variants()) {
      if (variant.repo == repo && variant.commit == commit && variant.recipe == recipe &&
          variant.converter == converter) {
        return std::move(variant);
      }
    }
    return std::nullopt;
  });
}

std::vector<SnapshotInfo> SharedRoots::list_snapshots() const {
  return each([](const SharedRoot& root) { return root.list_snapshots(); });
}

std::vector<Variant> SharedRoots::list_variants() const {
  return each([](const SharedRoot& root) { return root.list_variants(); });
}

std::vector<Ref> SharedRoots::list_refs() const {
  std::vector<Ref> all;
  for (const RepoRow& row : each([](const SharedRoot& root) { return root.list_repos(); })) {
    all.insert(all.end(), row.refs.begin(), row.refs.end());
  }
  return all;
}

std::optional<SharedRoots::Place> SharedRoots::find_blob(const Sha256Digest& digest) const {
  return first([&digest](const SharedRoot& root) -> std::optional<Place> {
    const auto size = root.disk().size_of(layout::blob(digest));
    if (!size) return std::nullopt;
    return Place{root.disk().root() / layout::blob(digest), *size};
  });
}

std::optional<fs::path> SharedRoots::find_path(const std::string& relative) const {
  return first([&relative](const SharedRoot& root) -> std::optional<fs::path> {
    std::error_code ec;
    const auto path = root.disk().root() / relative;
    return fs::exists(path, ec) ? std::optional(path) : std::nullopt;
  });
}

std::vector<SharedStatus> SharedRoots::status() const {
  std::vector<SharedStatus> all;
  for (const auto& entry : roots_) {
    const Visit visit(*entry, patience_);
    const auto* root = visit.root();
    all.push_back(
        {entry->path, root != nullptr, root == nullptr ? 0 : root->list_snapshots().size()});
  }
  return all;
}

std::vector<SharedStatus> Store::shared_status() const {
  return state_->shared->status();
}

Result<void> bring_in(Store& store, const std::vector<Sha256Digest>& digests,
                      std::optional<std::uint32_t> payer) {
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
    MODELD_ASSIGN(expected.space, store.reserve_space(place->size, payer));
    MODELD_TRY(store.ingest_file(place->path, std::move(expected)));
  }
  return {};
}

} // namespace modeld::store
