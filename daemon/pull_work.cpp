// SPDX-License-Identifier: Apache-2.0
#include "daemon/pull_work.hpp"

#include "daemon/catalog.hpp"
#include "daemon/conversion_files.hpp"
#include "daemon/download.hpp"
#include "daemon/job_host.hpp"
#include "daemon/log.hpp"
#include "daemon/model_plan.hpp"
#include "daemon/pull_report.hpp"
#include "daemon/selection.hpp"
#include "daemon/snapshot_worker.hpp"
#include "daemon/weight_check.hpp"
#include "fetch/environment.hpp"
#include "fetch/selection.hpp"
#include "schema/json.hpp"
#include "schema/version.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace modeld::daemon {
namespace {

struct Asked {
  ModelRef ref;
  PullPurpose purpose;
  PullPatterns patterns;
  bool token = false;
};

std::vector<std::string> texts(const boost::json::object& from, std::string_view member) {
  std::vector<std::string> out;
  const auto list = json_array(from, member);
  if (!list) return out;
  for (const auto& one : **list) {
    if (one.is_string()) out.emplace_back(one.get_string());
  }
  return out;
}

boost::json::array array_of(const std::vector<std::string>& texts) {
  return boost::json::array(texts.begin(), texts.end());
}

Result<Asked> read_detail(const boost::json::object& detail) {
  Asked asked;
  MODELD_ASSIGN(const auto ref, json_string(detail, "ref"));
  MODELD_ASSIGN(asked.ref, ModelRef::parse(ref));
  MODELD_ASSIGN(const auto purpose, json_string(detail, "for"));
  if (purpose == "build") asked.purpose.what = PullFor::build;
  if (purpose == "weights") asked.purpose.what = PullFor::weights;
  const auto* mmproj = detail.if_contains("mmproj");
  if (mmproj != nullptr && mmproj->is_bool() && mmproj->get_bool()) {
    asked.purpose.part = ModelPart::projector;
  }
  asked.patterns = {texts(detail, "include"), texts(detail, "exclude")};
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

// A token is not kept across a restart of the daemon; then "not found" or "denied" may only mean
// that.
Error explain_token(Error error, const Asked& asked, const Job& job) {
  const bool lost = asked.token && job.token().empty();
  if (!lost || (error.code != Errc::not_found && error.code != Errc::denied)) return error;
  return std::move(error).with_hint(
      "the token that was shown is not kept when the daemon restarts: ask again with it");
}

// What a request needs of a commit whose list is here.
Result<std::vector<ListedFile>> needed_files(const Services& services, const Asked& asked,
                                             const std::vector<ListedFile>& listing) {
  if (asked.purpose.what == PullFor::itself) {
    if (asked.patterns.all()) return listing;
    return fetch::select_by_patterns(listing, asked.patterns.include, asked.patterns.exclude);
  }
  if (asked.purpose.what == PullFor::build) {
    const bool mmproj = asked.purpose.part == ModelPart::projector;
    MODELD_ASSIGN(const auto selection, parse_selection(asked.ref.selector, {{"mmproj", mmproj}}));
    MODELD_ASSIGN(const auto choice, choose_files(listing, selection));
    if (choice) return choice->parts;
  }
  return conversion_files(services.store, listing);
}

// Without the network it helps to know which files it would be for.
Error explain_missing(Error error, const Services& services, const Asked& asked) {
  constexpr std::size_t k_named = 8;
  if (error.code != Errc::net_permanent && error.code != Errc::net_transient) return error;
  const auto place = find_place(services.store, asked.ref);
  if (!place || !*place) return error;
  const auto here = services.store.find_snapshot((*place)->repo, (*place)->commit);
  if (!here || !*here) return error;
  const auto listing = (*here)->listing();
  const auto needed = needed_files(services, asked, listing);
  std::string names;
  std::size_t missing = 0;
  for (const ListedFile& file : needed ? *needed : listing) {
    if ((*here)->find(file.path) != nullptr) continue;
    if (++missing <= k_named) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", file.path);
  }
  if (missing == 0) return error;
  if (missing > k_named) names += fmt::format(" and {} more", missing - k_named);
  error.message +=
      fmt::format("; {} of its files {} not here: {}", missing, missing == 1 ? "is" : "are", names);
  error.details.emplace_back("missing", std::to_string(missing));
  return error;
}

// One pull, step by step. Lives for one run on one thread.
class Pull {
public:
  Pull(Services& services, Job& job, Asked asked, fetch::HubClient client, fetch::Token token)
      : services_(services), job_(job), asked_(std::move(asked)), client_(std::move(client)),
        token_(std::move(token)), context_{services.store, client_, services.metrics, job, token_} {
  }

  Result<boost::json::object> run() {
    JobHost host(job_);
    job_.begin_phase("resolving");
    MODELD_ASSIGN(resolved_,
                  client_.resolve(asked_.ref.repo, asked_.ref.revision_or_main(), token_, host));
    // Not where a file of it is damaged: then that is fetched again.
    MODELD_ASSIGN(here_, find_sound(services_.store, {resolved_.repo, resolved_.commit}));
    const bool open = !resolved_.is_private && !resolved_.gated;
    if (here_ && open) {
      listing_ = here_->listing();
    } else {
      job_.begin_phase("listing");
      MODELD_ASSIGN(listing_, client_.list(resolved_.repo, resolved_.commit, token_, host));
      if (here_) {
        MODELD_TRY(prove_access(context_, resolved_.repo, resolved_.commit, listing_));
      }
    }
    if (asked_.purpose.what == PullFor::build) {
      const bool mmproj = asked_.purpose.part == ModelPart::projector;
      MODELD_ASSIGN(const auto selection,
                    parse_selection(asked_.ref.selector, {{"mmproj", mmproj}}));
      MODELD_ASSIGN(const auto choice, choose_files(listing_, selection));
      if (choice) return fetch_choice(*choice);
      MODELD_TRY(check_unguided(*selection.recipe));
    }
    MODELD_ASSIGN(const auto chosen, asked_.purpose.what == PullFor::itself
                                         ? choose_by_patterns()
                                         : choose_for_conversion());
    return fetch(chosen);
  }

private:
  Result<std::vector<ListedFile>> choose_by_patterns() {
    if (asked_.patterns.all()) return listing_;
    MODELD_ASSIGN(auto chosen, fetch::select_by_patterns(listing_, asked_.patterns.include,
                                                         asked_.patterns.exclude));
    report_["choice"] = choice_report("patterns", listing_, chosen);
    return chosen;
  }

  // What cannot be built is refused by a few small files, before the weights come.
  Result<std::vector<ListedFile>> choose_for_conversion() {
    MODELD_TRY(check_listed_weights(resolved_.repo, listing_));
    Snapshot early{resolved_.repo, resolved_.commit, {}};
    MODELD_ASSIGN(early.files, download_files(context_, resolved_.repo, resolved_.commit,
                                              deciding_files(listing_), holds_));
    job_.begin_phase("verifying");
    MODELD_TRY(check_architecture(services_, job_, early, asked_.purpose.part));
    MODELD_ASSIGN(auto chosen, conversion_files(services_.store, listing_));
    report_["choice"] = choice_report("conversion", listing_, chosen);
    return chosen;
  }

  Result<boost::json::object> fetch(const std::vector<ListedFile>& chosen) {
    const bool known = here_ && std::all_of(chosen.begin(), chosen.end(), [&](const auto& file) {
                         return here_->find(file.path) != nullptr;
                       });
    if (known) {
      MODELD_TRY(record(*here_));
      return finish(*here_);
    }
    Snapshot snapshot{resolved_.repo, resolved_.commit, {}};
    MODELD_ASSIGN(snapshot.files,
                  download_files(context_, resolved_.repo, resolved_.commit, chosen, holds_));
    std::sort(snapshot.files.begin(), snapshot.files.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    for (const ListedFile& file : listing_) {
      if (snapshot.find(file.path) == nullptr) snapshot.absent.push_back(file);
    }
    job_.begin_phase("verifying");
    if (here_) {
      MODELD_ASSIGN(snapshot, here_->merged_with(snapshot));
    }
    MODELD_TRY(check_snapshot(services_, job_, snapshot));
    if (job_.cancelled()) return fail(Errc::cancelled, "pulling: cancelled");
    job_.begin_phase("publishing");
    MODELD_TRY(services_.store.publish_snapshot(snapshot, job_.uid()));
    MODELD_TRY(record(snapshot));
    return finish(snapshot);
  }

  // Some files alone: each is kept as a variant that is made of nothing but itself.
  Result<boost::json::object> fetch_choice(const Choice& choice) {
    Snapshot chosen{resolved_.repo, resolved_.commit, {}};
    MODELD_ASSIGN(chosen.files,
                  download_files(context_, resolved_.repo, resolved_.commit, choice.parts, holds_));
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
      MODELD_TRY(services_.store.publish_variant(*variant, job_.uid()));
    }
    MODELD_TRY(record(chosen));
    return with_report({{"variant", variant_view(services_.store, kept.front()).to_json()}});
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
    MODELD_TRY(report_move(snapshot.commit));
    return services_.store.record_ref({asked_.ref.repo, std::string(asked_.ref.revision_or_main()),
                                       snapshot.commit, snapshot.repo, store::now()});
  }

  // Told once: what the name meant at the last look, and what differs now. What was there stays.
  Result<void> report_move(const GitOid& commit) {
    if (resolved_.repo != asked_.ref.repo) {
      report_["renamed"] = renamed_report(asked_.ref.repo, resolved_.repo);
    }
    const auto revision = asked_.ref.revision_or_main();
    MODELD_ASSIGN(const auto before, services_.store.find_ref(asked_.ref.repo, revision));
    if (!before || before->commit == commit) return {};
    // A damaged old snapshot can still be left behind.
    const auto old = services_.store.find_snapshot(before->canonical, before->commit);
    const auto files = old && *old ? (*old)->listing() : std::vector<ListedFile>{};
    report_["moved"] = moved_report(revision, before->commit, commit, files, listing_);
    log_info("job {}: '{}@{}' moved from {} to {}", job_.id(), asked_.ref.repo.text, revision,
             before->commit.hex(), commit.hex());
    return {};
  }

  Result<boost::json::object> finish(const Snapshot& snapshot) {
    MODELD_ASSIGN(const auto view, snapshot_view(services_.store, snapshot));
    return with_report({{"snapshot", view.to_json()}});
  }

  boost::json::object with_report(boost::json::object answer) {
    if (!report_.empty()) answer["pull"] = std::move(report_);
    return answer;
  }

  Services& services_;
  Job& job_;
  Asked asked_;
  fetch::HubClient client_;
  fetch::Token token_;
  DownloadContext context_;
  fetch::Resolved resolved_;
  std::optional<Snapshot> here_; ///< what is here of the commit, before this pull
  std::vector<ListedFile> listing_;
  std::vector<store::BlobHold> holds_;
  boost::json::object report_;
};

} // namespace

Result<bool> has_all(const Snapshot& snapshot, const PullPatterns& patterns) {
  if (snapshot.complete()) return true;
  const auto listing = snapshot.listing();
  MODELD_ASSIGN(const auto chosen,
                fetch::select_by_patterns(listing, patterns.include, patterns.exclude));
  return std::all_of(chosen.begin(), chosen.end(),
                     [&](const auto& file) { return snapshot.find(file.path) != nullptr; });
}

JobRequest pull_request(const ModelRef& ref, PullPurpose purpose, const PullPatterns& patterns,
                        std::uint32_t uid, fetch::Token token) {
  const bool selects = purpose.what == PullFor::build;
  const ModelRef whole{ref.repo, std::string(ref.revision_or_main()),
                       selects ? ref.selector : std::string()};
  const std::string_view reason = selects                            ? "build"
                                  : purpose.what == PullFor::weights ? "weights"
                                                                     : "itself";
  JobRequest request;
  request.kind = "pull";
  request.ref = whole.str();
  request.detail = {{"ref", whole.str()}, {"for", reason}, {"token", !token.empty()}};
  if (purpose.part == ModelPart::projector) request.detail["mmproj"] = true;
  if (!patterns.all()) {
    request.detail["include"] = array_of(patterns.include);
    request.detail["exclude"] = array_of(patterns.exclude);
  }
  request.key = fmt::format("pull {}{}", boost::json::serialize(request.detail),
                            token.empty() ? std::string() : fmt::format(" user {}", uid));
  request.uid = uid;
  request.token = std::move(token);
  return request;
}

Result<boost::json::object> run_pull(Services& services, Job& job) {
  MODELD_ASSIGN(Asked asked, read_detail(job.detail()));
  for (const store::SharedStatus& shared : services.store.shared_status()) {
    if (shared.there) continue;
    log_warning("job {}: the shared store '{}' is not there: what only it has is fetched again",
                job.id(), shared.path.string());
  }
  MODELD_ASSIGN(auto client, fetch::HubClient::create(hub_options(services, job)));
  MODELD_ASSIGN(auto token, hub_token(services, job.token()));
  auto outcome = Pull(services, job, asked, std::move(client), std::move(token)).run();
  if (!outcome) {
    auto error = explain_token(std::move(outcome).error(), asked, job);
    return fail(explain_missing(std::move(error), services, asked)
                    .context(fmt::format("pulling '{}'", job.ref())));
  }
  return outcome;
}

Result<fetch::Token> hub_token(const Services& services, const fetch::Token& own) {
  const std::string& path = services.config.hub.token_file;
  if (!own.empty() || path.empty()) return own;
  return fetch::read_private_token_file(fetch::ProcessEnvironment(), path);
}

fetch::HubOptions hub_options(const Services& services) {
  const Config::Hub& hub = services.config.hub;
  fetch::HubOptions options;
  options.endpoint = hub.endpoint;
  options.ca_bundle = hub.ca_bundle;
  options.connect_timeout = hub.connect_timeout;
  options.low_speed_bytes_per_second = hub.low_speed;
  options.low_speed_time = hub.low_speed_time;
  options.head_patience = hub.head_patience;
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

fetch::HubOptions hub_options(const Services& services, const Job& job) {
  fetch::HubOptions options = hub_options(services);
  options.limits.push_back(job.bandwidth());
  return options;
}

} // namespace modeld::daemon
