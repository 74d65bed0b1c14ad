// SPDX-License-Identifier: Apache-2.0
#include "fetch/file_fetch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace modeld::fetch {
namespace {

constexpr std::uint64_t k_inline = 1 << 20; // bytes of a file that is written on the spot

} // namespace

FileFetch::FileFetch(DownloadContext& context, std::size_t index, const Download& download,
                     std::vector<Url> sites)
    : context_(context), index_(index), file_(download.file), sink_(download.sink),
      shelf_(download.shelf), written_(download.offset), planned_(download.offset) {
  source_.sites = std::move(sites);
  look_at_shelf();
  const bool begun = written_ > 0 || !inherited_.empty();
  if (begun) source_.validator = download.validator;
  in_parts_ = !inherited_.empty() || (file_.size - written_ >= 2 * context.options.part_bytes &&
                                      context.options.max_ranges > 1);
  plan_inherited();
}

FileFetch::~FileFetch() {
  if (state_ == State::working) keep_parts();
  close_parts();
  // What came in stays in the sink, for the next time.
  context_.writer.drain(channel_);
}

unsigned FileFetch::running() const {
  return static_cast<unsigned>(std::count_if(parts_.begin(), parts_.end(), [](const Part& part) {
    return part.state() == RangeFetch::State::running;
  }));
}

bool FileFetch::waits_for_writer() const {
  return state_ == State::working && written_ == file_.size && file_.size > k_inline;
}

unsigned FileFetch::advance(Clock::time_point now, unsigned spare) {
  pass_on();
  if (state_ != State::working) return 0;
  if (written_ == file_.size) { // empty, complete before the first request (C01), or done now
    if (is_written()) complete();
    return 0;
  }
  if (!look_at_ranges()) return 0;
  unsigned opened = 0;
  if (!in_parts_) {
    if (parts_.empty()) open_sole();
  } else {
    while ((parts_.empty() || opened < spare) && open_part()) {
      ++opened;
    }
  }
  hurry_front(now);
  for (const Part& part : parts_) {
    if (!part.range) continue;
    RangeFetch& range = *part.range;
    range.check_speed(now);
    if (range.state() == RangeFetch::State::ready && range.ready_at() <= now) range.start();
  }
  shelve_waiting(now);
  return opened;
}

/// The part in front holds up all that are through behind it.
void FileFetch::hurry_front(Clock::time_point now) {
  bool held_up = false;
  for (std::size_t i = 1; i < parts_.size(); ++i) {
    if (parts_[i].inherited) continue;
    if (parts_[i].state() != RangeFetch::State::done) return;
    held_up = true;
  }
  if (held_up) parts_.front().range->hurry(now, context_.options.head_patience);
}

Clock::time_point FileFetch::next_start() const {
  auto next = Clock::time_point::max();
  for (const Part& part : parts_) {
    if (part.state() == RangeFetch::State::ready) next = std::min(next, part.range->ready_at());
  }
  return next;
}

void FileFetch::excuse(Clock::time_point now) {
  for (const Part& part : parts_) {
    if (part.range) part.range->excuse(now);
  }
}

FileFetch::Part& FileFetch::add_part(std::uint64_t end) {
  Part& part = parts_.emplace_back();
  part.first = std::exchange(planned_, end);
  part.end = end;
  return part;
}

void FileFetch::ask_for(Part& part, RangeFetch::Kind kind) {
  part.range =
      std::make_unique<RangeFetch>(context_, file_, source_, *this, part.first, part.end, kind);
}

void FileFetch::open_sole() {
  planned_ = written_;
  ask_for(add_part(file_.size), RangeFetch::Kind::sole);
}

/// The next part, if one is left, few enough are open and memory allows.
bool FileFetch::open_part() {
  const std::uint64_t size = std::min(context_.options.part_bytes, next_gap_end() - planned_);
  const auto own =
      std::count_if(parts_.begin(), parts_.end(), [](const Part& part) { return !part.inherited; });
  if (size == 0 || own >= static_cast<std::ptrdiff_t>(context_.options.max_ranges)) return false;
  // The first part finds out where the content is, so that the others need not ask the site.
  if (!parts_.empty() && !source_.found) return false;
  const std::uint64_t reserved = parts_.empty() ? 0 : size; // the first one needs no memory
  if (context_.buffered + reserved > context_.options.max_buffer_bytes && !parts_.empty())
    return false;
  context_.buffered += reserved;
  Part& part = add_part(planned_ + size);
  part.reserved = reserved;
  ask_for(part, RangeFetch::Kind::part);
  plan_inherited();
  return true;
}

void FileFetch::close_parts() {
  for (const Part& part : parts_) {
    context_.buffered -= part.reserved;
  }
  parts_.clear();
  planned_ = written_;
}

/// Finished parts leave at the front; the part that comes to the front empties its buffer.
void FileFetch::pass_on() {
  while (!parts_.empty() && state_ == State::working) {
    Part& front = parts_.front();
    if (!front.range && !take_back(front)) return;
    for (SinkWriter::Buffer& buffer : std::exchange(front.buffers, {})) {
      if (auto done = write(std::move(buffer)); !done) {
        return fail_with(
            std::move(done).error().context(fmt::format("downloading '{}'", file_.path)));
      }
    }
    if (front.state() != RangeFetch::State::done) return;
    context_.buffered -= front.reserved;
    parts_.pop_front();
  }
}

/// False where the file failed. A server without ranges has the file fetched as a whole.
bool FileFetch::look_at_ranges() {
  for (const Part& part : parts_) {
    if (part.state() == RangeFetch::State::failed) {
      fail_with(part.range->error());
      return false;
    }
    if (part.state() == RangeFetch::State::unranged) {
      close_parts();
      clear_shelf(); // it comes as a whole, and nobody says of which content
      in_parts_ = false;
      open_sole();
      parts_.front().range->ask_for_whole();
      return true;
    }
  }
  return true;
}

Result<void> FileFetch::on_bytes(RangeFetch& range, std::span<const std::byte> bytes) {
  if (&range == parts_.front().range.get()) return write(bytes);
  const auto part = std::find_if(parts_.begin(), parts_.end(),
                                 [&](const Part& one) { return one.range.get() == &range; });
  auto& buffers = part->buffers;
  while (!bytes.empty()) {
    if (buffers.empty() || buffers.back().size() == SinkWriter::k_chunk) {
      buffers.push_back(context_.writer.take_buffer());
    }
    const auto fits = std::min(bytes.size(), SinkWriter::k_chunk - buffers.back().size());
    const auto now = bytes.first(fits);
    buffers.back().insert(buffers.back().end(), now.begin(), now.end());
    bytes = bytes.subspan(fits);
  }
  return {};
}

Result<void> FileFetch::on_restart(RangeFetch&) {
  context_.host.on_notice({Notice::Kind::restarted,
                           fmt::format("'{}' starts again from the first byte", file_.path),
                           {}});
  return restart_sink();
}

void FileFetch::on_validator() {
  context_.host.on_validator(index_, source_.validator);
}

Result<void> FileFetch::restart_sink() {
  context_.writer.discard(channel_);
  clear_shelf();
  MODELD_ASSIGN(sink_, context_.host.on_restart(index_));
  written_ = 0;
  context_.host.on_progress(index_, 0);
  return {};
}

/// Small files are not worth a change of threads.
Result<void> FileFetch::write(std::span<const std::byte> bytes) {
  if (file_.size <= k_inline) {
    MODELD_TRY(sink_->write(bytes));
  } else {
    MODELD_TRY(context_.writer.write(channel_, *sink_, bytes));
  }
  written_ += bytes.size();
  context_.host.on_progress(index_, written_);
  return {};
}

Result<void> FileFetch::write(SinkWriter::Buffer bytes) {
  if (file_.size <= k_inline) return write(std::span<const std::byte>(bytes));
  const std::size_t size = bytes.size();
  MODELD_TRY(context_.writer.write(channel_, *sink_, std::move(bytes)));
  written_ += size;
  context_.host.on_progress(index_, written_);
  return {};
}

bool FileFetch::is_written() {
  if (file_.size <= k_inline) return true;
  const auto idle = context_.writer.idle(channel_);
  if (!idle) fail_with(Error(idle.error()).context(fmt::format("downloading '{}'", file_.path)));
  return idle && *idle;
}

void FileFetch::complete() {
  close_parts();
  auto done = context_.host.on_file_done(index_);
  if (done) {
    state_ = State::done;
    return;
  }
  if (done.error().code != Errc::digest_mismatch || fetched_again_) {
    return fail_with(std::move(done).error());
  }
  // Once more from scratch, and from the next site where there is one; as one range, so that all
  // of it comes from one answer.
  fetched_again_ = true;
  source_.site = std::min(source_.site + 1, source_.sites.size() - 1);
  source_.storage = {};
  source_.validator = {};
  in_parts_ = false;
  context_.host.on_notice({Notice::Kind::restarted, done.error().message, {}});
  if (auto again = restart_sink(); !again) return fail_with(std::move(again).error());
  planned_ = 0;
}

void FileFetch::fail_with(Error error) {
  keep_parts();
  close_parts();
  error_ = std::move(error);
  state_ = State::failed;
}

} // namespace modeld::fetch
