// SPDX-License-Identifier: Apache-2.0
#include "store/fsck_run.hpp"
#include "store/layout.hpp"
#include "store/quarantine.hpp"
#include "store/salvage.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

// Blobs whose bytes are not where they belong.

namespace modeld::store {
namespace {

/// Not there for certain; what cannot be looked at may well be there.
bool is_gone(const Disk& disk, const std::string& path) {
  struct stat info {};
  return fstatat(disk.fd(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

/// A few of those who need a blob say enough.
std::string needed_by(const DamagedBlob& damaged) {
  constexpr std::size_t k_named = 3;
  std::vector<std::string> all = damaged.snapshots;
  for (const Sha256Digest& key : damaged.variants) {
    all.push_back("variant " + key.hex());
  }
  const std::size_t more = all.size() - std::min(all.size(), k_named);
  all.resize(all.size() - more);
  return fmt::format("{}{}", fmt::join(all, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

} // namespace

Result<void> FsckRun::reload_row(const Sha256Digest& digest) {
  auto index = state_.writer.lock();
  MODELD_ASSIGN(const auto row, index->find_blob(digest));
  if (row) rows_.insert_or_assign(digest, *row);
  return {};
}

Result<void> FsckRun::check_lost_blob(const BlobRow& row) {
  const Sha256Digest& digest = row.info.sha256;
  const std::string path = layout::blob(digest);
  if (row.damaged || !is_gone(state_.disk, path)) return {};
  bool named = false;
  {
    auto index = state_.writer.lock();
    MODELD_ASSIGN(const auto again, index->find_blob(digest));
    if (!again) return {}; // collected meanwhile
    MODELD_ASSIGN(named, index->is_named(digest));
  }
  if (!named) {
    found("FS-02", path, "no such file, and nothing names it", "row removed",
          [&]() -> Result<void> {
            MODELD_TRY(change_rows([&](Index& index) { return index.delete_blob(digest); }));
            rows_.erase(digest);
            return {};
          });
    return {};
  }
  MODELD_ASSIGN(const auto other, find_other_name(store_, digest, row.info.size));
  if (other) {
    found("FS-01", path,
          fmt::format("lost, and something needs it; its bytes live on as '{}'", other->string()),
          "put back from there", [&]() -> Result<void> {
            MODELD_TRY(put_back(store_, digest, *other));
            return reload_row(digest);
          });
    return {};
  }
  found("FS-01", path, "lost, and something needs it", "marked as damaged",
        move_out(digest, "it is gone"));
  return {};
}

/// After everything that may have found out about damage just now.
Result<void> FsckRun::check_damaged() {
  MODELD_ASSIGN(const auto all, list_damaged(store_));
  for (const DamagedBlob& damaged : all) {
    const auto row = rows_.find(damaged.digest);
    if (row == rows_.end()) continue;
    row->second.damaged = true;
    const std::string path = layout::blob(damaged.digest);
    MODELD_ASSIGN(const auto other, find_other_name(store_, damaged.digest, row->second.info.size));
    if (other) {
      found("FS-35", path,
            fmt::format("damaged or lost; its bytes live on as '{}'", other->string()),
            "put back from there", [&]() -> Result<void> {
              MODELD_TRY(put_back(store_, damaged.digest, *other));
              return reload_row(damaged.digest);
            });
      continue;
    }
    const std::string who = needed_by(damaged);
    if (!who.empty()) {
      found("FS-35", path, "damaged or lost; needed by " + who,
            "modelctl repair fetches or builds it again");
      continue;
    }
    bool named = false;
    {
      auto index = state_.writer.lock();
      MODELD_ASSIGN(named, index->is_named(damaged.digest));
    }
    if (named) {
      found("FS-35", path, "damaged or lost; a link, a lease or a job names it",
            "modelctl unlink ends a link");
      continue;
    }
    found("FS-35", path, "damaged or lost, and nothing names it", "row removed",
          [&]() -> Result<void> {
            MODELD_TRY(
                change_rows([&](Index& index) { return index.delete_blob(damaged.digest); }));
            rows_.erase(damaged.digest);
            return {};
          });
  }
  return {};
}

} // namespace modeld::store
