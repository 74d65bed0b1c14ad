// SPDX-License-Identifier: Apache-2.0
#include "store/side_worker.hpp"

#include <chrono>
#include <utility>

namespace modeld::store {
namespace {

using Clock = std::chrono::steady_clock;

/// Waking a sleeping thread costs the owner some 50 us, a tenth of what it hashes meanwhile. So the
/// thread stays awake for a moment where pieces come as fast as memory gives them, and only there.
constexpr std::chrono::microseconds k_awake{300};
constexpr std::chrono::microseconds k_fast{1000};

} // namespace

SideWorker::SideWorker(Work work) : work_(std::move(work)), thread_([this] { run(); }) {}

SideWorker::~SideWorker() {
  wait();
  state_ = State::ending;
  state_.notify_all();
  thread_.join();
}

void SideWorker::start(std::span<const std::byte> bytes) {
  bytes_ = bytes;
  state_ = State::busy;
  state_.notify_all();
}

void SideWorker::wait() {
  while (state_ == State::busy) {
    state_.wait(State::busy);
  }
}

SideWorker::State SideWorker::next(bool soon) const {
  const auto until = Clock::now() + k_awake;
  while (soon && state_ == State::idle && Clock::now() < until) {
  }
  while (state_ == State::idle) {
    state_.wait(State::idle);
  }
  return state_;
}

void SideWorker::run() {
  bool soon = false;
  auto done = Clock::now();
  while (next(soon) == State::busy) {
    soon = Clock::now() - done < k_fast;
    work_(bytes_);
    state_ = State::idle;
    state_.notify_all();
    done = Clock::now();
  }
}

} // namespace modeld::store
