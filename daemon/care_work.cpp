// SPDX-License-Identifier: Apache-2.0
#include "daemon/care_work.hpp"

#include "daemon/request_body.hpp"
#include "store/fsck.hpp"
#include "store/quarantine.hpp"
#include "store/rebuild.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace modeld::daemon {
namespace {

using boost::json::array;
using boost::json::object;

constexpr std::size_t k_most_items = 1000; // in a job's record
constexpr std::uint64_t k_most_seconds = 100ULL * 365 * 24 * 3600;

object item_json(const store::CollectItem& item) {
  return {{"kind", store::slug(item.kind)},
          {"name", item.name},
          {"bytes", item.bytes},
          {"goes", item.goes()},
          {"reason", store::slug(item.reason)},
          {"detail", item.detail},
          {"open", item.open}};
}

object damaged_json(const store::DamagedBlob& blob) {
  array snapshots;
  for (const std::string& name : blob.snapshots) {
    snapshots.emplace_back(name);
  }
  array users;
  for (const std::string& name : blob.users) {
    users.emplace_back(name);
  }
  array shown;
  for (const std::string& path : blob.shown) {
    shown.emplace_back(path);
  }
  return {{"blob", blob.digest.hex()},         {"cause", blob.cause},
          {"snapshots", std::move(snapshots)}, {"variants", blob.variants.size()},
          {"users", std::move(users)},         {"shown", std::move(shown)}};
}

Result<std::optional<std::int64_t>> seconds(const object& body, std::string_view name) {
  MODELD_ASSIGN(const auto number, optional_number(body, name));
  if (!number) return std::optional<std::int64_t>{};
  if (*number > k_most_seconds) {
    return fail(Errc::invalid_argument,
                fmt::format("reading the request: '{}' is {}, allowed are 0 to {}", name, *number,
                            k_most_seconds));
  }
  return std::optional(static_cast<std::int64_t>(*number));
}

} // namespace

Result<store::CollectOptions> collect_options(const object& body) {
  store::CollectOptions options;
  MODELD_ASSIGN(const auto grace, seconds(body, "grace_seconds"));
  if (grace) options.grace = options.partial_age = *grace;
  MODELD_ASSIGN(options.unused_for, seconds(body, "unused_seconds"));
  MODELD_ASSIGN(options.size_target, optional_number(body, "size_target"));
  MODELD_ASSIGN(options.free_target, optional_number(body, "free_target"));
  MODELD_ASSIGN(options.ignore_open_files, optional_flag(body, "ignore_open_files"));
  MODELD_ASSIGN(const auto order, optional_text(body, "order"));
  if (order && *order == "least_recent") {
    options.order = store::CollectOptions::Order::least_recent;
  } else if (order && *order != "variants_first") {
    return fail(Errc::invalid_argument,
                fmt::format("reading the request: 'order' is '{}', allowed are variants_first and "
                            "least_recent",
                            *order));
  }
  return options;
}

object plan_json(const store::CollectPlan& plan, std::size_t most) {
  array items;
  for (const bool goes : {true, false}) {
    for (const store::CollectItem& item : plan.items) {
      if (item.goes() == goes && items.size() < most) items.push_back(item_json(item));
    }
  }
  const std::size_t left_out = plan.items.size() - items.size();
  return {{"items", std::move(items)},   {"left_out", left_out},
          {"total", plan.total},         {"won", plan.won},
          {"not_freed", plan.not_freed}, {"unseen_processes", plan.unseen}};
}

Result<object> run_gc(Services& services, Job& job) {
  MODELD_ASSIGN(const auto options, collect_options(job.detail()));
  job.begin_phase("collecting");
  MODELD_TRY(services.store.flush_uses()); // so that what was used just now counts
  MODELD_ASSIGN(const auto plan, store::collect(services.store, options, &job.progress()));
  return object{{"plan", plan_json(plan, k_most_items)}};
}

namespace {

object rebuild_json(const store::RebuildReport& report) {
  array differences;
  for (const auto& table : report.differences) {
    differences.push_back(object{
        {"table", table.table}, {"only_old", table.only_here}, {"only_new", table.only_there}});
  }
  return {
      {"rows", report.rows}, {"unread", report.unread}, {"differences", std::move(differences)}};
}

} // namespace

Result<object> run_fsck(Services& services, Job& job) {
  object answer;
  store::FsckReport saved;
  MODELD_ASSIGN(const bool rebuild, optional_flag(job.detail(), "rebuild"));
  if (rebuild) {
    job.begin_phase("rebuilding");
    // An index that cannot be read has nothing to save.
    if (auto done = store::save_records(services.store)) saved = *std::move(done);
    MODELD_ASSIGN(const auto report, store::rebuild_open_index(services.store));
    answer["rebuilt"] = rebuild_json(report);
  }
  store::FsckOptions options;
  MODELD_ASSIGN(options.repair, optional_flag(job.detail(), "repair"));
  MODELD_ASSIGN(options.deep, optional_flag(job.detail(), "deep"));
  job.begin_phase("checking");
  MODELD_ASSIGN(auto report, store::fsck(services.store, options, &job.progress()));
  report.findings.insert(report.findings.begin(), saved.findings.begin(), saved.findings.end());
  array findings;
  for (const store::FsckFinding& finding : report.findings) {
    if (findings.size() == k_most_items) break;
    findings.push_back(object{{"id", finding.id},
                              {"path", finding.path},
                              {"message", finding.message},
                              {"remedy", finding.remedy},
                              {"repaired", finding.repaired}});
  }
  answer["clean"] = report.clean();
  answer["blobs"] = report.blobs;
  answer["snapshots"] = report.snapshots;
  answer["variants"] = report.variants;
  answer["found"] = report.findings.size();
  answer["findings"] = std::move(findings);
  return answer;
}

Result<object> run_scrub(Services& services, Job& job) {
  store::ScrubOptions options;
  MODELD_ASSIGN(const auto rate, optional_number(job.detail(), "bytes_per_second"));
  options.bytes_per_second = rate.value_or(0);
  MODELD_ASSIGN(options.changed_only, optional_flag(job.detail(), "changed_only"));
  job.begin_phase("scrubbing");
  MODELD_ASSIGN(const auto report, store::scrub(services.store, options, &job.progress()));
  array damaged;
  for (const store::DamagedBlob& blob : report.damaged) {
    damaged.push_back(damaged_json(blob));
  }
  return object{{"blobs", report.blobs}, {"bytes", report.bytes}, {"damaged", std::move(damaged)}};
}

} // namespace modeld::daemon
