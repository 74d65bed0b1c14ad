// SPDX-License-Identifier: Apache-2.0
#include "fetch/sink_writer.hpp"

#include <algorithm>
#include <utility>

namespace modeld::fetch {
namespace {

/// Hashing and the copy into the page cache take about three times what receiving takes.
std::size_t most_threads() {
  return std::clamp(std::thread::hardware_concurrency(), 1U, 4U);
}

} // namespace

SinkWriter::~SinkWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  more_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

Result<void> SinkWriter::write(Channel& channel, ByteSink& sink, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (channel.open_.capacity() == 0) channel.open_ = take_buffer();
    channel.sink_ = &sink;
    const std::size_t fits = std::min(bytes.size(), k_chunk - channel.open_.size());
    channel.open_.insert(channel.open_.end(), bytes.begin(),
                         bytes.begin() + static_cast<std::ptrdiff_t>(fits));
    bytes = bytes.subspan(fits);
    if (channel.open_.size() < k_chunk) continue;
    std::unique_lock lock(mutex_);
    hand_over(channel, lock);
    if (channel.error_) return fail(*channel.error_);
  }
  return {};
}

Result<void> SinkWriter::write(Channel& channel, ByteSink& sink, Buffer bytes) {
  std::unique_lock lock(mutex_);
  hand_over(channel, lock); // what came before
  queue(channel, &sink, std::move(bytes), lock);
  if (channel.error_) return fail(*channel.error_);
  return {};
}

SinkWriter::Buffer SinkWriter::take_buffer() {
  Buffer buffer;
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      buffer = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  buffer.reserve(k_chunk);
  return buffer;
}

void SinkWriter::hand_over(Channel& channel, std::unique_lock<std::mutex>& lock) {
  if (channel.open_.empty()) return;
  queue(channel, channel.sink_, std::exchange(channel.open_, {}), lock);
}

void SinkWriter::queue(Channel& channel, ByteSink* sink, Buffer bytes,
                       std::unique_lock<std::mutex>& lock) {
  if (queued_ >= limit_) less_.wait(lock, [&] { return queued_ <= limit_ / 2; });
  queued_ += bytes.size();
  channel.pending_ += bytes.size();
  queue_.push_back({&channel, sink, std::move(bytes)});
  if (channel.in_work_) return; // its thread goes on with it
  if (queue_.size() > waiting_ && threads_.size() < most_threads())
    threads_.emplace_back([this] { run(); });
  more_.notify_one();
}

std::deque<SinkWriter::Chunk>::iterator SinkWriter::next() {
  return std::find_if(queue_.begin(), queue_.end(),
                      [](const Chunk& chunk) { return !chunk.channel->in_work_; });
}

void SinkWriter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++waiting_;
    more_.wait(lock, [&] { return stopping_ || next() != queue_.end(); });
    --waiting_;
    const auto first = next();
    if (first == queue_.end()) return; // what is left is another thread's
    Chunk chunk = std::move(*first);
    queue_.erase(first);
    Channel& channel = *chunk.channel;
    channel.in_work_ = true;
    const bool wanted = !channel.error_;
    lock.unlock();
    auto done = wanted ? chunk.sink->write(chunk.bytes) : Result<void>{};
    const std::size_t size = chunk.bytes.size();
    lock.lock();
    channel.in_work_ = false;
    if (!done) channel.error_ = std::move(done).error();
    channel.pending_ -= size;
    queued_ -= size;
    chunk.bytes.clear();
    spare_.push_back(std::move(chunk.bytes));
    const bool tell = channel.pending_ == 0 && std::exchange(channel.awaited_, false);
    less_.notify_all();
    if (tell) wake_();
  }
}

Result<bool> SinkWriter::idle(Channel& channel) {
  std::unique_lock lock(mutex_);
  hand_over(channel, lock);
  if (channel.error_) return fail(*channel.error_);
  channel.awaited_ = channel.pending_ != 0;
  return channel.pending_ == 0;
}

bool SinkWriter::is_behind() {
  const std::lock_guard lock(mutex_);
  return queued_ > limit_ / 2;
}

void SinkWriter::discard(Channel& channel) {
  std::unique_lock lock(mutex_);
  less_.wait(lock, [&] { return !channel.in_work_; });
  for (auto it = queue_.begin(); it != queue_.end();) {
    if (it->channel != &channel) {
      ++it;
      continue;
    }
    queued_ -= it->bytes.size();
    it = queue_.erase(it);
  }
  channel.open_.clear();
  channel.pending_ = 0;
  channel.awaited_ = false;
  channel.error_.reset();
}

void SinkWriter::drain(Channel& channel) {
  std::unique_lock lock(mutex_);
  hand_over(channel, lock);
  less_.wait(lock, [&] { return channel.pending_ == 0; });
}

} // namespace modeld::fetch
