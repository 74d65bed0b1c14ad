// SPDX-License-Identifier: Apache-2.0
#include "fetch/sink_writer.hpp"

#include <algorithm>

namespace modeld::fetch {
namespace {

constexpr std::size_t k_chunk = 512 << 10; // TLS delivers 16 KiB at a time; fewer, larger writes

} // namespace

SinkWriter::~SinkWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  more_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Result<void> SinkWriter::write(Channel& channel, ByteSink& sink, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (channel.open_.capacity() == 0) channel.open_.reserve(k_chunk);
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

void SinkWriter::hand_over(Channel& channel, std::unique_lock<std::mutex>& lock) {
  if (channel.open_.empty()) return;
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  if (queued_ >= limit_) less_.wait(lock, [&] { return queued_ <= limit_ / 2; });
  queued_ += channel.open_.size();
  channel.pending_ += channel.open_.size();
  queue_.push_back({&channel, channel.sink_, std::move(channel.open_)});
  channel.open_ = {};
  if (!spare_.empty()) {
    channel.open_ = std::move(spare_.back());
    spare_.pop_back();
  }
  more_.notify_one();
}

void SinkWriter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    more_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Chunk chunk = std::move(queue_.front());
    queue_.pop_front();
    in_work_ = chunk.channel;
    const bool wanted = !chunk.channel->error_;
    lock.unlock();
    auto done = wanted ? chunk.sink->write(chunk.bytes) : Result<void>{};
    const std::size_t size = chunk.bytes.size();
    lock.lock();
    in_work_ = nullptr;
    if (!done) chunk.channel->error_ = std::move(done).error();
    chunk.channel->pending_ -= size;
    queued_ -= size;
    chunk.bytes.clear();
    spare_.push_back(std::move(chunk.bytes));
    const bool tell = chunk.channel->pending_ == 0 && std::exchange(chunk.channel->awaited_, false);
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

void SinkWriter::discard(Channel& channel) {
  std::unique_lock lock(mutex_);
  less_.wait(lock, [&] { return in_work_ != &channel; });
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
