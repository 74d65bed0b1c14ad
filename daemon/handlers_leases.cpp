// SPDX-License-Identifier: Apache-2.0
#include "daemon/blob_access.hpp"
#include "daemon/request_body.hpp"
#include "daemon/services.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

using Holder = store::LeaseHolder;

constexpr std::uint64_t k_max_seconds = 30U * 24 * 3600; // a month: longer is what pins are for
constexpr std::size_t k_max_note = 200;

boost::json::object lease_json(const store::Lease& lease) {
  boost::json::object out{{"id", lease.id},
                          {"blob", lease.blob.hex()},
                          {"uid", lease.uid},
                          {"created", lease.created},
                          {"note", lease.note}};
  switch (lease.holder.kind) {
  case Holder::Kind::connection:
    out["holder"] = "connection";
    break;
  case Holder::Kind::process:
    out["holder"] = "process";
    out["pid"] = lease.holder.pid;
    break;
  case Holder::Kind::deadline:
    out["holder"] = "deadline";
    out["deadline"] = lease.holder.deadline;
    break;
  }
  return out;
}

Result<Holder> read_holder(const boost::json::object& body, const Request& request) {
  MODELD_ASSIGN(const auto kind, optional_text(body, "holder"));
  MODELD_ASSIGN(const auto pid, optional_number(body, "pid"));
  MODELD_ASSIGN(const auto seconds, optional_number(body, "seconds"));
  Holder holder;
  if (!kind || *kind == "connection") {
    holder.connection = request.connection;
  } else if (*kind == "process") {
    holder.kind = Holder::Kind::process;
    holder.pid = pid ? static_cast<std::int32_t>(*pid) : request.peer.pid;
    if (pid && (*pid == 0 || *pid > INT32_MAX)) {
      return fail(Errc::invalid_argument, fmt::format("reading the request: 'pid' is {}", *pid));
    }
  } else if (*kind == "deadline") {
    if (!seconds || *seconds == 0 || *seconds > k_max_seconds) {
      return fail(Errc::invalid_argument,
                  fmt::format("reading the request: 'seconds' must be 1 to {}", k_max_seconds),
                  "a pin keeps a model for longer");
    }
    holder.kind = Holder::Kind::deadline;
    holder.deadline = store::now() + static_cast<store::UnixTime>(*seconds);
  } else {
    return fail(Errc::invalid_argument,
                fmt::format("reading the request: 'holder' is '{}', allowed are connection, "
                            "process and deadline",
                            *kind));
  }
  return holder;
}

Result<Response> grant(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto body,
                body_object(request, {"blob", "holder", "pid", "seconds", "note", "descriptor"}));
  MODELD_ASSIGN(const auto digest, required_text(body, "blob"));
  MODELD_ASSIGN(const auto holder, read_holder(body, request));
  MODELD_ASSIGN(const auto note, optional_text(body, "note"));
  MODELD_ASSIGN(const bool descriptor, optional_flag(body, "descriptor"));
  MODELD_ASSIGN(const auto blob, require_blob(services.store, digest, request.peer));
  MODELD_TRY(require_unchanged(services, blob));
  MODELD_ASSIGN(const auto lease,
                services.store.grant_lease(blob.sha256, holder, request.peer.uid,
                                           note.value_or("").substr(0, k_max_note)));
  Response response = Response::json(
      {{"lease", lease_json(lease)}, {"path", services.store.blob_path(blob.sha256).string()}});
  if (descriptor) {
    MODELD_ASSIGN(response.passed, open_blob(services.store, blob));
  }
  response.keeps_connection = holder.kind == Holder::Kind::connection;
  return response;
}

Result<Response> list(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto all, services.store.list_leases());
  boost::json::array out;
  for (const store::Lease& lease : all) {
    if (is_admin(request.peer) || lease.uid == request.peer.uid) out.push_back(lease_json(lease));
  }
  return Response::json({{"leases", std::move(out)}});
}

Result<Response> release(Services& services, const Request& request) {
  const std::string_view id = request.part("id");
  MODELD_ASSIGN(const auto all, services.store.list_leases());
  for (const store::Lease& lease : all) {
    if (lease.id != id) continue;
    if (!is_admin(request.peer) && lease.uid != request.peer.uid) break;
    MODELD_TRY(services.store.release_lease(id));
    return Response::json({{"removed", boost::json::array{id}}});
  }
  return fail(Errc::not_found, fmt::format("looking for lease '{}': there is none", id));
}

} // namespace

void add_lease_routes(Router& router, Services& services) {
  const auto with = [&services](auto handler) {
    return [&services, handler](const Request& request) { return handler(services, request); };
  };
  router.add("POST", "/v1/leases", with(grant));
  router.add("GET", "/v1/leases", with(list));
  router.add("DELETE", "/v1/leases/{id}", with(release));
}

} // namespace modeld::daemon
