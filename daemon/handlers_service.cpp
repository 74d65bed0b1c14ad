// SPDX-License-Identifier: Apache-2.0
#include "daemon/catalog.hpp"
#include "daemon/services.hpp"
#include "daemon/user_quotas.hpp"
#include "daemon/version_text.hpp"
#include "schema/embedded_file.hpp"
#include "schema/version.hpp"
#include "store/disk_use.hpp"

#include <boost/json.hpp>

#include <algorithm>

namespace modeld::daemon {
namespace {

Result<Response> health(Services& services) {
  const auto up = std::chrono::steady_clock::now() - services.started;
  return Response::json(
      {{"status", "ok"},
       {"store", services.store.id()},
       {"root", services.store.root().string()},
       {"uptime_seconds", std::chrono::duration_cast<std::chrono::seconds>(up).count()}});
}

Result<Response> version() {
  return Response::json({{"version", k_version},
                         {"converter", k_converter_version},
                         {"reference", k_reference},
                         {"kernel", kernel_text()}});
}

Result<Response> contract() {
  for (const EmbeddedFile& file : contracts::files()) {
    if (file.name == "openapi.yaml") {
      return Response::text(std::string(file.text), "application/yaml");
    }
  }
  return fail(Errc::internal, "looking for the contract: it is not part of the program");
}

boost::json::object disk_json(const store::DiskUse& use) {
  return {{"snapshots", use.listed},      {"variants", use.built},
          {"unnamed", use.unnamed},       {"unfinished", use.unfinished},
          {"quarantine", use.quarantine}, {"reserve_file", use.reserve},
          {"records", use.records},       {"total", use.total()}};
}

// Who is charged for what is for those who may see everything; anybody sees their own.
Result<boost::json::array> users_json(Services& services, const Peer& peer) {
  MODELD_ASSIGN(auto users, services.store.user_usage());
  if (!is_admin(peer)) {
    std::erase_if(users, [&peer](const store::UserUsage& user) { return user.uid != peer.uid; });
  }
  const bool listed =
      std::any_of(users.begin(), users.end(),
                  [&peer](const store::UserUsage& user) { return user.uid == peer.uid; });
  const std::uint64_t own = services.store.quota_of(peer.uid);
  if (!listed && own != 0) users.push_back({peer.uid, 0, 0, own});
  return user_usage_json(users);
}

boost::json::array shared_json(const store::Store& store) {
  boost::json::array list;
  for (const store::SharedStatus& root : store.shared_status()) {
    list.push_back(boost::json::object{
        {"root", root.path.string()}, {"there", root.there}, {"snapshots", root.snapshots}});
  }
  return list;
}

Result<Response> usage(Services& services, const Request& request) {
  MODELD_ASSIGN(const store::Usage space, services.store.usage());
  MODELD_ASSIGN(const auto snapshots, services.store.list_snapshots());
  MODELD_ASSIGN(const auto variants, services.store.list_variants());
  MODELD_ASSIGN(const auto stored, services.store.stored_bytes());
  MODELD_ASSIGN(const auto disk, store::measure_disk_use(services.store));
  MODELD_ASSIGN(auto users, users_json(services, request.peer));
  std::uint64_t snapshot_bytes = 0;
  std::uint64_t variant_bytes = 0;
  for (const auto& snapshot : snapshots) {
    snapshot_bytes += snapshot.bytes;
  }
  for (const auto& variant : variants) {
    variant_bytes += variant.size;
  }
  return Response::json({{"capacity", space.capacity},
                         {"free", space.free},
                         {"reserved", space.reserved},
                         {"stored", stored},
                         {"quota", services.config.store.max_bytes},
                         {"snapshots", snapshots.size()},
                         {"variants", variants.size()},
                         {"snapshot_bytes", snapshot_bytes},
                         {"variant_bytes", variant_bytes},
                         {"disk", disk_json(disk)},
                         {"users", std::move(users)},
                         {"shared_roots", shared_json(services.store)}});
}

} // namespace

void add_service_routes(Router& router, Services& services) {
  router.add("GET", "/v1/health", [&services](const Request&) { return health(services); });
  router.add("GET", "/v1/version", [](const Request&) { return version(); });
  router.add("GET", "/v1/openapi.yaml", [](const Request&) { return contract(); });
  router.add("GET", "/v1/usage",
             [&services](const Request& request) { return usage(services, request); });
  router.add("GET", "/metrics", [&services](const Request&) -> Result<Response> {
    return Response::text(services.metrics.text(), "text/plain; version=0.0.4");
  });
}

void add_routes(Router& router, Services& services) {
  add_service_routes(router, services);
  add_snapshot_routes(router, services);
  add_variant_routes(router, services);
  add_job_routes(router, services);
  add_blob_routes(router, services);
  add_lease_routes(router, services);
  add_pin_routes(router, services);
  add_view_routes(router, services);
  add_import_routes(router, services);
  add_hub_routes(router, services);
  add_care_routes(router, services);
  add_check_routes(router, services);
}

} // namespace modeld::daemon
