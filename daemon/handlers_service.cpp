// SPDX-License-Identifier: Apache-2.0
#include "daemon/services.hpp"
#include "daemon/version_text.hpp"
#include "schema/embedded_file.hpp"
#include "schema/version.hpp"

#include <boost/json.hpp>

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

Result<Response> usage(Services& services) {
  MODELD_ASSIGN(const store::Usage space, services.store.usage());
  MODELD_ASSIGN(const auto snapshots, services.store.list_snapshots());
  MODELD_ASSIGN(const auto variants, services.store.list_variants());
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
                         {"snapshots", snapshots.size()},
                         {"variants", variants.size()},
                         {"snapshot_bytes", snapshot_bytes},
                         {"variant_bytes", variant_bytes}});
}

} // namespace

void add_service_routes(Router& router, Services& services) {
  router.add("GET", "/v1/health", [&services](const Request&) { return health(services); });
  router.add("GET", "/v1/version", [](const Request&) { return version(); });
  router.add("GET", "/v1/openapi.yaml", [](const Request&) { return contract(); });
  router.add("GET", "/v1/usage", [&services](const Request&) { return usage(services); });
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
