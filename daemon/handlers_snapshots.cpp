// SPDX-License-Identifier: Apache-2.0
#include "daemon/catalog.hpp"
#include "daemon/link_work.hpp"
#include "daemon/pull_work.hpp"
#include "daemon/request_body.hpp"
#include "daemon/selection.hpp"
#include "daemon/services.hpp"
#include "daemon/user_quotas.hpp"
#include "store/collect.hpp"
#include "store/remove.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace modeld::daemon {
namespace {

boost::json::object job_answer(const Job& job) {
  return {{"job", job.view().to_json()}};
}

Error not_here(const ModelRef& ref) {
  return {Errc::not_found,
          fmt::format("looking for '{}': there is nothing of it here", ref.str()),
          "modelctl ls shows what is here",
          {},
          0};
}

Result<Response> pull(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto body, body_object(request, {"ref", "include", "exclude", "limit_rate"}));
  MODELD_ASSIGN(const auto text, required_text(body, "ref"));
  MODELD_ASSIGN(const auto ref, ModelRef::parse(text));
  if (!ref.selector.empty()) {
    return fail(
        Errc::invalid_argument,
        fmt::format("pulling '{}': a pull takes a whole snapshot, not '{}'", text, ref.selector),
        fmt::format("modelctl get {} pulls what is needed and builds the file; --include takes "
                    "files by name",
                    text));
  }
  PullPatterns patterns;
  MODELD_ASSIGN(patterns.include, optional_texts(body, "include"));
  MODELD_ASSIGN(patterns.exclude, optional_texts(body, "exclude"));
  MODELD_ASSIGN(const auto limit_rate, optional_number(body, "limit_rate"));
  MODELD_ASSIGN(auto token, request_token(request));
  if (is_commit(ref.revision)) {
    MODELD_ASSIGN(const auto place, find_place(services.store, ref));
    MODELD_ASSIGN(const auto here, find_sound(services.store, *place));
    MODELD_ASSIGN(const bool allowed, may_read(services.store, place->repo, request.peer));
    bool enough = here.has_value() && allowed;
    if (enough) {
      MODELD_ASSIGN(enough, has_all(*here, patterns));
    }
    if (enough) {
      MODELD_ASSIGN(const auto view, snapshot_view(services.store, *here));
      return Response::json({{"snapshot", view.to_json()}});
    }
  }
  MODELD_TRY(check_quota(services.store, ref, request.peer.uid));
  JobRequest asked =
      pull_request(ref, {PullFor::itself}, patterns, request.peer.uid, std::move(token));
  asked.limit_rate = limit_rate;
  MODELD_ASSIGN(const auto job, services.jobs.submit(std::move(asked)));
  return Response::json(job_answer(*job), 202);
}

Result<Response> list(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto all, services.store.list_snapshots());
  MODELD_ASSIGN(const auto catalog, Catalog::open(services.store, request.peer));
  boost::json::array out;
  out.reserve(all.size());
  for (const auto& info : all) {
    MODELD_ASSIGN(const bool allowed, catalog.may_read(info.repo));
    if (allowed) out.push_back(catalog.view(info).to_json());
  }
  return Response::json({{"snapshots", std::move(out)}});
}

Result<Response> show(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto ref, ref_part(request));
  MODELD_ASSIGN(const auto snapshot, require_snapshot(services.store, ref));
  MODELD_TRY(check_may_read(services.store, snapshot.repo, request.peer));
  MODELD_ASSIGN(const auto view, snapshot_view(services.store, snapshot));
  boost::json::array files;
  for (const SnapshotFile& file : snapshot.files) {
    files.push_back(boost::json::object{{"path", file.path},
                                        {"size", file.size},
                                        {"sha256", file.sha256.hex()},
                                        {"git_oid", file.git_oid.hex()}});
  }
  boost::json::array absent;
  for (const ListedFile& file : snapshot.absent) {
    absent.push_back(boost::json::object{
        {"path", file.path}, {"size", file.size}, {"git_oid", file.git_oid.hex()}});
  }
  MODELD_ASSIGN(const auto built, services.store.list_variants());
  boost::json::array variants;
  for (const store::Variant& variant : built) {
    if (variant.repo != snapshot.repo || variant.commit != snapshot.commit) continue;
    variants.push_back(variant_view(services.store, variant).to_json());
  }
  return Response::json({{"snapshot", view.to_json()},
                         {"files", std::move(files)},
                         {"absent", std::move(absent)},
                         {"variants", std::move(variants)}});
}

// Files of the view that a kept file and its snapshot share go with the first of the two: the view
// is mended where the snapshot stays.
Result<void> remove_variants(Services& services, const std::vector<store::Variant>& variants,
                             boost::json::array& removed) {
  for (const store::Variant& variant : variants) {
    auto gone = services.store.remove_variant(variant.key);
    if (!gone && gone.error().code != Errc::not_found) return fail(std::move(gone).error());
    removed.emplace_back(variant.file_name);
    MODELD_ASSIGN(const auto snapshot, services.store.find_snapshot(variant.repo, variant.commit));
    if (snapshot && snapshot->find(variant.file_name) != nullptr) {
      MODELD_TRY(services.store.publish_snapshot(*snapshot));
    }
  }
  return {};
}

// Those of a place that a selector means; all without one.
Result<std::vector<store::Variant>> find_variants(Services& services, const Place& place,
                                                  std::string_view selector) {
  MODELD_ASSIGN(auto all, services.store.list_variants());
  std::optional<Selection> wanted;
  if (!selector.empty()) {
    MODELD_ASSIGN(wanted, parse_selection(selector, {}));
  }
  std::erase_if(all, [&](const store::Variant& variant) {
    if (variant.repo != place.repo || variant.commit != place.commit) return true;
    if (!wanted) return false;
    for (const auto& kept :
         {file_recipe(wanted->text), tag_recipe(wanted->text), projector_recipe(wanted->text)}) {
      if (variant.recipe == kept) return false;
    }
    const std::string target = variant.recipe.substr(0, variant.recipe.find(';'));
    return !wanted->recipe || target != wanted->recipe->target;
  });
  return all;
}

Result<bool> wants_force(const Request& request) {
  if (request.body.empty()) return false;
  MODELD_ASSIGN(const auto body, body_object(request, {"force"}));
  return optional_flag(body, "force");
}

// Who has one of them open, leased or held is told.
Result<void> check_unused(Services& services, const ModelRef& ref,
                          const std::vector<store::Variant>& variants, bool force) {
  if (force) return {};
  std::vector<Sha256Digest> blobs;
  for (const store::Variant& variant : variants) {
    blobs.push_back(variant.result);
  }
  MODELD_ASSIGN(const auto users, store::users_of(services.store, blobs));
  if (users.empty()) return {};
  return fail(Errc::conflict,
              fmt::format("removing '{}': in use by {}", ref.str(), fmt::join(users, ", ")),
              "end what uses it, or pass --force: readers keep their bytes until they end");
}

Result<Response> remove(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto ref, ref_part(request));
  MODELD_ASSIGN(const auto place, find_place(services.store, ref));
  if (!place) return fail(not_here(ref));
  MODELD_TRY(check_may_read(services.store, place->repo, request.peer));
  MODELD_ASSIGN(const bool force, wants_force(request));
  MODELD_ASSIGN(const auto variants, find_variants(services, *place, ref.selector));
  boost::json::array removed;
  boost::json::array left;
  if (ref.selector.empty()) {
    auto report = store::remove_model(services.store, place->repo, place->commit, force);
    if (!report && report.error().code == Errc::not_found) return fail(not_here(ref));
    if (!report) return fail(std::move(report).error());
    removed.emplace_back(fmt::format("{}@{}", place->repo.text, place->commit.hex()));
    for (const store::Variant& variant : variants) {
      removed.emplace_back(variant.file_name);
    }
    for (const std::string& view : report->hidden) {
      removed.emplace_back(view);
    }
    for (const std::string& path : report->left) {
      left.emplace_back(path);
    }
  } else {
    MODELD_TRY(check_unused(services, ref, variants, force));
    MODELD_TRY(remove_variants(services, variants, removed));
  }
  sync_links_later(services);
  if (removed.empty()) return fail(not_here(ref));
  return Response::json({{"removed", std::move(removed)}, {"left", std::move(left)}});
}

} // namespace

void add_snapshot_routes(Router& router, Services& services) {
  const auto with = [&services](auto handler) {
    return [&services, handler](const Request& request) { return handler(services, request); };
  };
  router.add("POST", "/v1/pulls", with(pull));
  router.add("GET", "/v1/snapshots", with(list));
  router.add("GET", "/v1/snapshots/{ref...}", with(show));
  router.add("DELETE", "/v1/snapshots/{ref...}", with(remove));
}

} // namespace modeld::daemon
