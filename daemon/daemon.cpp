// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon.hpp"

#include "daemon/accounts.hpp"
#include "daemon/care_work.hpp"
#include "daemon/import_work.hpp"
#include "daemon/link_work.hpp"
#include "daemon/listener.hpp"
#include "daemon/log.hpp"
#include "daemon/mirror.hpp"
#include "daemon/paths.hpp"
#include "daemon/pull_work.hpp"
#include "daemon/remote_check.hpp"
#include "daemon/repair_work.hpp"
#include "daemon/server.hpp"
#include "daemon/services.hpp"
#include "daemon/store_records.hpp"
#include "daemon/upkeep.hpp"
#include "daemon/user_quotas.hpp"
#include "daemon/variant_work.hpp"
#include "daemon/version_text.hpp"
#include "schema/version.hpp"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

#include <csignal>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>

namespace modeld::daemon {
namespace {

// Variants mostly wait: for their pull, then for a build slot.
constexpr std::size_t k_variant_threads = 64;

// Whether there may be more or less to show to other programs after such a job.
bool changes_content(std::string_view kind) {
  return kind == "pull" || kind == "variant" || kind == "import" || kind == "gc" ||
         kind == "repair";
}

// Every thread inherits the mask, so that only sigwait() below gets these signals. SIGPIPE would
// end the daemon when a client goes away.
sigset_t block_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

void add_gauges(Services& services, const Server& server) {
  Metrics& metrics = services.metrics;
  metrics.gauge("modeld_connections", "Open connections",
                [&server] { return static_cast<double>(server.connections()); });
  metrics.gauge("modeld_event_streams", "Open event streams",
                [&server] { return static_cast<double>(server.streams()); });
  metrics.gauge("modeld_jobs_unfinished", "Jobs that wait or run", [&services] {
    const auto jobs = services.jobs.list();
    return static_cast<double>(
        std::count_if(jobs.begin(), jobs.end(), [](const auto& job) { return !job->finished(); }));
  });
  metrics.gauge("modeld_store_free_bytes", "Free space of the store's file system", [&services] {
    const auto usage = services.store.usage();
    return usage ? static_cast<double>(usage->free) : 0.0;
  });
  metrics.gauge("modeld_store_reserved_bytes", "Space promised to running jobs", [&services] {
    const auto usage = services.store.usage();
    return usage ? static_cast<double>(usage->reserved) : 0.0;
  });
}

// In a new home what is above the default folder may be missing; the XDG specification wants it
// made, and closed to others. Above a folder that somebody chose nothing is made: it may be a
// mount.
Result<void> make_above(const std::filesystem::path& root) {
  std::error_code ec;
  const auto above = root.parent_path();
  if (root != default_root() || std::filesystem::exists(above, ec)) return {};
  for (auto at = std::filesystem::path(); const auto& part : above) {
    at /= part;
    if (::mkdir(at.c_str(), 0700) != 0 && errno != EEXIST) {
      return fail(from_errno(errno, fmt::format("making '{}'", at.string())));
    }
  }
  return {};
}

Result<std::unique_ptr<store::Store>> open_store(const Config::Store& config,
                                                 const StoreRepair& repair) {
  store::StoreOptions options;
  options.expected_id = config.id;
  options.min_free = config.min_free;
  options.reserve_file = config.reserve_file;
  options.max_bytes = config.max_bytes;
  MODELD_ASSIGN(options.user_quotas, read_user_quotas(config.user_quota, config.user_quotas));
  options.shared_patience = config.shared_patience;
  options.blob_mode = static_cast<std::uint32_t>(config.blob_mode);
  options.folder_mode = static_cast<std::uint32_t>(config.folder_mode);
  if (!config.group.empty()) {
    auto group = group_id(config.group);
    if (!group) return fail(std::move(group).error().context("reading 'store.group'"));
    options.group = *group;
  }
  options.rebuild_index = repair.rebuild_index;
  options.restore_marker = repair.restore_marker;
  MODELD_TRY(make_above(config.root));
  std::istringstream roots(config.shared_roots);
  for (std::string root; std::getline(roots, root, ':');) {
    if (!root.empty()) options.shared_roots.emplace_back(root);
  }
  return store::Store::open(config.root, options);
}

Result<ListeningSocket> open_socket(const Config::Server& config) {
  std::optional<gid_t> group;
  if (!config.socket_group.empty()) {
    auto id = group_id(config.socket_group);
    if (!id) return fail(std::move(id).error().context("reading 'server.socket_group'"));
    group = *id;
  }
  return ListeningSocket::open(config.socket, static_cast<unsigned>(config.socket_mode), group);
}

Result<void> start_mirror(Server& server, const std::string& address) {
  if (address.empty()) return {};
  MODELD_ASSIGN(const auto port, server.start_loopback(address));
  log_info("Hub clients use the store with HF_ENDPOINT=http://{}:{}",
           address.substr(0, address.rfind(':')), port);
  return {};
}

void wait_for_signal(const sigset_t& signals) {
  sd_notify(0, "READY=1");
  int signal = 0;
  sigwait(&signals, &signal);
  log_info("stopping on signal {}", signal);
  sd_notify(0, "STOPPING=1");
}

void stop_jobs(JobEngine& jobs, const Config& config) {
  if (jobs.stop(config.server.stop_timeout)) return;
  // A job that does not come back must not hold the stop: it goes on from its files at the next
  // start, as after a crash.
  log_warning("stopping: jobs did not stop within {} s, leaving them",
              std::chrono::duration_cast<std::chrono::seconds>(config.server.stop_timeout).count());
  ::_exit(0);
}

} // namespace

Result<void> run_daemon(const Config& config, const StoreRepair& repair) {
  set_log_level(config.log.level);
  const sigset_t signals = block_signals();
  // The socket first: clients that come while the store opens wait instead of failing.
  MODELD_ASSIGN(auto socket, open_socket(config.server));
  MODELD_ASSIGN(const auto store, open_store(config.store, repair));
  for (const std::string& sentence : store->mended()) {
    log_warning("opening store '{}': {}", config.store.root, sentence);
  }
  StoreJobRecords records(*store);
  JobEngine jobs(records, {config.jobs.max_unfinished, config.jobs.keep_finished});
  Metrics metrics;
  BuildSlots builds(config.jobs.max_builds);
  Services services{config,  *store, jobs,
                    metrics, builds, std::make_shared<fetch::Bandwidth>(config.hub.bandwidth)};
  jobs.add_kind("pull", config.jobs.max_pulls,
                [&services](Job& job) { return run_pull(services, job); });
  jobs.add_kind("variant", k_variant_threads,
                [&services](Job& job) { return run_variant(services, job); });
  jobs.add_kind("check", config.jobs.max_pulls,
                [&services](Job& job) { return run_remote_check(services, job); });
  jobs.add_kind("gc", 1, [&services](Job& job) { return run_gc(services, job); });
  jobs.add_kind("fsck", 1, [&services](Job& job) { return run_fsck(services, job); });
  jobs.add_kind("scrub", 1, [&services](Job& job) { return run_scrub(services, job); });
  jobs.add_kind("repair", 1, [&services](Job& job) { return run_repair(services, job); });
  jobs.add_kind("link", 4, [&services](Job& job) { return run_link(services, job); });
  jobs.add_kind("unlink", 1, [&services](Job& job) { return run_unlink(services, job); });
  jobs.add_kind("sync", 1, [&services](Job& job) { return run_link_sync(services, job); });
  jobs.add_kind("import", 2, [&services](Job& job) { return run_import(services, job); });
  Upkeep upkeep(services);
  jobs.on_finished([&services, &upkeep](const Job& job) {
    services.metrics.job_finished(job.kind(), job.view().state);
    if (!changes_content(job.kind())) return;
    upkeep.content_changed(job.kind() == "gc" ? Upkeep::Change::less : Upkeep::Change::more);
  });
  Router router;
  add_routes(router, services);
  Server server(
      config.server, metrics,
      [&router](Request request) { return router.handle(std::move(request)); },
      [&store](std::uint64_t connection) { store->release_connection(connection); });
  server.answer_at_once(
      [&services](const ReadyRequest& request) { return ready_variant(services, request); });
  add_gauges(services, server);
  const Mirror mirror(services);
  Server mirror_server(
      config.server, metrics, [&mirror](const Request& request) { return mirror.handle(request); },
      [](std::uint64_t) {});
  MODELD_TRY(jobs.start());
  upkeep.start();
  MODELD_TRY(server.start(std::move(socket)));
  MODELD_TRY(start_mirror(mirror_server, config.mirror.listen));
  log_info("modeld {} serves '{}' at '{}', kernels {}", k_version, config.store.root,
           config.server.socket, kernel_text());
  wait_for_signal(signals);
  mirror_server.stop();
  server.stop();
  upkeep.stop();
  stop_jobs(jobs, config);
  return {};
}

} // namespace modeld::daemon
