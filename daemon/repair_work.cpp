// SPDX-License-Identifier: Apache-2.0
#include "daemon/repair_work.hpp"

#include "daemon/build.hpp"
#include "daemon/catalog.hpp"
#include "daemon/download.hpp"
#include "daemon/log.hpp"
#include "daemon/pull_work.hpp"
#include "daemon/recipe_text.hpp"
#include "daemon/request_body.hpp"
#include "store/pieces.hpp"
#include "store/quarantine.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace modeld::daemon {
namespace {

using boost::json::array;
using boost::json::object;
using store::BlobSource;
using store::DamagedBlob;

// Takes as many bytes as are wanted, puts them where they belong, and then wants no more.
class RangeSink final : public ByteSink {
public:
  RangeSink(store::Patch& patch, store::ByteSpan range)
      : patch_(patch), at_(range.offset), left_(range.size) {}

  Result<void> write(std::span<const std::byte> bytes) override {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
    MODELD_TRY(patch_.write(at_, bytes.first(n)));
    at_ += n;
    left_ -= n;
    if (left_ == 0) return fail(Errc::cancelled, "repairing: these are all bytes that are needed");
    return {};
  }
  bool full() const { return left_ == 0; }

private:
  store::Patch& patch_;
  std::uint64_t at_;
  std::uint64_t left_;
};

class RangeHost final : public fetch::DownloadHost {
public:
  RangeHost(Job& job, store::ByteSpan range) : job_(job), range_(range) {}
  /// Counts what no report came for.
  void finish() { on_progress(0, range_.offset + range_.size); }
  bool cancelled() override { return job_.cancelled(); }
  void on_notice(const fetch::Notice& notice) override { job_.set_notice(notice.what); }
  /// Bytes of the file so far; of those behind the range, which a read may bring along, none count.
  void on_progress(std::size_t, std::uint64_t bytes) override {
    const std::uint64_t done =
        std::min(bytes > range_.offset ? bytes - range_.offset : 0, range_.size);
    job_.progress().done += done - seen_;
    seen_ = done;
  }
  Result<void> on_file_done(std::size_t) override { return {}; }
  Result<ByteSink*> on_restart(std::size_t) override {
    return fail(Errc::unsupported, "repairing: the source does not give single ranges");
  }

private:
  Job& job_;
  store::ByteSpan range_;
  std::uint64_t seen_ = 0;
};

struct Repaired {
  std::string how; ///< "ranges", "whole", "built"
  std::uint64_t fetched = 0;
};

class Repair {
public:
  Repair(Services& services, Job& job) : services_(services), job_(job) {}

  /// What is damaged of these, after a look at everything that was changed meanwhile.
  Result<std::vector<DamagedBlob>> find(const std::optional<std::set<Sha256Digest>>& wanted) {
    store::ScrubOptions options;
    options.changed_only = true;
    if (wanted) options.only.assign(wanted->begin(), wanted->end());
    if (!wanted || !wanted->empty()) {
      MODELD_TRY(store::scrub(services_.store, options, &job_.progress()));
    }
    MODELD_ASSIGN(auto damaged, store::list_damaged(services_.store));
    std::erase_if(
        damaged, [&](const DamagedBlob& blob) { return wanted && !wanted->contains(blob.digest); });
    // Files of repositories first: what is built is built from them.
    std::stable_partition(damaged.begin(), damaged.end(),
                          [](const DamagedBlob& blob) { return !blob.snapshots.empty(); });
    return damaged;
  }

  Result<Repaired> run(const DamagedBlob& blob) {
    Error last{Errc::not_found,
               fmt::format("repairing blob {}: nothing here needs it", blob.digest.hex()),
               "modelctl gc removes it",
               {},
               0};
    MODELD_ASSIGN(const auto sources, fetchable(blob));
    for (const BlobSource& source : sources) {
      auto repaired = fetch_ranges(blob, source);
      if (!repaired && repaired.error().code != Errc::cancelled) {
        log_info("job {}: {}; fetching all of it", job_.id(), repaired.error().message);
        repaired = fetch_whole(blob, source);
      }
      if (repaired || repaired.error().code == Errc::cancelled) return repaired;
      last = std::move(repaired).error();
    }
    for (const Sha256Digest& key : blob.variants) {
      auto repaired = build(key);
      if (repaired || repaired.error().code == Errc::cancelled) return repaired;
      if (repaired.error().code != Errc::unsupported || sources.empty()) {
        last = std::move(repaired).error();
      }
    }
    return fail(std::move(last));
  }

private:
  Result<store::Variant> variant(const Sha256Digest& key) {
    MODELD_ASSIGN(auto all, services_.store.list_variants());
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&key](const store::Variant& one) { return one.key == key; });
    if (at != all.end()) return std::move(*at);
    return fail(Errc::not_found, fmt::format("looking for variant {}: it is gone", key.hex()));
  }

  static bool is_kept_file(const store::Variant& variant) {
    return variant.sources.size() == 1 && variant.sources[0].sha256 == variant.result;
  }

  /// Files of repositories, listed in snapshots or kept alone.
  Result<std::vector<BlobSource>> fetchable(const DamagedBlob& blob) {
    MODELD_ASSIGN(auto sources, store::sources_of(services_.store, blob.digest));
    for (const Sha256Digest& key : blob.variants) {
      MODELD_ASSIGN(const auto one, variant(key));
      if (!is_kept_file(one)) continue;
      sources.push_back({one.repo, one.commit, {one.sources[0].path, one.size, {}, one.result}});
    }
    return sources;
  }

  Result<Repaired> fetch_ranges(const DamagedBlob& blob, const BlobSource& source) {
    MODELD_ASSIGN(const auto bad,
                  store::find_bad_bytes(services_.store, blob.digest, &job_.progress()));
    std::uint64_t wrong = 0;
    for (const store::ByteSpan& range : bad) {
      wrong += range.size;
    }
    if (wrong == source.file.size) {
      return fail(Errc::unsupported, "repairing: which bytes are wrong is not known");
    }
    MODELD_ASSIGN(const auto space, services_.store.reserve_space(source.file.size));
    MODELD_ASSIGN(const auto patch, store::Patch::begin(services_.store, blob.digest, job_.id()));
    fetch::HubOptions options = hub_options(services_, job_);
    options.max_ranges = 1; // in order from the offset on, so that the end can be chosen
    options.max_parallel = 1;
    MODELD_ASSIGN(auto client, fetch::HubClient::create(std::move(options)));
    MODELD_ASSIGN(const auto token, hub_token(services_, job_.token()));
    job_.begin_phase("downloading", wrong);
    for (const store::ByteSpan& range : bad) {
      MODELD_TRY(fetch_range(client, token, *patch, source, range));
    }
    job_.begin_phase("verifying", source.file.size);
    MODELD_TRY(patch->commit());
    return Repaired{"ranges", wrong};
  }

  Result<void> fetch_range(fetch::HubClient& client, const fetch::Token& token, store::Patch& patch,
                           const BlobSource& source, store::ByteSpan range) {
    RangeSink sink(patch, range);
    RangeHost host(job_, range);
    const fetch::Download download{source.file, range.offset, {}, &sink};
    auto done = client.download(source.repo, source.commit, {&download, 1}, token, host);
    if (!done && !sink.full()) return done;
    host.finish();
    return {};
  }

  Result<Repaired> fetch_whole(const DamagedBlob& blob, const BlobSource& source) {
    MODELD_ASSIGN(auto client, fetch::HubClient::create(hub_options(services_, job_)));
    MODELD_ASSIGN(const auto token, hub_token(services_, job_.token()));
    DownloadContext context{services_.store, client, services_.metrics, job_, token};
    std::vector<store::BlobHold> holds;
    MODELD_TRY(download_files(context, source.repo, source.commit, {source.file}, holds));
    // A small file is known to the Hub by its git id alone, and the record may be wrong.
    MODELD_ASSIGN(const auto here, services_.store.find_blob(blob.digest));
    if (here) return Repaired{"whole", source.file.size};
    return fail(Errc::digest_mismatch,
                fmt::format("repairing blob {}: '{}' of {}@{} has another SHA-256 at the Hub",
                            blob.digest.hex(), source.file.path, source.repo.text,
                            source.commit.hex()),
                "the snapshot's record names a blob that never was; modelctl rm forgets it");
  }

  /// Publishing compares: the same key with other bytes is refused.
  Result<Repaired> build(const Sha256Digest& key) {
    MODELD_ASSIGN(const auto broken, variant(key));
    if (is_kept_file(broken)) {
      return fail(Errc::unsupported, "repairing: it is not built");
    }
    const std::string doing = fmt::format("building '{}' again", broken.file_name);
    MODELD_ASSIGN(auto recipe, recipe_from_canonical(broken.recipe));
    MODELD_ASSIGN(const auto snapshot, services_.store.find_snapshot(broken.repo, broken.commit));
    if (!snapshot) {
      return fail(Errc::not_found, fmt::format("{}: what it was built from is not here", doing),
                  fmt::format("modelctl pull {}@{}, then repair again", broken.repo.text,
                              broken.commit.hex()));
    }
    auto built = build_variant(services_, job_, *snapshot, std::move(recipe));
    if (!built) return fail(std::move(built).error().context(doing));
    if (built->key != broken.key) {
      return fail(Errc::unsupported,
                  fmt::format("{}: this converter ({}) is another than the one that made it ({})",
                              doing, built->converter, broken.converter),
                  "what this converter makes of the model is here, beside the damaged file");
    }
    return Repaired{"built", 0};
  }

  Services& services_;
  Job& job_;
};

// What a ref is made of; nothing without one.
Result<std::optional<std::set<Sha256Digest>>> wanted_blobs(Services& services, const Job& job) {
  MODELD_ASSIGN(const auto text, optional_text(job.detail(), "ref"));
  if (!text) return std::optional<std::set<Sha256Digest>>{};
  MODELD_ASSIGN(const auto ref, ModelRef::parse(*text));
  MODELD_ASSIGN(const auto place, find_place(services.store, ref));
  std::set<Sha256Digest> wanted;
  if (place) {
    MODELD_ASSIGN(wanted, store::blobs_of(services.store, place->repo, place->commit));
  }
  if (!wanted.empty()) return std::optional(std::move(wanted));
  return fail(Errc::not_found, fmt::format("repairing '{}': there is nothing of it here", *text),
              "modelctl ls shows what is here");
}

} // namespace

Result<object> run_repair(Services& services, Job& job) {
  job.begin_phase("repairing");
  MODELD_ASSIGN(const auto wanted, wanted_blobs(services, job));
  Repair repair(services, job);
  MODELD_ASSIGN(const auto damaged, repair.find(wanted));
  array repaired;
  array failed;
  for (const DamagedBlob& blob : damaged) {
    job.begin_phase("repairing");
    auto outcome = repair.run(blob);
    if (job.cancelled()) return fail(Errc::cancelled, "repairing: cancelled");
    array concerned;
    for (const std::string& name : blob.snapshots) {
      concerned.emplace_back(name);
    }
    object entry{{"blob", blob.digest.hex()}, {"snapshots", std::move(concerned)}};
    if (outcome) {
      entry["how"] = outcome->how;
      entry["fetched"] = outcome->fetched;
      repaired.push_back(std::move(entry));
    } else {
      entry["error"] = api::error_to_json(outcome.error());
      failed.push_back(std::move(entry));
    }
  }
  return object{{"repaired", std::move(repaired)}, {"failed", std::move(failed)}};
}

} // namespace modeld::daemon
