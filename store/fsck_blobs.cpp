// SPDX-License-Identifier: Apache-2.0
#include "store/fsck_run.hpp"
#include "store/layout.hpp"
#include "store/quarantine.hpp"
#include "store/rebuild.hpp"
#include "validate/sha256.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <mutex>

namespace modeld::store {

Result<void> FsckRun::check_blobs() {
  MODELD_ASSIGN(const auto folders, state_.disk.list(layout::k_blobs));
  std::vector<BlobRow> rows;
  {
    auto index = state_.writer.lock();
    MODELD_ASSIGN(rows, index->list_blobs());
  }
  for (BlobRow& row : rows) {
    rows_.emplace(row.info.sha256, std::move(row));
  }
  report_.blobs = rows_.size();
  if (progress_ != nullptr && options_.deep) {
    for (const auto& [digest, row] : rows_) {
      progress_->total += row.info.size;
    }
  }
  for (const FolderEntry& folder : folders) {
    const std::string path = fmt::format("{}/{}", layout::k_blobs, folder.name);
    if (folder.folder) {
      MODELD_TRY(check_blob_folder(path));
    } else {
      found("FS-08", path, "not a folder of blobs", "moved to quarantine/",
            [&] { return set_aside(path); });
    }
  }
  for (const auto& [digest, row] : std::map(rows_)) {
    MODELD_TRY(check_lost(row));
  }
  return {};
}

Result<void> FsckRun::check_blob_folder(const std::string& folder) {
  MODELD_ASSIGN(const auto files, state_.disk.list(folder));
  for (const FolderEntry& file : files) {
    MODELD_TRY(check_cancel());
    const std::string path = folder + '/' + file.name;
    const auto digest = Sha256Digest::parse(file.name);
    if (!digest || layout::blob(*digest) != path) {
      found("FS-08", path, "not a blob's name", "moved to quarantine/",
            [&] { return set_aside(path); });
    } else {
      MODELD_TRY(check_blob_file(*digest, path));
    }
  }
  return {};
}

Result<void> FsckRun::check_blob_file(const Sha256Digest& digest, const std::string& path) {
  struct stat info {};
  if (fstatat(state_.disk.fd(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return {};
  if (!S_ISREG(info.st_mode)) {
    found("FS-09", path, "not a regular file", "moved to quarantine/",
          [&] { return set_aside(path); });
    return {};
  }
  const auto row = rows_.find(digest);
  if (row == rows_.end()) return adopt_blob(digest, path);
  if ((info.st_mode & 07777) != store_.internals().options.blob_mode) {
    found(
        "FS-06", path,
        fmt::format("mode {:04o}, expected {:04o}", info.st_mode & 07777, state_.options.blob_mode),
        "mode set", [&]() -> Result<void> {
          MODELD_ASSIGN(const auto file, state_.disk.open_read(path));
          return state_.disk.set_mode(file, path, state_.options.blob_mode);
        });
  }
  return check_content(row->second, path);
}

Result<void> FsckRun::check_content(const BlobRow& row, const std::string& path) {
  const Sha256Digest digest = row.info.sha256;
  const auto move_out = [&](const std::string& cause) {
    return [this, digest, cause]() -> Result<void> {
      MODELD_TRY(quarantine_locked(store_, digest, cause));
      rows_.at(digest).damaged = true;
      return {};
    };
  };
  MODELD_ASSIGN(const auto size, state_.disk.size_of(path));
  if (size != row.info.size) {
    const std::string cause = fmt::format("it has {} bytes, expected {}", size, row.info.size);
    found("FS-04", path, cause, "moved to quarantine/", move_out(cause));
    return {};
  }
  const std::int64_t time = mtime_ns_of(state_.disk, path);
  if (time == row.mtime_ns && !options_.deep) return {};
  MODELD_ASSIGN(const auto hash, hash_file(state_.disk, path, 0, progress_));
  if (hash != digest) {
    const std::string cause = "its SHA-256 is " + hash.hex();
    found("FS-05", path, cause, "moved to quarantine/", move_out(cause));
  } else if (time != row.mtime_ns) {
    found("FS-07", path, "its time changed, its bytes are right", "time noted", [&] {
      BlobRow& changed = rows_.at(digest);
      changed.mtime_ns = time;
      return change_rows([&](Index& index) { return index.put_blob(changed); });
    });
  }
  return {};
}

/// A file that an ingest placed just before a crash, or that somebody put there.
Result<void> FsckRun::adopt_blob(const Sha256Digest& digest, const std::string& path) {
  MODELD_ASSIGN(const auto hash, hash_file(state_.disk, path, 0, nullptr));
  if (hash != digest) {
    found("FS-05", path, "no row, and its SHA-256 is " + hash.hex(), "moved to quarantine/",
          [&] { return set_aside(path); });
    return {};
  }
  found("FS-03", path, "no row; its bytes are right", "row written", [&]() -> Result<void> {
    MODELD_ASSIGN(const auto row, read_blob_row(state_.disk, digest));
    MODELD_TRY(change_rows([&](Index& index) { return index.put_blob(row); }));
    rows_.emplace(digest, row);
    return {};
  });
  return {};
}

Result<void> FsckRun::check_lost(const BlobRow& row) {
  const std::string path = layout::blob(row.info.sha256);
  if (row.damaged || state_.disk.exists(path)) return {};
  bool named = false;
  {
    auto index = state_.writer.lock();
    MODELD_ASSIGN(const auto again, index->find_blob(row.info.sha256));
    if (!again) return {}; // collected meanwhile
    MODELD_ASSIGN(named, index->is_named(row.info.sha256));
  }
  if (!named) {
    found("FS-02", path, "a row without a file, which nothing names", "row removed", [&] {
      rows_.erase(row.info.sha256);
      return change_rows([&](Index& index) { return index.delete_blob(row.info.sha256); });
    });
    return {};
  }
  found("FS-01", path, "lost; something needs it", "marked: fetch it again with modelctl repair",
        [&]() -> Result<void> {
          MODELD_TRY(quarantine_locked(store_, row.info.sha256, "it is gone"));
          rows_.at(row.info.sha256).damaged = true;
          return {};
        });
  return {};
}

bool FsckRun::has_blob(const Sha256Digest& digest) const {
  const auto at = rows_.find(digest);
  return at != rows_.end() && !at->second.damaged && state_.disk.exists(layout::blob(digest));
}

} // namespace modeld::store
