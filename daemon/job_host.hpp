// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/job.hpp"
#include "daemon/log.hpp"
#include "fetch/host.hpp"

namespace modeld::daemon {

/// Lets a Hub client's waiting show in a job, and the job's cancellation reach the client.
class JobHost final : public fetch::Host {
public:
  explicit JobHost(Job& job) : job_(job) {}
  bool cancelled() override { return job_.cancelled(); }
  void on_notice(const fetch::Notice& notice) override {
    log_info("job {}: {}", job_.id(), notice.what);
    job_.set_notice(notice.what);
  }

private:
  Job& job_;
};

} // namespace modeld::daemon
