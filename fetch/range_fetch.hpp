// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/download_context.hpp"
#include "fetch/resume.hpp"
#include "fetch/retry.hpp"
#include "fetch/speed_watch.hpp"
#include "fetch/transfer.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace modeld::fetch {

class RangeFetch;

/// Takes the bytes of ranges.
class RangeOwner {
public:
  RangeOwner() = default;
  RangeOwner(const RangeOwner&) = delete;
  RangeOwner& operator=(const RangeOwner&) = delete;
  virtual ~RangeOwner() = default;

  /// The next bytes of a range, in order.
  virtual Result<void> on_bytes(RangeFetch& range, std::span<const std::byte> bytes) = 0;
  /// The whole file comes from its first byte; asked of a `sole` range only.
  virtual Result<void> on_restart(RangeFetch& range) = 0;
  /// The source's validator is another one now, for bytes that come next.
  virtual void on_validator() {}
};

/// Bytes [first, end) of one file on their way to an owner: a chain of requests (site, perhaps
/// storage), of which each says what comes next.
///
/// Invariants: 1. bytes reach the owner in order and none beyond `end`; 2. no byte of an answer
/// that judge() did not accept reaches it; 3. a failure without a new byte uses up an attempt, so
/// every chain ends.
class RangeFetch : public Receiver {
public:
  enum class State {
    ready,
    running,
    done,
    unranged, ///< a `part` met a server that does not do ranges
    failed,
  };
  /// The only range of its file may fall back to the whole file; one of several may not.
  enum class Kind { sole, part };

  RangeFetch(DownloadContext& context, const ListedFile& file, FileSource& source,
             RangeOwner& owner, std::uint64_t first, std::uint64_t end, Kind kind);
  ~RangeFetch() override { cancel(); }

  State state() const { return state_; }
  const Error& error() const { return *error_; }
  std::uint64_t position() const { return position_; }
  std::uint64_t end() const { return end_; }
  /// Not before this may the next request go out.
  Clock::time_point ready_at() const;

  void start();
  /// Replaces a silent connection.
  void check_speed(Clock::time_point now);
  /// Others wait for this range: replaces a connection that brought nothing for `patience`, a few
  /// times without a new byte, and not as a failure.
  void hurry(Clock::time_point now, std::chrono::milliseconds patience);
  /// Reading is held back on purpose: silence does not count.
  void excuse(Clock::time_point now) {
    watch_.start(now);
    last_byte_ = now;
  }
  void cancel();
  /// Ranges do not work there: ask for the whole file. `sole` only.
  void ask_for_whole() { whole_ = true; }

  bool on_head(unsigned status, const Headers& headers) override;
  bool on_body(std::span<const std::byte> bytes) override;
  void on_end(const Error* error) override;

private:
  /// What the body of the running answer is.
  enum class Body { discard, words, content, refused };

  Wanted wanted() const;
  bool accept(const Headers& headers);
  void check_hub_head(const Headers& headers);
  bool write(std::span<const std::byte> bytes);
  bool begin_content(std::span<const std::byte> first);
  void ended_redirect();
  void ended_content(const Error* error);
  void ended_refused();
  void ended_status();
  void refused_range();
  bool ask_for_less();
  bool at_storage() const;
  void renew(std::string_view why);
  void retry(Error error, std::optional<std::chrono::seconds> asked);
  bool next_site(const Error& error);
  void back_to_site();
  void give_up(Error error);
  void fatal(Error error);
  Error failure(Errc code, std::string_view cause) const;

  DownloadContext& context_;
  const ListedFile& file_;
  FileSource& source_;
  RangeOwner& owner_;
  Kind kind_;
  std::uint64_t end_;
  std::uint64_t position_;   ///< of the next byte
  std::uint64_t high_water_; ///< the farthest that position_ ever was: old ground is no progress
  std::uint64_t window_;     ///< longest range to ask for
  Url url_;
  unsigned hops_ = 0;
  bool whole_ = false;
  bool insist_ = false; ///< on a range even where it is the whole file
  bool fresh_connection_ = false;
  unsigned ranges_refused_ = 0;
  unsigned renewals_ = 0;
  unsigned renewals_in_vain_ = 0;
  unsigned moves_in_vain_ = 0;
  Clock::time_point last_byte_{}; ///< of the running request, or its start
  Attempts attempts_;
  RetryBudget budget_;
  SpeedWatch watch_;
  State state_ = State::ready;
  Clock::time_point ready_at_{};
  std::optional<Error> error_;

  // The running request.
  Wire::Id id_ = 0;
  Wanted asked_;
  unsigned status_ = 0;
  Headers headers_;
  Body body_ = Body::discard;
  Verdict verdict_;
  std::string words_;
  bool begun_ = false;
};

} // namespace modeld::fetch
