// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/build_slots.hpp"
#include "daemon/config.hpp"
#include "daemon/http.hpp"
#include "daemon/job_engine.hpp"
#include "daemon/metrics.hpp"
#include "daemon/path_cache.hpp"
#include "daemon/router.hpp"
#include "fetch/bandwidth.hpp"
#include "store/store.hpp"

#include <chrono>
#include <memory>
#include <optional>

namespace modeld::daemon {

/// What handlers and jobs work with. Owned by the daemon, outlives both; every member may be used
/// from any thread.
struct Services {
  const Config& config;
  store::Store& store;
  JobEngine& jobs;
  Metrics& metrics;
  BuildSlots& builds;
  std::shared_ptr<fetch::Bandwidth> bandwidth; ///< of all pulls together
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  std::shared_ptr<PathCache> paths = std::make_shared<PathCache>(store);
};

// Each file handlers_<resource>.cpp adds its routes; the contract is schema/openapi.yaml.
void add_service_routes(Router& router, Services& services);
void add_snapshot_routes(Router& router, Services& services);
void add_variant_routes(Router& router, Services& services);
void add_job_routes(Router& router, Services& services);
void add_blob_routes(Router& router, Services& services);
void add_lease_routes(Router& router, Services& services);
void add_pin_routes(Router& router, Services& services);
void add_view_routes(Router& router, Services& services);
void add_import_routes(Router& router, Services& services);
void add_hub_routes(Router& router, Services& services);
void add_care_routes(Router& router, Services& services);
void add_check_routes(Router& router, Services& services);

/// The path of a file that was asked for a moment ago: needs no handler thread. Nothing for every
/// other request.
std::optional<std::string> ready_variant(Services& services, const ReadyRequest& request);

/// All of them.
void add_routes(Router& router, Services& services);

} // namespace modeld::daemon
