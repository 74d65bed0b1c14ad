// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/file_sink.hpp"
#include "schema/result.hpp"

#include <cstddef>
#include <future>
#include <vector>

namespace modeld::daemon {

/// Small files on their way from proved to stored: many at a time, while others are downloaded.
/// Owned and called by one thread; the sinks outlive it and are not touched until settle().
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

  Result<void> wait();
  void start();

  std::vector<FileSink*> waiting_;
  std::future<Result<void>> running_;
};

} // namespace modeld::daemon
