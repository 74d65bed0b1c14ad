// SPDX-License-Identifier: Apache-2.0
#include "store/quarantine.hpp"

#include "store/collect.hpp"
#include "store/layout.hpp"
#include "store/plain_view.hpp"
#include "store/show_files.hpp"
#include "store/state.hpp"
#include "validate/sha256.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

namespace modeld::store {
namespace {

constexpr std::size_t k_read_size = 1U << 20;

/// Sleeps so that `done` bytes take at least as long as the limit allows, in steps short enough for
/// a cancel.
class Pace {
public:
  explicit Pace(std::uint64_t bytes_per_second) : limit_(bytes_per_second) {}

  void wait(std::uint64_t bytes, const Progress* progress) {
    if (limit_ == 0) return;
    done_ += bytes;
    const auto due =
        start_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                     static_cast<double>(done_) / static_cast<double>(limit_)));
    while (Clock::now() < due && (progress == nullptr || !progress->cancel)) {
      std::this_thread::sleep_until(std::min(due, Clock::now() + std::chrono::milliseconds(50)));
    }
  }

private:
  using Clock = std::chrono::steady_clock;
  std::uint64_t limit_;
  std::uint64_t done_ = 0;
  Clock::time_point start_ = Clock::now();
};

/// What the digest is part of, by the index.
Result<void> find_concerned(Index& index, DamagedBlob& damaged) {
  MODELD_ASSIGN(const auto files, index.files_of(damaged.digest));
  for (const auto& file : files) {
    damaged.snapshots.push_back(
        fmt::format("{}@{}: {}", file.repo.text, file.commit.hex(), file.path));
  }
  MODELD_ASSIGN(damaged.variants, index.variants_of(damaged.digest));
  return {};
}

Result<void> unlink_from_views(Store::State& s, const Sha256Digest& digest) {
  std::vector<std::string> paths;
  {
    auto index = s.writer.lock();
    MODELD_ASSIGN(const auto files, index->files_of(digest));
    for (const auto& file : files) {
      paths.push_back(layout::view(file.repo, file.commit) + '/' + file.path);
    }
    MODELD_ASSIGN(const auto keys, index->variants_of(digest));
    for (const Sha256Digest& key : keys) {
      MODELD_ASSIGN(const auto variant, index->find_variant(key));
      if (variant) {
        paths.push_back(layout::view(variant->repo, variant->commit) + '/' + variant->file_name);
      }
    }
  }
  for (const std::string& path : paths) {
    MODELD_TRY(s.disk.unlink(path));
  }
  return {};
}

/// Other programs' folders: nothing there may serve damage either. Copies there have bytes of their
/// own and stay.
Result<void> withdraw_links(Store& store, DamagedBlob& damaged) {
  const Disk& disk = store.internals().disk;
  MODELD_ASSIGN(const auto records, read_link_records(disk));
  for (const LinkRecord& record : records) {
    const auto root = Disk::open(record.root, disk.watcher());
    if (!root) continue;
    const ShownFiles files(store, *root);
    for (const LinkedFile& file : record.files) {
      if (file.blob != damaged.digest) continue;
      MODELD_ASSIGN(const bool gone, files.withdraw(file));
      if (gone) damaged.shown.push_back(file.path);
    }
  }
  return {};
}

std::string concerned(const DamagedBlob& damaged) {
  std::vector<std::string> all = damaged.snapshots;
  for (const Sha256Digest& key : damaged.variants) {
    all.push_back("variant " + key.hex());
  }
  for (const std::string& user : damaged.users) {
    all.push_back("in use: " + user);
  }
  for (const std::string& path : damaged.shown) {
    all.push_back("was shown as " + path);
  }
  return fmt::format("{}", fmt::join(all, "; "));
}

/// Nothing where the bytes are right (the row learns the new time); else why they are not.
Result<std::optional<std::string>> examine(Store& store, const BlobRow& row,
                                           std::uint64_t bytes_per_second, Progress* progress) {
  Store::State& s = store.internals();
  const std::string path = layout::blob(row.info.sha256);
  const auto size = s.disk.size_of(path);
  if (!size && size.error().code == Errc::not_found)
    return std::optional<std::string>("it is gone");
  MODELD_TRY(size);
  if (*size != row.info.size) {
    return std::optional(fmt::format("it has {} bytes, expected {}", *size, row.info.size));
  }
  const std::int64_t time = mtime_ns_of(s.disk, path);
  MODELD_ASSIGN(const auto found, hash_file(s.disk, path, bytes_per_second, progress));
  if (found != row.info.sha256) return std::optional("its SHA-256 is " + found.hex());
  if (time != row.mtime_ns) {
    BlobRow now_known = row;
    now_known.mtime_ns = time;
    auto index = s.writer.lock();
    MODELD_TRY(index->put_blob(now_known));
  }
  return std::nullopt;
}

Result<std::optional<BlobRow>> row_of(Store& store, const Sha256Digest& digest) {
  auto index = store.internals().reader.lock();
  return index->find_blob(digest);
}

} // namespace

Result<Sha256Digest> hash_file(const Disk& disk, const std::string& path,
                               std::uint64_t bytes_per_second, Progress* progress) {
  MODELD_ASSIGN(const auto file, disk.open_read(path));
  validate::Sha256 hash;
  Pace pace(bytes_per_second);
  std::vector<std::byte> part(k_read_size);
  for (std::uint64_t at = 0;;) {
    if (progress != nullptr && progress->cancel) {
      return fail(Errc::cancelled, fmt::format("reading '{}': cancelled", path));
    }
    const ssize_t n = pread(file.get(), part.data(), part.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(from_errno(errno, fmt::format("reading '{}'", path)));
    if (n == 0) break;
    const auto count = static_cast<std::size_t>(n);
    hash.update(std::span(part).first(count));
    // What only we needed should not push out what others read.
    posix_fadvise(file.get(), static_cast<off_t>(at), n, POSIX_FADV_DONTNEED);
    at += count;
    if (progress != nullptr) progress->done += count;
    pace.wait(count, progress);
  }
  return hash.finish();
}

std::optional<BlobStamp> stamp_of(Store& store, const Sha256Digest& digest) {
  const auto row = row_of(store, digest);
  if (!row || !*row || (*row)->damaged) return std::nullopt;
  return BlobStamp{(*row)->info.size, (*row)->mtime_ns};
}

bool has_stamp(Store& store, const Sha256Digest& digest, const BlobStamp& stamp) {
  const Disk& disk = store.internals().disk;
  struct stat info {};
  if (fstatat(disk.fd(), layout::blob(digest).c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return false;
  }
  return stamp == BlobStamp{static_cast<std::uint64_t>(info.st_size), nanoseconds(info.st_mtim)};
}

bool looks_unchanged(Store& store, const Sha256Digest& digest) {
  const auto row = row_of(store, digest);
  // In a shared store it is its owner who looks after it; here only that it is there.
  if (row && !*row) return store.internals().shared->find_blob(digest).has_value();
  if (!row || (*row)->damaged) return false;
  return has_stamp(store, digest, {(*row)->info.size, (*row)->mtime_ns});
}

Result<void> check_before_use(Store& store, const Sha256Digest& digest) {
  if (looks_unchanged(store, digest)) return {};
  MODELD_ASSIGN(const auto row, row_of(store, digest));
  if (!row) return fail(Errc::not_found, fmt::format("opening blob {}: not here", digest.hex()));
  std::optional<std::string> cause("it is in quarantine");
  if (!row->damaged) {
    MODELD_ASSIGN(cause, examine(store, *row, 0, nullptr));
    if (!cause) return {};
  }
  MODELD_ASSIGN(const auto damaged, quarantine(store, digest, *cause));
  return fail(
      Errc::corrupt,
      fmt::format("opening blob {}: {}; concerns {}", digest.hex(), *cause, concerned(damaged)),
      "somebody or a failing disk changed a stored file; run modelctl repair");
}

Result<DamagedBlob> quarantine(Store& store, const Sha256Digest& digest, std::string cause) {
  const std::lock_guard manifests(store.internals().manifests);
  return quarantine_locked(store, digest, std::move(cause));
}

Result<DamagedBlob> quarantine_locked(Store& store, const Sha256Digest& digest, std::string cause) {
  Store::State& s = store.internals();
  const Changed changed(s);
  DamagedBlob damaged{digest, std::move(cause), {}, {}, {}, {}};
  MODELD_ASSIGN(damaged.users, users_of(store, {digest}));
  const std::unique_lock placing(s.placing);
  {
    // The mark comes first: from here on nothing serves the blob.
    auto index = s.writer.lock();
    MODELD_ASSIGN(auto txn, index->begin());
    MODELD_TRY(index->set_damaged(digest, true));
    MODELD_TRY(find_concerned(*index, damaged));
    MODELD_TRY(txn.commit());
  }
  MODELD_TRY(unlink_from_views(s, digest));
  MODELD_TRY(withdraw_links(store, damaged));
  const std::string path = layout::blob(digest);
  if (!s.disk.exists(path)) return damaged;
  MODELD_TRY(s.disk.make_folders(layout::k_quarantine));
  MODELD_TRY(s.disk.rename(path, layout::quarantined(digest)));
  MODELD_TRY(s.disk.sync_folder(layout::blob_folder(digest)));
  return damaged;
}

Result<std::vector<BlobSource>> sources_of(Store& store, const Sha256Digest& digest) {
  auto index = store.internals().reader.lock();
  MODELD_ASSIGN(const auto rows, index->files_of(digest));
  std::vector<BlobSource> sources;
  for (const auto& row : rows) {
    MODELD_ASSIGN(const auto snapshot, index->find_snapshot(row.repo, row.commit));
    const auto* file = snapshot ? snapshot->find(row.path) : nullptr;
    if (file == nullptr) continue;
    // The listed id of a large file is that of its pointer; then the Hub knows it by its SHA-256.
    const std::string pointer =
        fmt::format("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n",
                    file->sha256.hex(), file->size);
    const bool large = validate::git_blob_id(std::as_bytes(std::span(pointer))) == file->git_oid;
    sources.push_back({row.repo,
                       row.commit,
                       {file->path, file->size, file->git_oid,
                        large ? std::optional(file->sha256) : std::nullopt}});
  }
  return sources;
}

Result<std::set<Sha256Digest>> blobs_of(Store& store, const RepoId& repo, const GitOid& commit) {
  auto index = store.internals().reader.lock();
  std::set<Sha256Digest> blobs;
  MODELD_ASSIGN(const auto snapshot, index->find_snapshot(repo, commit));
  for (const SnapshotFile& file : snapshot ? snapshot->files : std::vector<SnapshotFile>{}) {
    blobs.insert(file.sha256);
  }
  MODELD_ASSIGN(const auto variants, index->variants_in(repo, commit));
  for (const Variant& variant : variants) {
    blobs.insert(variant.result);
  }
  return blobs;
}

Result<std::vector<DamagedBlob>> list_damaged(Store& store) {
  auto index = store.internals().reader.lock();
  MODELD_ASSIGN(const auto blobs, index->list_damaged());
  std::vector<DamagedBlob> all;
  for (const Sha256Digest& digest : blobs) {
    DamagedBlob damaged{digest, "it is in quarantine", {}, {}, {}, {}};
    MODELD_TRY(find_concerned(*index, damaged));
    all.push_back(std::move(damaged));
  }
  return all;
}

Result<ScrubReport> scrub(Store& store, const ScrubOptions& options, Progress* progress) {
  std::vector<BlobRow> rows;
  {
    auto index = store.internals().reader.lock();
    MODELD_ASSIGN(rows, index->list_blobs());
  }
  std::erase_if(rows, [&](const BlobRow& row) {
    const bool wanted = options.only.empty() || std::find(options.only.begin(), options.only.end(),
                                                          row.info.sha256) != options.only.end();
    return row.damaged || !wanted;
  });
  if (options.changed_only) {
    std::erase_if(rows,
                  [&](const BlobRow& row) { return looks_unchanged(store, row.info.sha256); });
  }
  ScrubReport report;
  if (progress != nullptr) {
    for (const BlobRow& row : rows) {
      progress->total += row.info.size;
    }
  }
  for (const BlobRow& row : rows) {
    // Collected meanwhile: no damage.
    const BlobHold held = store.hold({row.info.sha256});
    MODELD_ASSIGN(const auto there, row_of(store, row.info.sha256));
    if (!there || there->damaged) continue;
    MODELD_ASSIGN(const auto cause, examine(store, *there, options.bytes_per_second, progress));
    ++report.blobs;
    report.bytes += row.info.size;
    if (!cause) continue;
    MODELD_ASSIGN(auto damaged, quarantine(store, row.info.sha256, *cause));
    report.damaged.push_back(std::move(damaged));
  }
  return report;
}

} // namespace modeld::store
