// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/guarded.hpp"
#include "store/disk.hpp"
#include "store/index.hpp"
#include "store/root_lock.hpp"
#include "store/shared_roots.hpp"
#include "store/store.hpp"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>

// Inside of Store, shared by its source files and by what works on a whole store.

namespace modeld::store {

/// How many holders a blob has in this process, and which blobs a collection is deleting now.
struct BlobHold::Table {
  struct Contents {
    std::map<Sha256Digest, int> counts;
    std::set<Sha256Digest> condemned;
  };
  Guarded<Contents> contents;
  std::condition_variable pardoned;

  bool contains(const Sha256Digest& digest) {
    auto lock = contents.lock();
    return lock->counts.contains(digest);
  }
  /// False where somebody holds it. From here until pardon() new holders wait.
  bool condemn(const Sha256Digest& digest) {
    auto lock = contents.lock();
    if (lock->counts.contains(digest)) return false;
    lock->condemned.insert(digest);
    return true;
  }
  void pardon(const Sha256Digest& digest) {
    auto lock = contents.lock();
    lock->condemned.erase(digest);
    pardoned.notify_all();
  }
};

struct Store::State {
  State(Disk disk_in, RootLock lock_in, std::string id_in, StoreOptions options_in, Index writer_in,
        Index reader_in)
      : disk(std::move(disk_in)), lock(std::move(lock_in)), id(std::move(id_in)),
        options(std::move(options_in)), writer(std::move(writer_in)), reader(std::move(reader_in)) {
  }

  std::string temporary(std::string_view what); ///< a fresh name under tmp/

  Disk disk;
  RootLock lock;
  std::string id;
  StoreOptions options;
  std::vector<std::string> mended; ///< while it was opened

  /// The index is SQLite's own lock domain: its short disk writes happen under the guard. Reading
  /// has a connection of its own, so that a look-up never waits for a commit.
  Guarded<Index> writer;
  Guarded<Index> reader;

  /// Shared: a blob is being linked into place and its row written. Exclusive: a blob's row is
  /// being deleted and its file unlinked. Without it a collection could unlink what an ingest just
  /// found.
  std::shared_mutex placing;
  /// Changes of manifests, one at a time: file and row stay in step.
  std::mutex manifests;

  std::unique_ptr<SharedRoots> shared; ///< never null once the store is open
  std::shared_ptr<SpaceLedger> ledger = std::make_shared<SpaceLedger>();
  std::shared_ptr<BlobHold::Table> holds = std::make_shared<BlobHold::Table>();
  Guarded<std::set<std::string, std::less<>>> active_partials;
  Guarded<std::map<Sha256Digest, UnixTime>> uses;
  Guarded<std::vector<Lease>> connection_leases;
  std::atomic<std::uint64_t> next_temporary{0};
  std::atomic<std::uint64_t> generation{1};
};

/// Counts a change, whatever comes of it, when it is over.
class Changed {
public:
  explicit Changed(Store::State& state) : state_(state) {}
  ~Changed() { ++state_.generation; }
  Changed(const Changed&) = delete;
  Changed& operator=(const Changed&) = delete;

private:
  Store::State& state_;
};

/// 32 random hexadecimal digits.
std::string random_id();
/// 1 to 128 of [A-Za-z0-9_.-], starting with a letter, a digit or _.
Result<void> check_name(std::string_view name, std::string_view what);
/// Seconds of a file's last change; 0 where it is gone.
UnixTime time_of(const Disk& disk, const std::string& path);
std::int64_t nanoseconds(const timespec& time);
std::int64_t mtime_ns_of(const Disk& disk, const std::string& path);

} // namespace modeld::store
