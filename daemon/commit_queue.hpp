// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/file_sink.hpp"
#include "schema/result.hpp"

#include <cstddef>
#include <deque>
#include <future>
#include <vector>

namespace modeld::daemon {

/// Files on their way from proved to stored, while others are downloaded: small ones many at a
/// time, large ones alone, since the disk takes a while for each. Owned and called by one thread;
/// the sinks outlive it and are not touched until settle().
class CommitQueue {
public:
  CommitQueue() = default;
  ~CommitQueue() { static_cast<void>(settle()); }
  CommitQueue(const CommitQueue&) = delete;
  CommitQueue& operator=(const CommitQueue&) = delete;

  /// Takes a sink whose bytes are proved. The error of an earlier batch.
  Result<void> add(FileSink& sink);
  /// Until all are stored, or the first error.
  Result<void> settle();

private:
  /// More open files than this are no faster.
  static constexpr std::size_t k_batch = 64;
  static constexpr std::size_t k_at_once = 4;

  Result<void> wait_for_one();
  void start(std::vector<FileSink*> batch);

  std::vector<FileSink*> waiting_;
  std::deque<std::future<Result<void>>> running_;
};

} // namespace modeld::daemon
