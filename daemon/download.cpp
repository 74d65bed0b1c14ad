// SPDX-License-Identifier: Apache-2.0
#include "daemon/download.hpp"

#include "daemon/commit_queue.hpp"
#include "daemon/file_sink.hpp"
#include "daemon/log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

namespace modeld::daemon {
namespace {

using fetch::Download;

// Joins the client and the sinks of one batch. Runs on the job's thread.
class BatchHost final : public fetch::DownloadHost {
public:
  BatchHost(DownloadContext& context, std::vector<std::unique_ptr<FileSink>>& sinks)
      : context_(context), sinks_(sinks), seen_(sinks.size()) {
    for (std::size_t i = 0; i < sinks.size(); ++i) {
      seen_[i] = sinks[i]->offset();
    }
  }

  bool cancelled() override { return context_.job.cancelled(); }

  void on_notice(const fetch::Notice& notice) override {
    log_info("job {}: {}", context_.job.id(), notice.what);
    context_.job.set_notice(notice.what);
    noticed_ = true;
  }

  void on_progress(std::size_t index, std::uint64_t bytes) override {
    if (noticed_) context_.job.set_notice({});
    noticed_ = false;
    auto& done = context_.job.progress().done;
    if (bytes > seen_[index]) context_.metrics.bytes_downloaded(bytes - seen_[index]);
    done += bytes - seen_[index]; // wraps downwards after a restart, and so subtracts
    seen_[index] = bytes;
  }

  void on_validator(std::size_t index, const fetch::Validator& validator) override {
    sinks_[index]->keep(validator);
  }

  Result<void> on_file_done(std::size_t index) override {
    FileSink& sink = *sinks_[index];
    MODELD_TRY(sink.prove());
    return commits_.add(sink);
  }

  /// What is proved is kept, also where another file failed.
  Result<void> settle() { return commits_.settle(); }

  Result<ByteSink*> on_restart(std::size_t index) override {
    MODELD_TRY(sinks_[index]->restart());
    return sinks_[index].get();
  }

private:
  DownloadContext& context_;
  std::vector<std::unique_ptr<FileSink>>& sinks_;
  std::vector<std::uint64_t> seen_;
  CommitQueue commits_;
  bool noticed_ = false;
};

// One file on its way from the list to the snapshot.
struct Wanted {
  const ListedFile* file = nullptr;
  std::optional<store::BlobInfo> have;
};

// Looks for what is missing; the bytes that were found.
Result<std::uint64_t> find_present(DownloadContext& context, std::vector<Wanted>& wanted,
                                   std::vector<store::BlobHold>& holds) {
  std::vector<Sha256Digest> found;
  std::uint64_t bytes = 0;
  for (Wanted& one : wanted) {
    if (one.have) continue;
    if (one.file->sha256) {
      MODELD_ASSIGN(one.have, context.store.find_blob(*one.file->sha256));
    } else {
      MODELD_ASSIGN(one.have, context.store.find_blob(one.file->git_oid));
    }
    if (one.have && one.have->size != one.file->size) one.have.reset();
    if (!one.have) continue;
    found.push_back(one.have->sha256);
    bytes += one.file->size;
  }
  if (!found.empty()) holds.push_back(context.store.hold(std::move(found)));
  return bytes;
}

std::uint64_t missing_bytes(const std::vector<Wanted>& wanted) {
  std::uint64_t sum = 0;
  for (const Wanted& one : wanted) {
    if (!one.have) sum += one.file->size;
  }
  return sum;
}

// Opens a sink for every missing file that no other job is fetching. Files of equal content get
// one; the others are found in the next round.
struct Batch {
  std::vector<std::unique_ptr<FileSink>> sinks;
  std::vector<std::size_t> index; ///< in wanted
  std::size_t busy = 0;
};

Result<Batch> open_batch(DownloadContext& context, std::string_view what,
                         const std::vector<Wanted>& wanted,
                         const std::shared_ptr<store::SpaceReservation>& space) {
  Batch batch;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].have) continue;
    if (context.job.cancelled()) return fail(Errc::cancelled, "downloading: cancelled");
    auto sink =
        FileSink::open(context.store, *wanted[i].file,
                       fmt::format("{}: {}", what, wanted[i].file->path), context.job.id(), space);
    if (!sink && sink.error().code == Errc::busy) {
      ++batch.busy;
      continue;
    }
    if (!sink) return fail(std::move(sink).error());
    space->use((*sink)->bytes_here());
    batch.sinks.push_back(*std::move(sink));
    batch.index.push_back(i);
  }
  return batch;
}

Result<void> fetch_batch(DownloadContext& context, const RepoId& repo, const GitOid& commit,
                         Batch& batch, std::vector<Wanted>& wanted) {
  std::vector<Download> downloads;
  for (std::size_t i = 0; i < batch.sinks.size(); ++i) {
    context.job.progress().done += batch.sinks[i]->offset();
    downloads.push_back({*wanted[batch.index[i]].file, batch.sinks[i]->offset(),
                         batch.sinks[i]->validator(), batch.sinks[i].get(),
                         batch.sinks[i]->is_small() ? nullptr : batch.sinks[i].get()});
  }
  BatchHost host(context, batch.sinks);
  auto downloaded = context.client.download(repo, commit, downloads, context.token, host);
  auto stored = host.settle();
  MODELD_TRY(downloaded);
  MODELD_TRY(stored);
  for (std::size_t i = 0; i < batch.sinks.size(); ++i) {
    wanted[batch.index[i]].have = batch.sinks[i]->committed();
  }
  return {};
}

class ProofHost final : public fetch::DownloadHost {
public:
  explicit ProofHost(Job& job, ByteSink& sink) : job_(job), sink_(sink) {}
  bool cancelled() override { return job_.cancelled(); }
  void on_progress(std::size_t, std::uint64_t) override {}
  Result<void> on_file_done(std::size_t) override { return {}; }
  Result<ByteSink*> on_restart(std::size_t) override { return &sink_; }

private:
  Job& job_;
  ByteSink& sink_;
};

class NullSink final : public ByteSink {
public:
  Result<void> write(std::span<const std::byte>) override { return {}; }
};

} // namespace

Result<std::vector<SnapshotFile>> download_files(DownloadContext& context, const RepoId& repo,
                                                 const GitOid& commit,
                                                 const std::vector<ListedFile>& files,
                                                 std::vector<store::BlobHold>& holds) {
  constexpr std::chrono::milliseconds k_look_again{100};
  std::vector<Wanted> wanted;
  for (const ListedFile& file : files) {
    wanted.push_back({&file, {}});
  }
  MODELD_TRY(find_present(context, wanted, holds));
  const std::uint64_t total = missing_bytes(wanted);
  MODELD_ASSIGN(const auto space, context.store.reserve_space(total, context.job.uid()));
  context.space.push_back(space);
  context.job.begin_phase("downloading", total);
  const std::string what = fmt::format("{}@{}", repo.text, commit.hex());
  while (missing_bytes(wanted) > 0 ||
         std::any_of(wanted.begin(), wanted.end(), [](const Wanted& w) { return !w.have; })) {
    MODELD_ASSIGN(Batch batch, open_batch(context, what, wanted, space));
    if (!batch.sinks.empty()) {
      MODELD_TRY(fetch_batch(context, repo, commit, batch, wanted));
    } else {
      context.job.set_notice(
          fmt::format("waiting for {} files that another job is fetching", batch.busy));
      std::this_thread::sleep_for(k_look_again);
    }
    MODELD_ASSIGN(const std::uint64_t found, find_present(context, wanted, holds));
    context.job.progress().done += found;
    space->forgo(found);
  }
  std::vector<SnapshotFile> out;
  std::vector<Sha256Digest> digests;
  for (const Wanted& one : wanted) {
    out.push_back({one.file->path, one.file->size, one.file->git_oid, one.have->sha256});
    digests.push_back(one.have->sha256);
  }
  holds.push_back(context.store.hold(std::move(digests)));
  return out;
}

Result<void> prove_access(DownloadContext& context, const RepoId& repo, const GitOid& commit,
                          const std::vector<ListedFile>& files) {
  const auto smallest = std::min_element(
      files.begin(), files.end(), [](const auto& a, const auto& b) { return a.size < b.size; });
  if (smallest == files.end()) return {};
  NullSink sink;
  ProofHost host(context.job, sink);
  const Download download{*smallest, 0, {}, &sink};
  return context.client.download(repo, commit, {&download, 1}, context.token, host);
}

} // namespace modeld::daemon
