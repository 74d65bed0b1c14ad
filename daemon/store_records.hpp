// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/job_engine.hpp"
#include "store/store.hpp"

namespace modeld::daemon {

/// The records of jobs in the store's index. Any thread.
class StoreJobRecords final : public JobRecords {
public:
  explicit StoreJobRecords(store::Store& store) : store_(store) {}

  Result<void> put(const store::JobRecord& record) override { return store_.put_job(record); }
  Result<std::vector<store::JobRecord>> list() override { return store_.list_jobs(); }
  Result<void> remove(std::string_view id) override { return store_.delete_job(id); }

private:
  store::Store& store_;
};

} // namespace modeld::daemon
