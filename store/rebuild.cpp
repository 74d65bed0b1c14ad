// SPDX-License-Identifier: Apache-2.0
#include "store/rebuild.hpp"

#include "store/layout.hpp"
#include "store/manifests.hpp"
#include "store/state.hpp"
#include "validate/sha256.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace modeld::store {
namespace {

constexpr const char* k_new_index = "tmp/index.new";
constexpr const char* k_old_index = "index.sqlite.old";
constexpr std::size_t k_read_size = 1U << 20;

class Rebuild {
public:
  Rebuild(const Disk& disk, Index& index) : disk_(disk), index_(index) {}

  Result<void> run() {
    MODELD_ASSIGN(auto txn, index_.begin());
    MODELD_TRY(add_blobs());
    MODELD_TRY(add_snapshots_and_repos());
    MODELD_TRY(add_variants());
    MODELD_TRY(add_pins());
    MODELD_TRY(add_links());
    return txn.commit();
  }

private:
  Result<void> add_blobs() {
    MODELD_ASSIGN(const auto paths, list_manifests(disk_, layout::k_blobs, 1));
    for (const std::string& path : paths) {
      const auto digest = Sha256Digest::parse(path.substr(path.rfind('/') + 1));
      if (!digest || layout::blob(*digest) != path || !disk_.size_of(path)) continue;
      // Wrong and unreadable bytes get their row with whatever names them, as damaged.
      const auto row = read_blob_row(disk_, *digest);
      if (row) MODELD_TRY(index_.put_blob(*row));
    }
    return {};
  }

  /// A manifest speaks of it, so there has to be a row.
  Result<void> need_blob(const Sha256Digest& digest, std::uint64_t size) {
    MODELD_ASSIGN(const auto row, index_.find_blob(digest));
    if (row) return {};
    return index_.put_blob({{digest, size, std::nullopt}, 0, true});
  }

  Result<void> add_snapshots_and_repos() {
    MODELD_ASSIGN(const auto paths, list_manifests(disk_, layout::k_snapshots, 2));
    for (const std::string& path : paths) {
      const auto text = disk_.read_text(path, k_max_manifest);
      if (!text) continue; // fsck says it
      if (path.ends_with("/repo.json")) {
        const auto repo = RepoRow::from_json(*text);
        if (repo && layout::repo_manifest(repo->repo) == path) MODELD_TRY(index_.put_repo(*repo));
        continue;
      }
      const auto snapshot = Snapshot::from_json(*text);
      if (!snapshot || layout::snapshot_manifest(snapshot->repo, snapshot->commit) != path)
        continue;
      bool damaged = false;
      for (const SnapshotFile& file : snapshot->files) {
        MODELD_TRY(need_blob(file.sha256, file.size));
        MODELD_ASSIGN(const auto row, index_.find_blob(file.sha256));
        damaged = damaged || !row || row->damaged;
      }
      MODELD_TRY(index_.put_snapshot(*snapshot, time_of(disk_, path)));
      if (damaged) MODELD_TRY(index_.correct_sums(snapshot->repo, snapshot->commit));
    }
    return {};
  }

  Result<void> add_variants() {
    MODELD_ASSIGN(const auto paths, list_manifests(disk_, layout::k_variants, 0));
    for (const std::string& path : paths) {
      const auto text = disk_.read_text(path, k_max_manifest);
      if (!text) continue; // fsck says it
      const auto variant = Variant::from_json(*text);
      if (!variant || layout::variant_manifest(variant->key) != path) continue;
      MODELD_TRY(need_blob(variant->result, variant->size));
      MODELD_TRY(index_.put_variant(*variant));
    }
    return {};
  }

  Result<void> add_pins() {
    MODELD_ASSIGN(const auto paths, list_manifests(disk_, layout::k_pins, 0));
    for (const std::string& path : paths) {
      const auto text = disk_.read_text(path, k_max_manifest);
      if (!text) continue; // fsck says it
      const auto pin = pin_from_json(*text);
      if (!pin || layout::pin_manifest(pin->name) != path) continue;
      MODELD_ASSIGN(const auto snapshot, index_.snapshot_info(pin->repo, pin->commit));
      if (snapshot) MODELD_TRY(index_.put_pin(*pin));
    }
    return {};
  }

  Result<void> add_links() {
    if (!disk_.exists(layout::k_links)) return {};
    MODELD_ASSIGN(const auto paths, list_manifests(disk_, layout::k_links, 0));
    for (const std::string& path : paths) {
      const auto text = disk_.read_text(path, k_max_manifest);
      if (!text) continue; // fsck says it
      const auto link = LinkRecord::from_json(*text);
      if (!link || layout::link_manifest(link->id) != path) continue;
      for (const LinkedFile& file : link->files) {
        if (file.blob) MODELD_TRY(need_blob(*file.blob, 0));
      }
      MODELD_TRY(index_.put_link(*link));
    }
    return {};
  }

  const Disk& disk_;
  Index& index_;
};

} // namespace

Result<BlobRow> read_blob_row(const Disk& disk, const Sha256Digest& digest) {
  const std::string path = layout::blob(digest);
  BlobRow row;
  row.info.sha256 = digest;
  MODELD_ASSIGN(row.info.size, disk.size_of(path));
  row.mtime_ns = mtime_ns_of(disk, path);
  if (row.info.size > k_git_id_limit) return row;
  MODELD_ASSIGN(const auto file, disk.open_read(path));
  validate::Sha256 sha256;
  validate::GitBlobHasher git(row.info.size);
  std::vector<std::byte> part(k_read_size);
  for (;;) {
    const ssize_t n = ::read(file.get(), part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(from_errno(errno, fmt::format("reading '{}'", path)));
    if (n == 0) break;
    sha256.update(std::span(part).first(static_cast<std::size_t>(n)));
    git.update(std::span(part).first(static_cast<std::size_t>(n)));
  }
  row.info.git_oid = git.finish();
  const auto found = sha256.finish();
  if (found == digest) return row;
  return fail(Errc::corrupt, fmt::format("reading '{}': its SHA-256 is {}", path, found.hex()));
}

namespace {

/// Everything in one file under tmp/, on the disk.
Result<void> write_new_index(const Disk& disk) {
  for (const char* suffix : {"", "-wal", "-shm"}) {
    MODELD_TRY(disk.unlink(std::string(k_new_index) + suffix));
  }
  MODELD_ASSIGN(auto index,
                Index::open(disk.root() / k_new_index, Db::Access::read_write, disk.watcher()));
  MODELD_TRY(Rebuild(disk, index).run());
  return index.db().execute("PRAGMA wal_checkpoint(TRUNCATE)");
}

/// Nobody has the old one open.
Result<void> replace_index(const Disk& disk) {
  MODELD_ASSIGN(const auto file, disk.open_write(k_new_index, 0644));
  MODELD_TRY(disk.sync(file, k_new_index));
  // The old log belongs to the old file; what is in it is given up with that.
  MODELD_TRY(disk.remove_tree(std::string(layout::k_index) + "-wal"));
  MODELD_TRY(disk.remove_tree(std::string(layout::k_index) + "-shm"));
  MODELD_TRY(disk.remove_tree(k_old_index)); // may be a folder that was in the index's place
  if (disk.exists(layout::k_index)) MODELD_TRY(disk.rename(layout::k_index, k_old_index));
  MODELD_TRY(disk.rename(k_new_index, layout::k_index));
  return disk.sync_folder(".");
}

Result<void> compare_and_copy(Index& old, const std::filesystem::path& fresh,
                              RebuildReport& report) {
  MODELD_ASSIGN(report.differences, old.compare(fresh));
  return old.copy_work_to(fresh);
}

/// A connection that holds no file of ours, to put in the place of one that has to end.
Result<Index> nowhere(const Disk& disk) {
  return Index::open(disk.root() / layout::k_tmp / "index.none", Db::Access::read_write, nullptr);
}

/// What was open before has ended when this returns.
Result<void> exchange(Index& index, Result<Index> next) {
  if (!next) return fail(std::move(next).error());
  index = std::move(*next);
  return {};
}

} // namespace

Result<void> rebuild_index(const Disk& disk) {
  MODELD_TRY(write_new_index(disk));
  return replace_index(disk);
}

Result<RebuildReport> rebuild_open_index(Store& store) {
  MODELD_TRY(store.flush_uses());
  Store::State& s = store.internals();
  const Changed changed(s);
  const std::lock_guard manifests(s.manifests);
  const std::unique_lock placing(s.placing);
  auto writer = s.writer.lock();
  auto reader = s.reader.lock();
  MODELD_TRY(write_new_index(s.disk));
  RebuildReport report;
  const auto fresh = s.disk.root() / k_new_index;
  if (auto read = compare_and_copy(*writer, fresh, report); !read) {
    report.unread = read.error().message;
  }
  const auto file = s.disk.root() / layout::k_index;
  // Both connections end before the file is exchanged, and come back whatever happens.
  MODELD_TRY(exchange(*reader, nowhere(s.disk)));
  MODELD_TRY(exchange(*writer, nowhere(s.disk)));
  const auto replaced = replace_index(s.disk);
  MODELD_TRY(exchange(*writer, Index::open(file, Db::Access::read_write, s.options.watcher)));
  MODELD_TRY(exchange(*reader, Index::open(file, Db::Access::read_only, nullptr)));
  for (const char* suffix : {"", "-wal", "-shm"}) {
    MODELD_TRY(s.disk.unlink(std::string(layout::k_tmp) + "/index.none" + suffix));
  }
  MODELD_TRY(replaced);
  MODELD_ASSIGN(report.rows, writer->count_rows());
  return report;
}

} // namespace modeld::store
