// SPDX-License-Identifier: Apache-2.0
#include "daemon/variant_work.hpp"

#include "daemon/build.hpp"
#include "daemon/conversion_files.hpp"
#include "daemon/log.hpp"
#include "daemon/pull_work.hpp"
#include "schema/json.hpp"
#include "store/quarantine.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

using Found = std::optional<api::Variant>;

Result<Found> find_kept(store::Store& store, const Place& place, const std::string& recipe) {
  MODELD_ASSIGN(const auto variant, store.find_variant(place.repo, place.commit, recipe));
  if (!variant) return Found{};
  store.touch(variant->result);
  return Found(variant_view(store, *variant));
}

// A recipe over a checkpoint of 32 bit floats goes through F32, so that nothing is lost; it has a
// key of its own (design section 6).
Result<Found> find_built(store::Store& store, const Place& place, Recipe recipe) {
  MODELD_ASSIGN(auto found, find_kept(store, place, recipe.canonical()));
  if (found || recipe.via != "AUTO") return found;
  recipe.via = "F32";
  return find_kept(store, place, recipe.canonical());
}

Result<Found> find_in_snapshot(store::Store& store, const Snapshot& snapshot,
                               const Selection& selection) {
  MODELD_ASSIGN(const auto choice, choose_files(snapshot, selection));
  if (!choice) {
    return find_built(store, {snapshot.repo, snapshot.commit}, *selection.recipe);
  }
  const Place place{snapshot.repo, snapshot.commit};
  for (const ListedFile& part : choice->parts) {
    // Absent from the snapshot, it may still be kept alone.
    if (snapshot.find(part.path) == nullptr) return find_kept(store, place, choice->recipe);
  }
  const SnapshotFile& file = *snapshot.find(choice->parts.front().path);
  store.touch(file.sha256);
  return Found(file_view(store, snapshot, file));
}

// What is here of the snapshot where that is all that the selection needs.
Result<std::optional<Snapshot>> usable(store::Store& store, const Snapshot& snapshot,
                                       const Selection& selection) {
  MODELD_ASSIGN(const auto found, find_in_snapshot(store, snapshot, selection));
  MODELD_ASSIGN(const auto choice, choose_files(snapshot, selection));
  if (choice) return found ? std::optional(snapshot) : std::optional<Snapshot>{};
  auto part = conversion_part(store, snapshot);
  if (part && *part) return part;
  // Built before, or a matter for the conversion to tell what is wrong.
  if (found || (!part && snapshot.complete())) return std::optional(snapshot);
  return part;
}

struct Asked {
  ModelRef ref;
  Selection selection;
};

Result<Asked> read_detail(const boost::json::object& detail) {
  Asked asked;
  MODELD_ASSIGN(const auto ref, json_string(detail, "ref"));
  MODELD_ASSIGN(asked.ref, ModelRef::parse(ref));
  const auto* overrides = detail.if_contains("recipe");
  const boost::json::object none;
  MODELD_ASSIGN(asked.selection,
                parse_selection(asked.ref.selector, overrides && overrides->is_object()
                                                        ? overrides->get_object()
                                                        : none));
  return asked;
}

// What is here where that is allowed.
Result<std::optional<Place>> readable_place(Services& services, const Job& job,
                                            const ModelRef& ref) {
  MODELD_ASSIGN(const auto place, find_place(services.store, ref));
  if (!place) return place;
  MODELD_ASSIGN(const bool allowed, may_read(services.store, place->repo, {job.uid(), 0, 0}));
  return allowed ? place : std::optional<Place>{};
}

// The snapshot that the pull made, or the file itself, where that was all that was needed.
struct Pulled {
  std::optional<Snapshot> snapshot;
  boost::json::object answer;
};

Result<Pulled> pull(Services& services, Job& job, const Asked& asked) {
  const PullPurpose purpose{asked.selection.overridden ? PullFor::weights : PullFor::build,
                            asked.selection.mmproj ? ModelPart::projector : ModelPart::model};
  JobRequest request = pull_request(asked.ref, purpose, {}, job.uid(), job.token());
  request.by_client = false;
  if (const std::uint64_t limit = job.bandwidth()->limit(); limit != 0) request.limit_rate = limit;
  MODELD_ASSIGN(const auto child, services.jobs.submit(std::move(request)));
  Pulled pulled;
  MODELD_ASSIGN(pulled.answer, services.jobs.follow(job, child));
  const auto* shown = pulled.answer.if_contains("snapshot");
  if (shown == nullptr || !shown->is_object()) return pulled;
  MODELD_ASSIGN(const auto view, api::Snapshot::from_json(shown->get_object()));
  MODELD_ASSIGN(pulled.snapshot,
                require_snapshot(services.store, ModelRef{RepoId{view.repo}, view.commit, {}}));
  return pulled;
}

// What somebody changed is quarantined, and then counts as not here.
Result<Found> find_unchanged(Services& services, const Snapshot& snapshot,
                             const Selection& selection) {
  MODELD_ASSIGN(auto found, find_in_snapshot(services.store, snapshot, selection));
  if (!found) return found;
  MODELD_ASSIGN(const auto digest, Sha256Digest::parse(found->sha256));
  auto good = store::check_before_use(services.store, digest);
  if (good) return found;
  if (good.error().code != Errc::corrupt || found->key.empty()) {
    return fail(std::move(good).error());
  }
  log_warning("{}", good.error().message);
  return Found{};
}

Result<boost::json::object> build(Services& services, Job& job, const Snapshot& snapshot,
                                  const Selection& selection) {
  MODELD_ASSIGN(auto found, find_unchanged(services, snapshot, selection));
  if (!found) {
    auto built = build_variant(services, job, snapshot, *selection.recipe);
    if (!built) {
      return fail(std::move(built).error().context(fmt::format("building '{}'", job.ref())));
    }
    found = variant_view(services.store, *built);
  }
  return boost::json::object{{"variant", found->to_json()}};
}

} // namespace

JobRequest variant_request(const ModelRef& ref, const boost::json::object& overrides,
                           std::uint32_t uid, fetch::Token token) {
  const ModelRef whole{ref.repo, std::string(ref.revision_or_main()),
                       ref.selector.empty() ? "AUTO" : ref.selector};
  JobRequest request;
  request.kind = "variant";
  request.ref = whole.str();
  request.key = fmt::format("variant {} {}{}", whole.str(), boost::json::serialize(overrides),
                            token.empty() ? std::string() : fmt::format(" user {}", uid));
  request.detail = {{"ref", whole.str()}, {"recipe", overrides}, {"token", !token.empty()}};
  request.uid = uid;
  request.token = std::move(token);
  return request;
}

Result<Found> find_selected(store::Store& store, const Place& place, const Selection& selection) {
  MODELD_ASSIGN(const auto snapshot, store.find_snapshot(place.repo, place.commit));
  if (snapshot) return find_in_snapshot(store, *snapshot, selection);
  if (!selection.overridden) {
    const std::string recipe = selection.mmproj      ? projector_recipe(selection.text)
                               : selection.is_file() ? file_recipe(selection.text)
                                                     : tag_recipe(selection.text);
    MODELD_ASSIGN(auto chosen, find_kept(store, place, recipe));
    if (chosen) return chosen;
  }
  return selection.recipe ? find_built(store, place, *selection.recipe) : Result<Found>(Found{});
}

Result<boost::json::object> run_variant(Services& services, Job& job) {
  MODELD_ASSIGN(const Asked asked, read_detail(job.detail()));
  MODELD_ASSIGN(const auto place, readable_place(services, job, asked.ref));
  if (place) {
    MODELD_ASSIGN(const auto here, services.store.find_snapshot(place->repo, place->commit));
    std::optional<Snapshot> enough;
    if (here) {
      MODELD_ASSIGN(enough, usable(services.store, *here, asked.selection));
    }
    if (enough) return build(services, job, *enough, asked.selection);
  }
  MODELD_ASSIGN(const Pulled pulled, pull(services, job, asked));
  if (!pulled.snapshot) return pulled.answer;
  MODELD_ASSIGN(const auto enough, usable(services.store, *pulled.snapshot, asked.selection));
  MODELD_ASSIGN(auto answer,
                build(services, job, enough.value_or(*pulled.snapshot), asked.selection));
  if (const auto* report = pulled.answer.if_contains("pull")) answer["pull"] = *report;
  return answer;
}

} // namespace modeld::daemon
