// SPDX-License-Identifier: Apache-2.0
#include "daemon/variant_work.hpp"

#include "daemon/build.hpp"
#include "daemon/catalog.hpp"
#include "daemon/pull_work.hpp"
#include "schema/api_recipe.hpp"
#include "schema/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace modeld::daemon {
namespace {

// A recipe over a checkpoint of 32 bit floats goes through F32, so that nothing is lost; it has a
// key of its own (design.md section 6).
Recipe through_f32(Recipe recipe) {
  recipe.via = "F32";
  return recipe;
}

Result<std::optional<api::Variant>> find_built(store::Store& store, const Snapshot& snapshot,
                                               const Recipe& recipe) {
  MODELD_ASSIGN(auto variant,
                store.find_variant(snapshot.repo, snapshot.commit, recipe.canonical()));
  if (!variant && recipe.via == "AUTO") {
    MODELD_ASSIGN(variant, store.find_variant(snapshot.repo, snapshot.commit,
                                              through_f32(recipe).canonical()));
  }
  if (!variant) return std::optional<api::Variant>{};
  store.touch(variant->result);
  return std::optional<api::Variant>(variant_view(store, *variant));
}

Error no_such_file(const Snapshot& snapshot, std::string_view file) {
  std::string some;
  std::size_t shown = 0;
  for (const SnapshotFile& one : snapshot.files) {
    if (++shown > 10) break;
    some += (some.empty() ? "" : ", ") + one.path;
  }
  return {Errc::not_found,
          fmt::format("looking for '{}' in '{}@{}': no such file", file, snapshot.repo.text,
                      snapshot.commit.hex()),
          fmt::format("its {} files are: {}{}", snapshot.files.size(), some,
                      snapshot.files.size() > shown ? ", ..." : ""),
          {{"missing", "file"}},
          0};
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
                parse_selector(asked.ref.selector, overrides && overrides->is_object()
                                                       ? overrides->get_object()
                                                       : none));
  return asked;
}

// What is here where that is allowed, else through a pull, which also proves that it is.
Result<Snapshot> ensure_snapshot(Services& services, Job& job, const ModelRef& ref,
                                 PullFor purpose) {
  MODELD_ASSIGN(const auto place, find_place(services.store, ref));
  if (place) {
    MODELD_ASSIGN(auto here, services.store.find_snapshot(place->repo, place->commit));
    MODELD_ASSIGN(const bool allowed, may_read(services.store, place->repo, {job.uid(), 0, 0}));
    if (here && allowed) return *std::move(here);
  }
  JobRequest request = pull_request(ref, purpose, job.uid(), job.token());
  request.by_client = false;
  MODELD_ASSIGN(const auto pull, services.jobs.submit(std::move(request)));
  MODELD_ASSIGN(const auto result, services.jobs.follow(job, pull));
  const auto* shown = result.if_contains("snapshot");
  if (shown == nullptr || !shown->is_object()) {
    return fail(Errc::internal, fmt::format("pulling '{}': no snapshot came of it", ref.str()));
  }
  MODELD_ASSIGN(const auto snapshot, api::Snapshot::from_json(shown->get_object()));
  return require_snapshot(services.store, ModelRef{RepoId{snapshot.repo}, snapshot.commit, {}});
}

} // namespace

Result<Selection> parse_selector(std::string_view selector, const boost::json::object& overrides) {
  Selection selection;
  if (selector.empty()) selector = "AUTO";
  auto recipe = api::recipe_from_json(selector, overrides);
  if (recipe) {
    selection.recipe = *std::move(recipe);
    return selection;
  }
  const bool looks_like_a_file = selector.find_first_of("./") != std::string_view::npos;
  if (!looks_like_a_file) return fail(std::move(recipe).error());
  if (!overrides.empty()) {
    return fail(
        Errc::invalid_argument,
        fmt::format("reading selector '{}': a file of the repository has no recipe", selector));
  }
  selection.file = selector;
  return selection;
}

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

Result<std::optional<api::Variant>> find_selected(store::Store& store, const Snapshot& snapshot,
                                                  const Selection& selection) {
  if (selection.file.empty()) return find_built(store, snapshot, selection.recipe);
  const SnapshotFile* file = snapshot.find(selection.file);
  if (file == nullptr) return fail(no_such_file(snapshot, selection.file));
  store.touch(file->sha256);
  return std::optional<api::Variant>(file_view(store, snapshot, *file));
}

Result<boost::json::object> run_variant(Services& services, Job& job) {
  MODELD_ASSIGN(const Asked asked, read_detail(job.detail()));
  const PullFor purpose = asked.selection.file.empty() ? PullFor::build : PullFor::itself;
  MODELD_ASSIGN(const Snapshot snapshot, ensure_snapshot(services, job, asked.ref, purpose));
  MODELD_ASSIGN(auto here, find_selected(services.store, snapshot, asked.selection));
  if (!here) {
    auto built = build_variant(services, job, snapshot, asked.selection.recipe);
    if (!built) {
      return fail(std::move(built).error().context(fmt::format("building '{}'", job.ref())));
    }
    here = variant_view(services.store, *built);
  }
  return boost::json::object{{"variant", here->to_json()}};
}

} // namespace modeld::daemon
