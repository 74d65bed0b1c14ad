// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/hub_client.hpp"
#include "fetch/request.hpp"
#include "fetch/resume.hpp"
#include "fetch/retry.hpp"
#include "fetch/speed_watch.hpp"
#include "fetch/transfer.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace modeld::fetch {

/// What all files of one download share.
struct DownloadContext {
  Wire& wire;
  const HubOptions& options;
  const Courier& courier;
  DownloadHost& host;
  RepoId repo;
  GitOid commit;
  Clock::time_point hold_until{}; ///< rate limit: nobody asks before
};

/// One file on its way from the Hub to its sink: a chain of requests (site, perhaps storage), of
/// which each says what comes next. Owned by HubClient::download, used on its thread.
///
/// Invariants: 1. bytes reach the sink in order and at most `size` of them; 2. no byte of an answer
/// that judge() did not accept reaches it; 3. a failure without a new byte uses up an attempt, so
/// every chain ends.
class FileFetch : public Receiver {
public:
  enum class State { ready, running, done, failed };

  FileFetch(DownloadContext& context, std::size_t index, const Download& download, Url first);

  ~FileFetch() override { cancel(); }

  State state() const { return state_; }
  const Error& error() const { return *error_; }
  /// Not before this may the next request go out.
  Clock::time_point ready_at() const { return ready_at_; }

  /// Sends the next request, or finishes a file of which nothing is missing.
  void start();
  /// Replaces a silent connection.
  void check_speed(Clock::time_point now);
  void cancel();

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
  Result<void> restart_sink();
  void ended_redirect();
  void ended_content(const Error* error);
  void ended_refused();
  void ended_status();
  bool at_storage() const;
  void renew(std::string_view why);
  void retry(Error error, std::optional<std::chrono::seconds> asked);
  void complete();
  void fatal(Error error);
  Error failure(Errc code, std::string_view cause) const;

  DownloadContext& context_;
  std::size_t index_;
  const ListedFile& file_;
  ByteSink* sink_;
  Url first_;
  Url url_;
  unsigned hops_ = 0;
  std::uint64_t written_;    ///< bytes in the sink
  std::uint64_t high_water_; ///< the most that ever were: going over old ground is no progress
  std::uint64_t window_;     ///< longest range to ask for
  std::string etag_;         ///< strong tag of the last content, from etag_host_
  std::string etag_host_;
  bool whole_ = false; ///< ranges do not work there: ask for everything
  bool fresh_connection_ = false;
  unsigned ranges_refused_ = 0;
  unsigned renewals_ = 0;
  unsigned renewals_in_vain_ = 0;
  bool fetched_again_ = false; ///< after a wrong digest
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
