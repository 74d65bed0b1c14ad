// SPDX-License-Identifier: Apache-2.0
#include "daemon/catalog.hpp"
#include "daemon/request_body.hpp"
#include "daemon/services.hpp"
#include "daemon/user_quotas.hpp"
#include "daemon/variant_work.hpp"
#include "store/quarantine.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

Result<boost::json::object> overrides_of(const boost::json::object& body) {
  const auto* value = body.if_contains("recipe");
  if (value == nullptr) return boost::json::object{};
  if (!value->is_object()) {
    return fail(Errc::invalid_argument, "reading the request: member 'recipe' must be an object");
  }
  return value->get_object();
}

// The fast way: nothing but look-ups in the index.
Result<std::optional<api::Variant>> find_here(Services& services, const Request& request,
                                              const ModelRef& ref, const Selection& selection) {
  MODELD_ASSIGN(const auto place, find_place(services.store, ref));
  if (!place) return std::optional<api::Variant>{};
  MODELD_ASSIGN(const bool allowed, may_read(services.store, place->repo, request.peer));
  if (!allowed) return std::optional<api::Variant>{};
  auto found = find_selected(services.store, *place, selection);
  // Damaged, or perhaps changed since it was proved: a job finds out, and builds or fetches again.
  if (!found && found.error().code == Errc::corrupt) return std::optional<api::Variant>{};
  if (!found || !*found) return found;
  MODELD_ASSIGN(const auto digest, Sha256Digest::parse((*found)->sha256));
  if (!store::looks_unchanged(services.store, digest)) return std::optional<api::Variant>{};
  return found;
}

Result<Response> build(Services& services, const Request& request) {
  if (auto known = services.paths->answer(request.peer, request.body)) {
    return Response::text(*std::move(known), "application/json");
  }
  MODELD_ASSIGN(const auto body, body_object(request, {"ref", "recipe", "limit_rate"}));
  MODELD_ASSIGN(const auto text, required_text(body, "ref"));
  MODELD_ASSIGN(const auto ref, ModelRef::parse(text));
  MODELD_ASSIGN(const auto overrides, overrides_of(body));
  MODELD_ASSIGN(const auto limit_rate, optional_number(body, "limit_rate"));
  const std::uint64_t generation = services.store.generation();
  MODELD_ASSIGN(const auto selection, parse_selection(ref.selector, overrides));
  MODELD_ASSIGN(const auto here, find_here(services, request, ref, selection));
  if (here) {
    MODELD_ASSIGN(const auto digest, Sha256Digest::parse(here->sha256));
    auto response = Response::json({{"variant", here->to_json()}});
    services.paths->put(request.peer, request.body, generation, digest,
                        std::get<std::string>(response.body));
    return response;
  }
  MODELD_TRY(check_quota(services.store, ref, request.peer.uid));
  MODELD_ASSIGN(auto token, request_token(request));
  JobRequest asked = variant_request(ref, overrides, request.peer.uid, std::move(token));
  asked.limit_rate = limit_rate;
  MODELD_ASSIGN(const auto job, services.jobs.submit(std::move(asked)));
  return Response::json({{"job", job->view().to_json()}}, 202);
}

Result<store::Variant> find(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto key, Sha256Digest::parse(request.part("key")));
  MODELD_ASSIGN(auto variant, services.store.find_variant(key));
  if (!variant) {
    return fail(Errc::not_found, fmt::format("looking for variant '{}': there is none", key.hex()));
  }
  MODELD_TRY(check_may_read(services.store, variant->repo, request.peer));
  return *std::move(variant);
}

Result<Response> list(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto all, services.store.list_variants());
  MODELD_ASSIGN(const auto catalog, Catalog::open(services.store, request.peer));
  boost::json::array out;
  for (const store::Variant& variant : all) {
    MODELD_ASSIGN(const bool allowed, catalog.may_read(variant.repo));
    if (allowed) out.push_back(variant_view(services.store, variant).to_json());
  }
  return Response::json({{"variants", std::move(out)}});
}

Result<Response> show(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto variant, find(services, request));
  return Response::json({{"variant", variant_view(services.store, variant).to_json()}});
}

Result<Response> remove(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto variant, find(services, request));
  MODELD_TRY(services.store.remove_variant(variant.key));
  return Response::json({{"removed", boost::json::array{variant.file_name}}});
}

} // namespace

std::optional<std::string> ready_variant(Services& services, const ReadyRequest& request) {
  if (request.method != "POST" || request.target != "/v1/variants") return std::nullopt;
  return services.paths->answer_at_once(request.peer, request.body);
}

void add_variant_routes(Router& router, Services& services) {
  const auto with = [&services](auto handler) {
    return [&services, handler](const Request& request) { return handler(services, request); };
  };
  router.add("POST", "/v1/variants", with(build));
  router.add("GET", "/v1/variants", with(list));
  router.add("GET", "/v1/variants/{key}", with(show));
  router.add("DELETE", "/v1/variants/{key}", with(remove));
}

} // namespace modeld::daemon
