// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::daemon {

/// Counters and gauges of the daemon, shown by GET /metrics. Any thread.
class Metrics {
public:
  Metrics();
  ~Metrics();

  void request(std::string_view method, int status, std::chrono::nanoseconds time);
  void job_finished(std::string_view kind, std::string_view state);
  void bytes_downloaded(std::uint64_t bytes);
  void bytes_built(std::uint64_t bytes);

  /// A value that is asked for when metrics are shown.
  void gauge(std::string name, std::string help, std::function<double()> value);

  /// Prometheus text format 0.0.4.
  std::string text();

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace modeld::daemon
