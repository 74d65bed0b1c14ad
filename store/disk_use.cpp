// SPDX-License-Identifier: Apache-2.0
#include "store/disk_use.hpp"

#include "store/layout.hpp"
#include "store/state.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <set>
#include <string_view>

namespace modeld::store {
namespace {

constexpr std::uint64_t k_block = 512; // of st_blocks, whatever the file system's is

class Measure {
public:
  explicit Measure(Store::State& state) : state_(state) {}

  Result<DiskUse> run() {
    MODELD_TRY(read_names());
    add(".", use_.records);
    MODELD_TRY(folder("", &use_.records));
    return use_;
  }

private:
  Result<void> read_names() {
    auto index = state_.reader.lock();
    MODELD_ASSIGN(const auto snapshots, index->list_snapshot_blobs());
    for (const Index::SnapshotBlobs& snapshot : snapshots) {
      listed_.insert(snapshot.blobs.begin(), snapshot.blobs.end());
    }
    MODELD_ASSIGN(const auto variants, index->list_variants());
    for (const Variant& variant : variants) {
      built_.insert(variant.result);
    }
    return {};
  }

  std::uint64_t& place_of(const std::string& path, std::uint64_t& above) {
    if (path == layout::k_tmp) return use_.unfinished;
    if (path == layout::k_quarantine) return use_.quarantine;
    if (path == layout::k_reserve) return use_.reserve;
    if (!path.starts_with(layout::k_blobs)) return above;
    const auto digest = Sha256Digest::parse(std::string_view(path).substr(path.rfind('/') + 1));
    if (!digest) return above;
    if (listed_.contains(*digest)) return use_.listed;
    return built_.contains(*digest) ? use_.built : use_.unnamed;
  }

  /// A file with several names counts where it is met first; blobs/ comes before views/.
  void add(const std::string& path, std::uint64_t& to) {
    struct stat info {};
    if (fstatat(state_.disk.fd(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return; // gone
    if (info.st_nlink > 1 && !S_ISDIR(info.st_mode) &&
        !seen_.emplace(info.st_dev, info.st_ino).second) {
      return;
    }
    to += static_cast<std::uint64_t>(info.st_blocks) * k_block;
  }

  Result<void> folder(const std::string& path, std::uint64_t* above) {
    const auto entries = state_.disk.list(path.empty() ? "." : path);
    if (!entries) { // removed meanwhile
      return entries.error().code == Errc::not_found ? Result<void>() : fail(entries.error());
    }
    for (const FolderEntry& entry : *entries) {
      const std::string at = path.empty() ? entry.name : path + '/' + entry.name;
      std::uint64_t& place = place_of(at, *above);
      add(at, entry.folder ? *above : place); // a folder that holds nothing is no such thing
      if (entry.folder) MODELD_TRY(folder(at, &place));
    }
    return {};
  }

  Store::State& state_;
  DiskUse use_;
  std::set<Sha256Digest> listed_;
  std::set<Sha256Digest> built_;
  std::set<std::pair<dev_t, ino_t>> seen_;
};

} // namespace

std::uint64_t DiskUse::total() const {
  return listed + built + unnamed + unfinished + quarantine + reserve + records;
}

Result<DiskUse> measure_disk_use(Store& store) {
  return Measure(store.internals()).run();
}

} // namespace modeld::store
