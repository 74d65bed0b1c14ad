// SPDX-License-Identifier: Apache-2.0
#include "fetch/api.hpp"

#include "fetch/speed_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <optional>

namespace modeld::fetch {
namespace {

using std::chrono::milliseconds;

// Cancellation is noticed within 100 ms (Progress::cancel), so nothing waits longer at once.
constexpr milliseconds k_step{50};

class Collector : public Receiver {
public:
  Collector(std::size_t limit, SpeedWatch& watch) : limit_(limit), watch_(watch) {}

  bool on_head(unsigned status, const Headers& headers) override {
    answer.status = status;
    answer.headers = headers;
    return true;
  }
  bool on_body(std::span<const std::byte> bytes) override {
    watch_.count(bytes.size());
    if (bytes.size() > limit_ - answer.body.size()) {
      too_long = true;
      return false;
    }
    answer.body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return true;
  }
  void on_end(const Error* error) override {
    ended = true;
    if (error != nullptr) failure = *error;
  }

  ApiAnswer answer;
  std::optional<Error> failure;
  bool too_long = false;
  bool ended = false;

private:
  std::size_t limit_;
  SpeedWatch& watch_;
};

} // namespace

Error cancelled_error() {
  return Error{Errc::cancelled, "downloading: cancelled", "", {}, 0};
}

Result<ApiAnswer> Api::once(const Url& url, bool fresh_connection) {
  SpeedWatch watch(options_.low_speed_bytes_per_second, options_.low_speed_time);
  Collector collector(options_.max_answer_bytes, watch);
  HttpRequest request = courier_.request(url);
  request.headers.emplace_back("Accept", "application/json");
  request.fresh_connection = fresh_connection;
  watch.start(host_.now());
  const Wire::Id id = wire_.start(request, collector);
  while (!collector.ended) {
    wire_.step(k_step);
    if (collector.ended) break;
    const bool cancelled = host_.cancelled();
    if (!cancelled && !watch.stalled(host_.now())) continue;
    wire_.cancel(id);
    if (cancelled) return fail(cancelled_error());
    host_.on_notice({Notice::Kind::stalled, fmt::format("'{}' went silent", url.redacted()), {}});
    return fail(Errc::net_transient,
                fmt::format("asking '{}': the server went silent", url.redacted()));
  }
  if (collector.too_long) {
    return fail(Errc::malformed, fmt::format("asking '{}': the answer is longer than {} bytes",
                                             url.redacted(), options_.max_answer_bytes));
  }
  if (collector.failure) return fail(std::move(*collector.failure));
  collector.answer.url = url;
  return std::move(collector.answer);
}

Result<ApiAnswer> Api::follow(const Url& url, bool fresh_connection) {
  Url at = url;
  for (unsigned hops = 1;; ++hops) {
    MODELD_ASSIGN(ApiAnswer answer, once(at, fresh_connection));
    if (!is_redirect(answer.status)) return answer;
    MODELD_ASSIGN(at, courier_.follow_api(at, answer.headers, hops));
  }
}

Result<ApiAnswer> Api::get(const Url& url) {
  Attempts attempts(options_.max_attempts);
  bool fresh = false;
  for (;;) {
    if (host_.cancelled()) return fail(cancelled_error());
    auto answer = follow(url, fresh);
    if (!answer && !info(answer.error().code).retryable) return answer;
    if (answer && !is_retryable_status(answer->status)) return answer;
    fresh = !answer;
    const auto asked = answer ? wait_asked_for(answer->headers, std::time(nullptr)) : std::nullopt;
    const auto wait = attempts.failed(host_.jitter());
    if (!wait) return answer;
    const milliseconds longer =
        std::max<milliseconds>(*wait, asked.value_or(std::chrono::seconds(0)));
    const std::string why = answer ? fmt::format("'{}' answers {}", url.redacted(), answer->status)
                                   : answer.error().message;
    if (!budget_.take(longer)) return answer;
    MODELD_TRY(pause(longer, asked ? Notice::Kind::rate_limited : Notice::Kind::retry, why));
  }
}

Result<void> Api::pause(milliseconds wait, Notice::Kind kind, const std::string& why) {
  host_.on_notice({kind, why, wait});
  const auto until = host_.now() + wait;
  for (auto at = host_.now(); at < until; at = host_.now()) {
    if (host_.cancelled()) return fail(cancelled_error());
    host_.sleep(std::min<Clock::duration>(until - at, k_step));
  }
  return {};
}

} // namespace modeld::fetch
