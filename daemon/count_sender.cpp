// SPDX-License-Identifier: Apache-2.0
#include "daemon/count_sender.hpp"

#include <array>
#include <chrono>
#include <span>

namespace modeld::daemon {
namespace {

constexpr std::chrono::milliseconds k_between_counts{100};

void put(std::span<std::byte, 8> to, std::uint64_t number) {
  for (std::byte& byte : to) {
    byte = static_cast<std::byte>(number & 0xffU);
    number >>= 8U;
  }
}

} // namespace

CountSender::CountSender(const WorkerChannel& channel, const Progress& progress)
    : channel_(channel), progress_(progress), thread_([this] { run(); }) {}

CountSender::~CountSender() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CountSender::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, k_between_counts, [this] { return stop_; })) {
    std::array<std::byte, 2 * sizeof(std::uint64_t)> packet;
    put(std::span(packet).first<8>(), progress_.done);
    put(std::span(packet).last<8>(), progress_.total);
    if (!channel_.send(Packet::progress, packet)) return; // the work will meet the same end
  }
}

} // namespace modeld::daemon
