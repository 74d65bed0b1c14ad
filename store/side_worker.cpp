// SPDX-License-Identifier: Apache-2.0
#include "store/side_worker.hpp"

#include <utility>

namespace modeld::store {
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

SideWorker::State SideWorker::next() const {
  while (state_ == State::idle) {
    state_.wait(State::idle);
  }
  return state_;
}

void SideWorker::run() {
  while (next() == State::busy) {
    work_(bytes_);
    state_ = State::idle;
    state_.notify_all();
  }
}

} // namespace modeld::store
