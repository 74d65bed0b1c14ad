// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/byte_sink.hpp"
#include "schema/result.hpp"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace modeld::fetch {

/// Writes to sinks on threads of its own, so that hashing and disk overlap with the network. The
/// bytes of one sink are written in order and never by two threads at once; several sinks are
/// written side by side. Owned and called by one thread; a bounded queue lies between. Both sides
/// work in long bursts: bytes are handed over in chunks, and who waited starts again at half the
/// limit, since a change of threads for each record costs more than the hashing.
class SinkWriter {
public:
  using Buffer = std::vector<std::byte>;
  /// Bytes in a buffer that is handed over: TLS delivers 16 KiB at a time; fewer, larger writes.
  static constexpr std::size_t k_chunk = 512 << 10;

  /// One file's way through the writer; lives until the writer is idle for it.
  class Channel {
  private:
    friend SinkWriter;
    Buffer open_;                ///< a chunk that is not full yet; the caller's thread only
    ByteSink* sink_ = nullptr;   ///< of that chunk
    std::optional<Error> error_; ///< of the first write that failed; later ones are dropped
    std::size_t pending_ = 0;    ///< bytes handed over and not written yet
    bool awaited_ = false;       ///< idle() was asked, and has to be told
    bool in_work_ = false;       ///< a thread writes for it
  };

  /// `limit` in bytes; `wake` is called from a writing thread when an awaited channel is idle.
  SinkWriter(std::size_t limit, std::function<void()> wake)
      : limit_(limit), wake_(std::move(wake)) {}
  /// Writes what was handed over, then ends.
  ~SinkWriter();

  /// Takes the bytes; waits while the queue is full. The error of an earlier write.
  Result<void> write(Channel& channel, ByteSink& sink, std::span<const std::byte> bytes);
  /// The same with a whole buffer, of which nothing is copied.
  Result<void> write(Channel& channel, ByteSink& sink, Buffer bytes);
  /// An empty buffer with room for k_chunk bytes: one that was used before where there is one, so
  /// that the system need not clear new pages.
  Buffer take_buffer();
  /// Hands over what is left; whether all is written. The error of a write that failed.
  Result<bool> idle(Channel& channel);
  /// Whether the sinks are what holds the transfers up.
  bool is_behind();
  /// Drops what is not written and the error; when it returns, the sink is not in use.
  void discard(Channel& channel);
  /// Hands over what is left and waits until it is written, or has failed.
  void drain(Channel& channel);

private:
  struct Chunk {
    Channel* channel = nullptr;
    ByteSink* sink = nullptr;
    Buffer bytes;
  };
  void run();
  /// The first in the queue that no thread must be waited for, or its end.
  std::deque<Chunk>::iterator next();
  void hand_over(Channel& channel, std::unique_lock<std::mutex>& lock);
  void queue(Channel& channel, ByteSink* sink, Buffer bytes, std::unique_lock<std::mutex>& lock);

  const std::size_t limit_;
  const std::function<void()> wake_;
  std::mutex mutex_; ///< guards all below, and what channels have beyond open_ and sink_
  std::condition_variable more_;
  std::condition_variable less_;
  std::deque<Chunk> queue_;
  std::size_t queued_ = 0;    ///< bytes in the queue and in work
  std::size_t waiting_ = 0;   ///< threads that have nothing to do
  std::vector<Buffer> spare_; ///< to use again
  bool stopping_ = false;
  std::vector<std::thread> threads_; ///< the owner's
};

} // namespace modeld::fetch
