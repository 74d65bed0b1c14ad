// SPDX-License-Identifier: Apache-2.0
#include "daemon/catalog.hpp"
#include "daemon/request_body.hpp"
#include "daemon/selection.hpp"
#include "daemon/services.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

boost::json::object pin_json(const store::Pin& pin) {
  boost::json::array recipes;
  for (const std::string& recipe : pin.recipes) {
    recipes.emplace_back(recipe);
  }
  return {{"name", pin.name},
          {"repo", pin.repo.text},
          {"commit", pin.commit.hex()},
          {"recipes", std::move(recipes)},
          {"uid", pin.uid},
          {"created", pin.created}};
}

Error no_pin(std::string_view name) {
  return {Errc::not_found,
          fmt::format("looking for pin '{}': there is none", name),
          "modelctl ls --pins lists the pins",
          {},
          0};
}

Result<void> check_owner(const store::Pin& pin, const Peer& peer) {
  if (is_admin(peer) || pin.uid == peer.uid) return {};
  return fail(Errc::denied, fmt::format("changing pin '{}': it is user {}'s", pin.name, pin.uid));
}

Result<Response> put(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto body, body_object(request, {"ref"}));
  MODELD_ASSIGN(const auto text, required_text(body, "ref"));
  MODELD_ASSIGN(const auto ref, ModelRef::parse(text));
  MODELD_ASSIGN(const auto snapshot, require_snapshot(services.store, ref));
  MODELD_TRY(check_may_read(services.store, snapshot.repo, request.peer));
  MODELD_ASSIGN(const auto before, services.store.find_pin(request.part("name")));
  if (before) MODELD_TRY(check_owner(*before, request.peer));
  store::Pin pin;
  pin.name = request.part("name");
  pin.repo = snapshot.repo;
  pin.commit = snapshot.commit;
  pin.uid = request.peer.uid;
  pin.created = store::now();
  if (!ref.selector.empty()) {
    MODELD_ASSIGN(const auto selection, parse_selection(ref.selector, {}));
    MODELD_ASSIGN(const auto choice, choose_files(snapshot, selection));
    if (!choice) pin.recipes.push_back(selection.recipe->canonical());
  }
  MODELD_TRY(services.store.put_pin(pin));
  return Response::json({{"pin", pin_json(pin)}});
}

Result<Response> show(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto pin, services.store.find_pin(request.part("name")));
  if (!pin) return fail(no_pin(request.part("name")));
  MODELD_TRY(check_may_read(services.store, pin->repo, request.peer));
  return Response::json({{"pin", pin_json(*pin)}});
}

Result<Response> list(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto all, services.store.list_pins());
  boost::json::array out;
  for (const store::Pin& pin : all) {
    MODELD_ASSIGN(const bool allowed, may_read(services.store, pin.repo, request.peer));
    if (allowed) out.push_back(pin_json(pin));
  }
  return Response::json({{"pins", std::move(out)}});
}

Result<Response> remove(Services& services, const Request& request) {
  const std::string_view name = request.part("name");
  MODELD_ASSIGN(const auto pin, services.store.find_pin(name));
  if (!pin) return fail(no_pin(name));
  MODELD_TRY(check_owner(*pin, request.peer));
  MODELD_TRY(services.store.delete_pin(name));
  return Response::json({{"removed", boost::json::array{name}}});
}

} // namespace

void add_pin_routes(Router& router, Services& services) {
  const auto with = [&services](auto handler) {
    return [&services, handler](const Request& request) { return handler(services, request); };
  };
  router.add("GET", "/v1/pins", with(list));
  router.add("GET", "/v1/pins/{name}", with(show));
  router.add("PUT", "/v1/pins/{name}", with(put));
  router.add("DELETE", "/v1/pins/{name}", with(remove));
}

} // namespace modeld::daemon
