// SPDX-License-Identifier: Apache-2.0
// From proved bytes under tmp/ to blobs: fsync, into place, fsync of the folder, row. Many small
// ones go together: each step is done for all before the next, the syncs side by side, since a disk
// takes hardly longer for many at once than for one, and their rows in one transaction.
#include "store/ingest.hpp"

#include "store/ingest_state.hpp"
#include "store/layout.hpp"
#include "store/plain_view.hpp"

#include <fmt/format.h>

#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace modeld::store {
namespace {

constexpr std::size_t k_threads = 16;
constexpr std::size_t k_few = 8; // so many syncs are not worth a thread

/// Runs `call` for each item, side by side where they are many; the first error in their order.
template <class Items, class Call>
Result<void> for_each_at_once(const Items& items, Call call) {
  if (items.size() < k_few) {
    for (const auto& item : items) {
      MODELD_TRY(call(item));
    }
    return {};
  }
  std::vector<Result<void>> results(items.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < items.size(); i = next++) {
      results[i] = call(items[i]);
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < std::min(k_threads, items.size() / 2); ++i) {
    threads.emplace_back(work);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (auto& result : results) {
    MODELD_TRY(result);
  }
  return {};
}

} // namespace

tl::unexpected<Error> Ingest::State::mismatch(std::string_view of, std::string wanted,
                                              std::string found) {
  Error error{Errc::digest_mismatch,
              fmt::format("storing '{}': {} is {}, expected {}", what(), of, found, wanted),
              "the source or the way to it changed the bytes; fetch them again",
              {{"expected", wanted}, {"found", found}},
              0};
  const std::string evidence = keep_evidence();
  discard();
  if (evidence.empty()) return fail(std::move(error));
  return fail(std::move(error).with_detail("evidence", evidence));
}

std::string Ingest::State::keep_evidence() const {
  if (expected.job.empty() || !(expected.sha256 || expected.git_oid)) return {};
  struct statvfs info {};
  if (fstatvfs(store->disk.fd(), &info) != 0) return {};
  const std::uint64_t free = std::uint64_t{info.f_bavail} * info.f_frsize;
  if (free / 2 < expected.size.value_or(offset)) return {};
  const std::string kept =
      fmt::format("{}/{}.wrong", layout::k_quarantine,
                  expected.sha256 ? expected.sha256->hex() : expected.git_oid->hex());
  if (!store->disk.make_folders(layout::k_quarantine)) return {};
  if (!store->disk.rename(path, kept)) return {};
  return (store->disk.root() / kept).string();
}

Result<BlobInfo> Ingest::State::check() {
  if (expected.size && offset != *expected.size) {
    return mismatch("the size", std::to_string(*expected.size), std::to_string(offset));
  }
  BlobInfo info;
  info.size = offset;
  info.sha256 = sha256.finish();
  if (git) {
    info.git_oid = git->finish();
  } else if (offset <= k_git_id_limit || expected.git_oid) {
    MODELD_ASSIGN(info.git_oid, git_id_afterwards());
  }
  if (expected.sha256 && info.sha256 != *expected.sha256) {
    return mismatch("the SHA-256", expected.sha256->hex(), info.sha256.hex());
  }
  if (expected.git_oid && info.git_oid != expected.git_oid) {
    return mismatch("the git id", expected.git_oid->hex(), info.git_oid->hex());
  }
  return info;
}

Result<BlobInfo> Ingest::State::prove() {
  if (!proved) {
    MODELD_ASSIGN(proved, check());
    MODELD_TRY(store->disk.set_mode(file, path, store->options.blob_mode));
  }
  return *proved;
}

Result<bool> Ingest::State::is_there() const {
  const std::string path_there = layout::blob(proved->sha256);
  MODELD_ASSIGN(const auto size, store->disk.size_of(path_there));
  if (size != proved->size) return false;
  auto index = store->writer.lock();
  MODELD_ASSIGN(const auto row, index->find_blob(proved->sha256));
  // Without a row it is what a crash left between the last two steps: proved as well.
  return !row || row->mtime_ns == mtime_ns_of(store->disk, path_there);
}

Result<void> Ingest::State::place() {
  const std::string final_path = layout::blob(proved->sha256);
  auto placed = store->disk.rename_new(path, final_path);
  if (placed || placed.error().code != Errc::conflict) return placed;
  MODELD_ASSIGN(const bool there, is_there());
  replaced = !there;
  return there ? store->disk.unlink(path) : store->disk.rename(path, final_path);
}

Result<void> Ingest::State::write_row(Index& index) {
  BlobRow row{*proved, mtime_ns_of(store->disk, layout::blob(proved->sha256)), false};
  if (proved->size > k_git_id_limit) row.info.git_oid.reset();
  MODELD_ASSIGN(const auto before, index.find_blob(proved->sha256));
  if (!before || *before != row) MODELD_TRY(index.put_blob(row));
  if (before && before->damaged) {
    MODELD_TRY(index.set_damaged(proved->sha256, false));
    replaced = true;
  }
  if (expected.job.empty()) return {};
  return index.keep_for_job(expected.job, proved->sha256);
}

Result<void> Ingest::State::mend_views() const {
  const Sha256Digest& digest = proved->sha256;
  std::vector<Index::FileRow> files;
  std::vector<Variant> variants;
  {
    auto index = store->writer.lock();
    MODELD_ASSIGN(files, index->files_of(digest));
    MODELD_ASSIGN(const auto keys, index->variants_of(digest));
    for (const Sha256Digest& key : keys) {
      MODELD_ASSIGN(auto variant, index->find_variant(key));
      if (variant) variants.push_back(std::move(*variant));
    }
  }
  for (const auto& row : files) {
    MODELD_TRY(link_in_view(store->disk, row.repo, row.commit, row.path, digest,
                            store->temporary("link")));
  }
  for (const Variant& variant : variants) {
    MODELD_TRY(link_variant(store->disk, variant, store->temporary("link")));
  }
  return {};
}

void Ingest::State::note_pieces() {
  if (sha256.states().empty() || store->disk.exists(layout::pieces(proved->sha256))) return;
  const std::string temporary = store->temporary("pieces");
  if (write_pieces(store->disk, proved->sha256, sha256.states(), temporary)) return;
  [[maybe_unused]] const auto ignored = store->disk.unlink(temporary);
}

namespace {

/// After a failed fsync nobody knows what is on the disk, and a second one may say yes.
Result<void> sync_content(Ingest::State* one) {
  auto synced = one->store->disk.sync(one->file, one->path);
  if (!synced) one->discard();
  return synced;
}

/// All are proved, and of one store.
Result<void> publish(const std::vector<Ingest::State*>& all) {
  if (all.empty()) return {};
  Store::State& store = *all.front()->store;
  std::set<std::string> named;
  for (const Ingest::State* one : all) {
    named.insert(layout::blob_folder(one->proved->sha256));
  }
  const std::vector<std::string> folders(named.begin(), named.end());
  MODELD_TRY(for_each_at_once(all, sync_content));
  const std::shared_lock placing(store.placing);
  MODELD_TRY(for_each_at_once(
      folders, [&](const std::string& folder) { return store.disk.make_folders(folder); }));
  for (Ingest::State* one : all) {
    MODELD_TRY(one->place());
  }
  MODELD_TRY(for_each_at_once(
      folders, [&](const std::string& folder) { return store.disk.sync_folder(folder); }));
  for (Ingest::State* one : all) {
    one->finished = true;
    one->drop_beside();
    one->release_partial();
    one->note_pieces();
  }
  {
    auto index = store.writer.lock();
    MODELD_ASSIGN(auto txn, index->begin());
    for (Ingest::State* one : all) {
      MODELD_TRY(one->write_row(*index));
    }
    MODELD_TRY(txn.commit());
  }
  for (const Ingest::State* one : all) {
    if (one->expected.space != nullptr) one->expected.space->store(one->offset);
  }
  for (const Ingest::State* one : all) {
    if (one->replaced) MODELD_TRY(one->mend_views());
  }
  return {};
}

} // namespace

Result<BlobInfo> Ingest::prove() {
  State& s = *state_;
  if (s.failed || s.finished) {
    return fail(Errc::invalid_argument,
                fmt::format("storing '{}': nothing to publish after an error", s.what()));
  }
  auto info = s.prove();
  if (!info) s.failed = true;
  return info;
}

Result<BlobInfo> Ingest::commit() {
  Ingest* const self = this;
  MODELD_TRY(commit_all({&self, 1}));
  return *state_->proved; // NOLINT(bugprone-unchecked-optional-access): commit_all() proved it
}

Result<void> commit_all(std::span<Ingest* const> ingests) {
  std::vector<Ingest::State*> states;
  for (Ingest* ingest : ingests) {
    MODELD_TRY(ingest->prove());
    states.push_back(&ingest->state());
  }
  auto done = publish(states);
  for (Ingest::State* state : states) {
    if (!done) state->failed = true;
  }
  return done;
}

} // namespace modeld::store
