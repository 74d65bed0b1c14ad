// SPDX-License-Identifier: Apache-2.0
#include "daemon/pull_work.hpp"

#include "daemon/catalog.hpp"
#include "daemon/download.hpp"
#include "daemon/log.hpp"
#include "daemon/selection.hpp"
#include "daemon/snapshot_worker.hpp"
#include "daemon/weight_check.hpp"
#include "schema/json.hpp"
#include "schema/version.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace modeld::daemon {
namespace {

// Lets a client's waiting show in the job, and the job's cancellation reach the client.
class ResolveHost final : public fetch::Host {
public:
  explicit ResolveHost(Job& job) : job_(job) {}
  bool cancelled() override { return job_.cancelled(); }
  void on_notice(const fetch::Notice& notice) override {
    log_info("job {}: {}", job_.id(), notice.what);
    job_.set_notice(notice.what);
  }

private:
  Job& job_;
};

struct Asked {
  ModelRef ref;
  PullFor purpose = PullFor::itself;
  bool token = false;
};

Result<Asked> read_detail(const boost::json::object& detail) {
  Asked asked;
  MODELD_ASSIGN(const auto ref, json_string(detail, "ref"));
  MODELD_ASSIGN(asked.ref, ModelRef::parse(ref));
  MODELD_ASSIGN(const auto purpose, json_string(detail, "for"));
  if (purpose == "build") asked.purpose = PullFor::build;
  if (purpose == "weights") asked.purpose = PullFor::weights;
  const auto* token = detail.if_contains("token");
  asked.token = token != nullptr && token->is_bool() && token->get_bool();
  return asked;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) {
    out.push_back(std::move(word));
  }
  return out;
}

boost::json::object answer(const api::Snapshot& snapshot) {
  return {{"snapshot", snapshot.to_json()}};
}

// A token is not kept across a restart of the daemon; then "not found" or "denied" may only mean
// that.
Error explain_token(Error error, const Asked& asked, const Job& job) {
  const bool lost = asked.token && job.token().empty();
  if (!lost || (error.code != Errc::not_found && error.code != Errc::denied)) return error;
  return std::move(error).with_hint(
      "the token that was shown is not kept when the daemon restarts: ask again with it");
}

// One pull, step by step. Lives for one run on one thread.
class Pull {
public:
  Pull(Services& services, Job& job, Asked asked, fetch::HubClient client)
      : services_(services), job_(job), asked_(std::move(asked)),
        client_(std::move(client)), context_{services.store, client_, services.metrics, job} {}

  Result<boost::json::object> run() {
    ResolveHost host(job_);
    job_.begin_phase("resolving");
    MODELD_ASSIGN(resolved_, client_.resolve(asked_.ref.repo, asked_.ref.revision_or_main(),
                                             job_.token(), host));
    // Not where a file of it is damaged: then that is fetched again.
    MODELD_ASSIGN(auto here, find_sound(services_.store, {resolved_.repo, resolved_.commit}));
    const bool open = !resolved_.is_private && !resolved_.gated;
    if (here && open) {
      MODELD_TRY(record(*here));
      return finish(*here);
    }
    job_.begin_phase("listing");
    MODELD_ASSIGN(auto files, client_.list(resolved_.repo, resolved_.commit, job_.token(), host));
    if (here) {
      MODELD_TRY(prove_access(context_, resolved_.repo, resolved_.commit, files));
      MODELD_TRY(record(*here));
      return finish(*here);
    }
    if (asked_.purpose == PullFor::build) {
      MODELD_ASSIGN(const auto selection, parse_selection(asked_.ref.selector, {}));
      MODELD_ASSIGN(const auto choice, choose_files(files, selection));
      if (choice) return fetch_choice(*choice);
    }
    if (asked_.purpose != PullFor::itself) {
      MODELD_TRY(check_listed_weights(resolved_.repo, files));
    }
    return fetch(files);
  }

private:
  Result<boost::json::object> fetch(const std::vector<ListedFile>& files) {
    std::vector<store::BlobHold> holds;
    Snapshot snapshot{resolved_.repo, resolved_.commit, {}};
    MODELD_ASSIGN(snapshot.files,
                  download_files(context_, resolved_.repo, resolved_.commit, files, holds));
    std::sort(snapshot.files.begin(), snapshot.files.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    job_.begin_phase("verifying");
    MODELD_TRY(check_snapshot(services_, job_, snapshot));
    if (job_.cancelled()) return fail(Errc::cancelled, "pulling: cancelled");
    job_.begin_phase("publishing");
    MODELD_TRY(services_.store.publish_snapshot(snapshot));
    MODELD_TRY(record(snapshot));
    return finish(snapshot);
  }

  // Some files alone: each is kept as a variant that is made of nothing but itself.
  Result<boost::json::object> fetch_choice(const Choice& choice) {
    std::vector<store::BlobHold> holds;
    Snapshot chosen{resolved_.repo, resolved_.commit, {}};
    MODELD_ASSIGN(chosen.files,
                  download_files(context_, resolved_.repo, resolved_.commit, choice.parts, holds));
    std::vector<store::Variant> kept;
    for (const SnapshotFile& file : chosen.files) {
      kept.push_back(
          kept_file(chosen, file, kept.empty() ? choice.recipe : file_recipe(file.path)));
    }
    job_.begin_phase("verifying");
    std::sort(chosen.files.begin(), chosen.files.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    MODELD_TRY(check_snapshot(services_, job_, chosen));
    job_.begin_phase("publishing");
    // The first one last: where it is there, all parts are.
    for (auto variant = kept.rbegin(); variant != kept.rend(); ++variant) {
      MODELD_TRY(services_.store.publish_variant(*variant));
    }
    MODELD_TRY(record(chosen));
    return boost::json::object{{"variant", variant_view(services_.store, kept.front()).to_json()}};
  }

  static store::Variant kept_file(const Snapshot& snapshot, const SnapshotFile& file,
                                  const std::string& recipe) {
    store::Variant variant;
    variant.repo = snapshot.repo;
    variant.commit = snapshot.commit;
    variant.recipe = recipe;
    variant.converter = k_converter_version;
    variant.sources = {{file.path, file.sha256}};
    variant.key = store::variant_key({std::string(snapshot.repo.name()),
                                      recipe,
                                      std::string(k_converter_version),
                                      variant.sources,
                                      {}});
    variant.result = file.sha256;
    variant.size = file.size;
    variant.file_name = file.path;
    variant.added = store::now();
    return variant;
  }

  // What a name means, and who may read what it means.
  Result<void> record(const Snapshot& snapshot) {
    const bool closed = resolved_.is_private || resolved_.gated;
    std::optional<std::uint32_t> reader;
    if (closed) reader = job_.uid();
    MODELD_TRY(services_.store.record_access(snapshot.repo, closed, reader));
    if (is_commit(asked_.ref.revision) ||
        snapshot.commit.hex().starts_with(asked_.ref.revision_or_main())) {
      return {};
    }
    return services_.store.record_ref({asked_.ref.repo, std::string(asked_.ref.revision_or_main()),
                                       snapshot.commit, snapshot.repo, store::now()});
  }

  Result<boost::json::object> finish(const Snapshot& snapshot) {
    MODELD_ASSIGN(const auto view, snapshot_view(services_.store, snapshot));
    return answer(view);
  }

  Services& services_;
  Job& job_;
  Asked asked_;
  fetch::HubClient client_;
  DownloadContext context_;
  fetch::Resolved resolved_;
};

} // namespace

JobRequest pull_request(const ModelRef& ref, PullFor purpose, std::uint32_t uid,
                        fetch::Token token) {
  const bool selects = purpose == PullFor::build;
  const ModelRef whole{ref.repo, std::string(ref.revision_or_main()),
                       selects ? ref.selector : std::string()};
  const std::string_view reason = selects                       ? "build"
                                  : purpose == PullFor::weights ? "weights"
                                                                : "itself";
  JobRequest request;
  request.kind = "pull";
  request.ref = whole.str();
  request.key = fmt::format("pull {} {}{}", whole.str(), reason,
                            token.empty() ? std::string() : fmt::format(" user {}", uid));
  request.detail = {{"ref", whole.str()}, {"for", reason}, {"token", !token.empty()}};
  request.uid = uid;
  request.token = std::move(token);
  return request;
}

Result<boost::json::object> run_pull(Services& services, Job& job) {
  MODELD_ASSIGN(Asked asked, read_detail(job.detail()));
  MODELD_ASSIGN(auto client, fetch::HubClient::create(hub_options(services)));
  auto outcome = Pull(services, job, asked, std::move(client)).run();
  if (!outcome) {
    return fail(explain_token(std::move(outcome).error(), asked, job)
                    .context(fmt::format("pulling '{}'", job.ref())));
  }
  return outcome;
}

fetch::HubOptions hub_options(const Services& services) {
  const Config::Hub& hub = services.config.hub;
  fetch::HubOptions options;
  options.endpoint = hub.endpoint;
  options.ca_bundle = hub.ca_bundle;
  options.connect_timeout = hub.connect_timeout;
  options.low_speed_bytes_per_second = hub.low_speed;
  options.low_speed_time = hub.low_speed_time;
  options.max_attempts = static_cast<unsigned>(hub.max_attempts);
  options.retry_budget = hub.retry_budget;
  options.max_renewals = static_cast<unsigned>(hub.max_renewals);
  options.max_redirects = static_cast<unsigned>(hub.max_redirects);
  options.max_parallel = static_cast<unsigned>(hub.max_parallel);
  options.max_ranges = static_cast<unsigned>(hub.max_ranges);
  options.max_buffer_bytes = hub.max_buffer;
  options.api_mirrors = words(hub.api_mirrors);
  options.data_mirrors = words(hub.data_mirrors);
  options.limits = {services.bandwidth};
  options.offline = hub.offline == "yes";
  options.max_answer_bytes = hub.max_answer;
  options.max_pages = hub.max_pages;
  options.max_files = hub.max_files;
  return options;
}

} // namespace modeld::daemon
