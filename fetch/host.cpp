// SPDX-License-Identifier: Apache-2.0
#include "fetch/host.hpp"

#include <algorithm>
#include <random>
#include <thread>

namespace modeld::fetch {
namespace {

// A sleeper looks this often whether it was cancelled.
constexpr std::chrono::milliseconds k_slice{50};

} // namespace

Clock::time_point Host::now() {
  return Clock::now();
}

void Host::sleep(Clock::duration time) {
  const auto end = Clock::now() + time;
  for (auto at = Clock::now(); at < end && !cancelled(); at = Clock::now()) {
    std::this_thread::sleep_for(std::min<Clock::duration>(k_slice, end - at));
  }
}

double Host::jitter() {
  thread_local std::minstd_rand engine{std::random_device{}()};
  return std::uniform_real_distribution<double>(0.0, 1.0)(engine);
}

} // namespace modeld::fetch
