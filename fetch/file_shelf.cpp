// SPDX-License-Identifier: Apache-2.0
// What a file's download has to do with its shelf: parts that came before their turn go there, and
// come back.
#include "fetch/file_fetch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace modeld::fetch {
namespace {

constexpr std::uint64_t k_worth_keeping = 64 << 10; // bytes of a part that is not complete

std::uint64_t length_of(const std::vector<SinkWriter::Buffer>& buffers) {
  std::uint64_t sum = 0;
  for (const SinkWriter::Buffer& buffer : buffers) {
    sum += buffer.size();
  }
  return sum;
}

} // namespace

/// Takes nothing on trust: a part at a wrong place would be a hole, or bytes twice.
void FileFetch::look_at_shelf() {
  if (shelf_ == nullptr) return;
  auto parts = shelf_->list();
  std::sort(parts.begin(), parts.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  std::uint64_t begin = written_;
  for (const PartShelf::Part& part : parts) {
    const bool fits = part.offset >= begin && part.offset < file_.size && part.length > 0 &&
                      part.length <= file_.size - part.offset;
    if (!fits) continue;
    inherited_.push_back(part);
    begin = part.offset + part.length;
  }
}

std::uint64_t FileFetch::next_gap_end() const {
  return inherited_.empty() ? file_.size : inherited_.front().offset;
}

/// What the shelf has right behind the last part is planned already.
void FileFetch::plan_inherited() {
  while (!inherited_.empty() && inherited_.front().offset == planned_) {
    add_part(planned_ + inherited_.front().length).inherited = true;
    inherited_.pop_front();
  }
}

/// Where a slow disk is what they wait for, writing them twice would make it slower.
void FileFetch::shelve_waiting(Clock::time_point now) {
  if (shelf_ == nullptr) return;
  for (std::size_t i = 1; i < parts_.size() && shelf_takes_; ++i) {
    Part& part = parts_[i];
    if (!part.range || part.state() != RangeFetch::State::done) continue;
    if (!part.waits) part.waits = now;
    if (now - *part.waits < context_.options.shelve_after) continue;
    if (context_.writer.is_behind() || !shelve(part)) return;
    part.range.reset();
    part.buffers = {};
    context_.buffered -= std::exchange(part.reserved, 0);
  }
}

/// Where the shelf takes nothing (a full disk), the part stays in memory, as do those after it.
bool FileFetch::shelve(const Part& part) {
  shelf_takes_ = shelf_->put(part.first, part.buffers).has_value();
  return shelf_takes_;
}

/// The part in front is on the shelf. What does not come back from there is fetched again; false
/// where that is so, or where the sink fails.
bool FileFetch::take_back(Part& front) {
  const auto bytes = shelf_->take(front.first);
  if (!bytes || bytes->size() != front.end - front.first) {
    ask_for(front, RangeFetch::Kind::part);
    front.inherited = false;
    return false;
  }
  if (auto done = write(*bytes); !done) {
    fail_with(std::move(done).error().context(fmt::format("downloading '{}'", file_.path)));
    return false;
  }
  return true;
}

/// The download ends before the file does: what came too early is there the next time.
void FileFetch::keep_parts() {
  if (shelf_ == nullptr) return;
  for (std::size_t i = 1; i < parts_.size() && shelf_takes_; ++i) {
    const Part& part = parts_[i];
    const bool complete = part.state() == RangeFetch::State::done;
    if (!part.range || part.buffers.empty()) continue;
    if (complete || length_of(part.buffers) >= k_worth_keeping) shelve(part);
  }
}

void FileFetch::clear_shelf() {
  inherited_.clear();
  if (shelf_ != nullptr) shelf_->clear();
}

} // namespace modeld::fetch
