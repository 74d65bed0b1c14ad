// SPDX-License-Identifier: Apache-2.0
#include "store/fsck_run.hpp"
#include "store/layout.hpp"
#include "store/manifests.hpp"
#include "store/quarantine.hpp"
#include "store/rebuild.hpp"
#include "validate/sha256.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

namespace modeld::store {

Result<void> FsckRun::check_blobs() {
  const auto folders = entries(layout::k_blobs);
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
    if (leads_to_folder(state_.disk, path, folder)) {
      MODELD_TRY(check_blob_folder(path));
    } else {
      found("FS-08", path, "not a folder of blobs", "moved to quarantine/",
            [&] { return set_aside(path); });
    }
  }
  for (const auto& [digest, row] : std::map(rows_)) {
    MODELD_TRY(check_lost_blob(row));
  }
  return check_damaged();
}

Result<void> FsckRun::check_blob_folder(const std::string& folder) {
  check_writable(folder);
  for (const FolderEntry& file : entries(folder)) {
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
  const bool ours = info.st_uid == geteuid() || geteuid() == 0;
  if (ours && (info.st_mode & 07777) != state_.options.blob_mode) {
    found(
        "FS-06", path,
        fmt::format("mode {:04o}, expected {:04o}", info.st_mode & 07777, state_.options.blob_mode),
        "mode set", [&] { return state_.disk.set_mode(path, state_.options.blob_mode); });
  }
  if (faccessat(state_.disk.fd(), path.c_str(), R_OK, AT_EACCESS) != 0) {
    const std::string cause =
        fmt::format("user {} cannot read it: mode {:04o}, it belongs to user {}", geteuid(),
                    info.st_mode & 07777, info.st_uid);
    found("FS-36", path, cause, "moved to quarantine/", move_out(digest, cause));
    return {};
  }
  return check_content(row->second, path);
}

/// Nothing serves it from then on, until its bytes are found or fetched again.
FsckRun::Fix FsckRun::move_out(const Sha256Digest& digest, const std::string& cause) {
  return [this, digest, cause]() -> Result<void> {
    MODELD_TRY(quarantine_locked(store_, digest, cause));
    rows_.at(digest).damaged = true;
    return {};
  };
}

Result<void> FsckRun::check_content(const BlobRow& row, const std::string& path) {
  const Sha256Digest digest = row.info.sha256;
  MODELD_ASSIGN(const auto size, state_.disk.size_of(path));
  if (size != row.info.size || row.damaged) return check_doubtful(row, path, size);
  const std::int64_t time = mtime_ns_of(state_.disk, path);
  if (time == row.mtime_ns && !options_.deep) return {};
  const auto hash = hash_file(state_.disk, path, 0, progress_);
  if (!hash && hash.error().code == Errc::cancelled) return fail(hash.error());
  if (!hash) {
    found("FS-36", path, hash.error().message, "moved to quarantine/",
          move_out(digest, hash.error().message));
  } else if (*hash != digest) {
    const std::string cause = "its SHA-256 is " + hash->hex();
    found("FS-05", path, cause, "moved to quarantine/", move_out(digest, cause));
  } else if (time != row.mtime_ns) {
    found("FS-07", path, "its time changed, its bytes are right", "time noted",
          [&] { return correct_row(digest); });
  } else if (row.info.git_oid) {
    MODELD_ASSIGN(const auto right, read_blob_row(state_.disk, digest));
    if (right.info.git_oid == row.info.git_oid) return {};
    found("FS-07", path,
          fmt::format("the index says its git id is {}, it is {}", row.info.git_oid->hex(),
                      right.info.git_oid ? right.info.git_oid->hex() : "not kept"),
          "row corrected", [&] { return correct_row(digest); });
  }
  return {};
}

/// What the index says of the blob cannot be; its name decides who is right.
Result<void> FsckRun::check_doubtful(const BlobRow& row, const std::string& path,
                                     std::uint64_t size) {
  const Sha256Digest digest = row.info.sha256;
  const auto hash = hash_file(state_.disk, path, 0, nullptr);
  if (hash && *hash == digest) {
    found("FS-07", path,
          row.damaged ? std::string("marked as damaged, its bytes are right")
                      : fmt::format("the index says {} bytes, it has {}, and they are right",
                                    row.info.size, size),
          "row corrected", [&] { return correct_row(digest); });
    return {};
  }
  if (row.damaged) {
    found("FS-05", path, "damaged, and not in quarantine", "moved to quarantine/",
          move_out(digest, "damaged"));
    return {};
  }
  const std::string cause = fmt::format("it has {} bytes, expected {}", size, row.info.size);
  found("FS-04", path, cause, "moved to quarantine/", move_out(digest, cause));
  return {};
}

Result<void> FsckRun::correct_row(const Sha256Digest& digest) {
  MODELD_ASSIGN(const auto row, read_blob_row(state_.disk, digest));
  const auto changed = change_rows([&](Index& index) -> Result<void> {
    MODELD_TRY(index.put_blob(row));
    return index.set_damaged(digest, false);
  });
  MODELD_TRY(changed);
  rows_.insert_or_assign(digest, row);
  return {};
}

/// A file that an ingest placed just before a crash, or that somebody put there.
Result<void> FsckRun::adopt_blob(const Sha256Digest& digest, const std::string& path) {
  const auto hash = hash_file(state_.disk, path, 0, nullptr);
  if (!hash || *hash != digest) {
    found(hash ? "FS-05" : "FS-36", path,
          hash ? "no row, and its SHA-256 is " + hash->hex() : hash.error().message,
          "moved to quarantine/", [&] { return set_aside(path); });
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

bool FsckRun::has_blob(const Sha256Digest& digest) const {
  const auto at = rows_.find(digest);
  return at != rows_.end() && !at->second.damaged && state_.disk.size_of(layout::blob(digest));
}

} // namespace modeld::store
