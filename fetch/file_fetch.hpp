// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/download_context.hpp"
#include "fetch/range_fetch.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace modeld::fetch {

/// One file on its way from the Hub to its sink. Small files are one range; a large one is cut into
/// parts, of which several travel at once: the first unfinished one straight into the sink, those
/// behind it into memory until it is their turn. So the sink always holds a beginning of the file,
/// and after a stop the next download goes on behind it. Where the file has a shelf, a part that
/// waits for long lies there, and at the end so does all that came too early: the next download
/// asks for the gaps only. Used on the thread of download().
class FileFetch : public RangeOwner {
public:
  enum class State { working, done, failed };

  FileFetch(DownloadContext& context, std::size_t index, const Download& download,
            std::vector<Url> sites);
  ~FileFetch() override;

  State state() const { return state_; }
  const Error& error() const { return *error_; }
  unsigned running() const;
  /// All bytes are here, some are still on their way to the sink.
  bool waits_for_writer() const;

  /// One turn: passes on what is complete, starts what may start, opens up to `spare` more parts.
  /// The number of parts that were opened.
  unsigned advance(Clock::time_point now, unsigned spare);
  /// When the next request of this file may go out; max() where none waits.
  Clock::time_point next_start() const;
  void excuse(Clock::time_point now);

  Result<void> on_bytes(RangeFetch& range, std::span<const std::byte> bytes) override;
  Result<void> on_restart(RangeFetch& range) override;
  void on_validator() override;

private:
  struct Part {
    std::unique_ptr<RangeFetch> range; ///< null: all of it is on the shelf
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    std::uint64_t reserved = 0;
    bool inherited = false;                   ///< was on the shelf when the download began
    std::vector<SinkWriter::Buffer> buffers;  ///< bytes ahead of their turn
    std::optional<Clock::time_point> waits{}; ///< complete, seen so first at this time

    RangeFetch::State state() const { return range ? range->state() : RangeFetch::State::done; }
  };

  /// What follows up to `end`.
  Part& add_part(std::uint64_t end);
  void ask_for(Part& part, RangeFetch::Kind kind);
  void open_sole();
  bool open_part();
  void close_parts();
  void hurry_front(Clock::time_point now);
  void pass_on();
  bool look_at_ranges();
  Result<void> write(std::span<const std::byte> bytes);
  Result<void> write(SinkWriter::Buffer bytes);
  bool is_written();
  void complete();
  Result<void> restart_sink();
  void fail_with(Error error);

  // ---- file_shelf.cpp
  void look_at_shelf();
  /// Where the next part ends at the latest.
  std::uint64_t next_gap_end() const;
  void plan_inherited();
  void shelve_waiting(Clock::time_point now);
  bool shelve(const Part& part);
  bool take_back(Part& front);
  void keep_parts();
  void clear_shelf();

  DownloadContext& context_;
  std::size_t index_;
  const ListedFile& file_;
  ByteSink* sink_;
  SinkWriter::Channel channel_;
  PartShelf* shelf_;
  bool shelf_takes_ = true;               ///< nothing went wrong in putting there
  std::deque<PartShelf::Part> inherited_; ///< on the shelf, behind planned_; in order, disjoint
  FileSource source_;
  std::uint64_t written_;      ///< bytes in the sink, or queued for it
  std::uint64_t planned_;      ///< end of the last part
  bool in_parts_ = false;      ///< cut into parts, not one range
  bool fetched_again_ = false; ///< after a wrong digest
  std::deque<Part> parts_;     ///< in order; the first one writes through
  State state_ = State::working;
  std::optional<Error> error_;
};

} // namespace modeld::fetch
