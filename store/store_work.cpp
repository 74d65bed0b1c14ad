// SPDX-License-Identifier: Apache-2.0
#include "store/layout.hpp"
#include "store/manifests.hpp"
#include "store/process.hpp"
#include "store/state.hpp"
#include "store/store.hpp"

#include <fmt/format.h>

#include <algorithm>

// Jobs, pins and leases of Store.

namespace modeld::store {

// ---- jobs

Result<void> Store::put_job(const JobRecord& job) {
  MODELD_TRY(check_name(job.id, "job"));
  auto index = state_->writer.lock();
  return index->put_job(job);
}

Result<std::optional<JobRecord>> Store::find_job(std::string_view id) const {
  auto index = state_->reader.lock();
  return index->find_job(id);
}

Result<std::vector<JobRecord>> Store::list_jobs() const {
  auto index = state_->reader.lock();
  return index->list_jobs();
}

Result<std::vector<JobRecord>> Store::unfinished_jobs() const {
  auto index = state_->reader.lock();
  return index->unfinished_jobs();
}

Result<void> Store::delete_job(std::string_view id) {
  auto index = state_->writer.lock();
  return index->delete_job(id);
}

// ---- pins

Result<void> Store::put_pin(const Pin& pin) {
  MODELD_TRY(check_name(pin.name, "pin"));
  State& s = *state_;
  Pin sorted = pin;
  std::sort(sorted.recipes.begin(), sorted.recipes.end());
  sorted.recipes.erase(std::unique(sorted.recipes.begin(), sorted.recipes.end()),
                       sorted.recipes.end());
  const std::lock_guard manifests(s.manifests);
  {
    auto index = s.writer.lock();
    MODELD_ASSIGN(const auto there, index->snapshot_info(pin.repo, pin.commit));
    if (!there) {
      return fail(Errc::not_found,
                  fmt::format("pinning '{}@{}' as '{}': no such snapshot", pin.repo.text,
                              pin.commit.hex(), pin.name),
                  "pull the model first");
    }
  }
  MODELD_TRY(s.disk.replace_file(layout::pin_manifest(pin.name), pin_to_json(sorted), 0644));
  auto index = s.writer.lock();
  MODELD_ASSIGN(auto txn, index->begin());
  MODELD_TRY(index->put_pin(sorted));
  return txn.commit();
}

Result<std::optional<Pin>> Store::find_pin(std::string_view name) const {
  auto index = state_->reader.lock();
  return index->find_pin(name);
}

Result<std::vector<Pin>> Store::list_pins() const {
  auto index = state_->reader.lock();
  return index->list_pins();
}

Result<void> Store::delete_pin(std::string_view name) {
  State& s = *state_;
  const std::lock_guard manifests(s.manifests);
  {
    auto index = s.writer.lock();
    MODELD_ASSIGN(const auto there, index->find_pin(name));
    if (!there) {
      return fail(Errc::not_found, fmt::format("removing pin '{}': no such pin", name));
    }
    MODELD_ASSIGN(auto txn, index->begin());
    MODELD_TRY(index->delete_pin(name));
    MODELD_TRY(txn.commit());
  }
  MODELD_TRY(s.disk.unlink(layout::pin_manifest(name)));
  return s.disk.sync_folder(layout::k_pins);
}

// ---- leases

Result<Lease> Store::grant_lease(const Sha256Digest& blob, LeaseHolder holder, std::uint32_t uid,
                                 std::string note) {
  Lease lease{random_id(), blob, holder, uid, now(), std::move(note)};
  // Held while we look, so that it cannot be collected between the look and the lease.
  const BlobHold held = hold({blob});
  MODELD_ASSIGN(const auto there, find_blob(blob));
  if (!there) {
    return fail(Errc::not_found, fmt::format("leasing blob {}: it is not here", blob.hex()));
  }
  touch(blob);
  if (holder.kind == LeaseHolder::Kind::connection) {
    auto leases = state_->connection_leases.lock();
    leases->push_back(lease);
    return lease;
  }
  if (holder.kind == LeaseHolder::Kind::process) {
    const auto ticks = start_ticks_of(holder.pid);
    if (!ticks || (holder.start_ticks != 0 && holder.start_ticks != *ticks)) {
      return fail(Errc::not_found, fmt::format("leasing blob {} to process {}: no such process",
                                               blob.hex(), holder.pid));
    }
    lease.holder.start_ticks = *ticks;
  } else if (holder.deadline <= lease.created) {
    return fail(Errc::invalid_argument,
                fmt::format("leasing blob {}: deadline {} has passed, now is {}", blob.hex(),
                            holder.deadline, lease.created));
  }
  auto index = state_->writer.lock();
  MODELD_ASSIGN(const auto row, index->find_blob(blob));
  if (!row) return lease; // in a shared store, from which nothing of ours collects
  MODELD_TRY(index->put_lease({lease, boot_id()}));
  return lease;
}

Result<void> Store::release_lease(std::string_view id) {
  {
    auto leases = state_->connection_leases.lock();
    if (std::erase_if(*leases, [id](const Lease& lease) { return lease.id == id; }) > 0) return {};
  }
  auto index = state_->writer.lock();
  MODELD_ASSIGN(const bool there, index->delete_lease(id));
  if (there) return {};
  return fail(Errc::not_found, fmt::format("releasing lease '{}': no such lease", id));
}

void Store::release_connection(std::uint64_t connection) {
  auto leases = state_->connection_leases.lock();
  std::erase_if(*leases,
                [connection](const Lease& lease) { return lease.holder.connection == connection; });
}

namespace {

bool still_holds(const LeaseRow& row) {
  const LeaseHolder& holder = row.lease.holder;
  if (holder.kind == LeaseHolder::Kind::deadline) return holder.deadline > now();
  return row.boot_id == boot_id() && start_ticks_of(holder.pid) == holder.start_ticks;
}

} // namespace

Result<std::vector<Lease>> Store::list_leases() {
  std::vector<LeaseRow> rows;
  {
    auto index = state_->reader.lock();
    MODELD_ASSIGN(rows, index->list_leases());
  }
  std::vector<Lease> leases;
  for (const LeaseRow& row : rows) {
    if (still_holds(row)) {
      leases.push_back(row.lease);
    } else {
      auto index = state_->writer.lock();
      MODELD_TRY(index->delete_lease(row.lease.id));
    }
  }
  auto live = state_->connection_leases.lock();
  leases.insert(leases.end(), live->begin(), live->end());
  return leases;
}

Result<bool> Store::in_use(const Sha256Digest& blob) {
  if (state_->holds->contains(blob)) return true;
  MODELD_ASSIGN(const auto leases, list_leases());
  return std::any_of(leases.begin(), leases.end(),
                     [&blob](const Lease& lease) { return lease.blob == blob; });
}

} // namespace modeld::store
