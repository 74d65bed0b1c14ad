// SPDX-License-Identifier: Apache-2.0
// What a range does when a request of it has ended: go on, ask again, ask elsewhere, or fail.
#include "fetch/hub_answer.hpp"
#include "fetch/range_fetch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

namespace modeld::fetch {
namespace {

constexpr std::uint64_t k_smallest_window = 1 << 20;
constexpr std::uint64_t k_first_window = 512 << 20; // where a server refuses the whole (C08)
constexpr unsigned k_ranges_refused_max = 2;
constexpr unsigned k_renewals_in_vain_max = 3;
constexpr unsigned k_attempts_at_mirror = 2;

} // namespace

void RangeFetch::ended_redirect() {
  auto next = context_.courier.follow(url_, headers_, ++hops_);
  if (!next)
    return give_up(std::move(next).error().context(fmt::format("downloading '{}'", file_.path)));
  url_ = std::move(*next);
}

void RangeFetch::ended_content(const Error* error) {
  if (position_ == end_) {
    state_ = State::done;
    return;
  }
  if (begun_ && position_ == asked_.end) return; // the next window, from the same address
  if (error != nullptr) return retry(failure(error->code, error->message), std::nullopt);
  retry(failure(Errc::net_transient,
                fmt::format("the answer ended at byte {} of {}", position_, file_.size)),
        std::nullopt);
}

/// An answer that judge() or its first bytes ruled out.
void RangeFetch::ended_refused() {
  if (verdict_.kind == Verdict::Kind::complete) {
    state_ = State::done;
    return;
  }
  const std::string_view type = headers_.get("Content-Type");
  const bool page_by_type = status_ == 200 && body_ == Body::refused &&
                            verdict_.kind == Verdict::Kind::refuse && type.starts_with("text/html");
  if (page_by_type || looks_like_page(file_.path, type, words_)) {
    return give_up(
        failure(Errc::net_permanent, "a web page came in place of the file")
            .with_hint("a login page, a proxy or a block page answers in the Hub's name: open "
                       "the address in a browser, and check HF_ENDPOINT and HTTPS_PROXY"));
  }
  if (file_.sha256 && looks_like_pointer(words_)) {
    return give_up(
        failure(Errc::net_permanent,
                fmt::format("an LFS pointer came in place of the content, expected are {} "
                            "bytes with SHA-256 {}",
                            file_.size, file_.sha256->hex()))
            .with_hint("the server does not hold the large files: use another HF_ENDPOINT"));
  }
  refused_range();
  if (state_ != State::unranged) retry(failure(Errc::net_transient, verdict_.why), std::nullopt);
}

/// Some servers do not do ranges; the sole range of a file asks for all of it then.
void RangeFetch::refused_range() {
  if (!asked_.ranged || ++ranges_refused_ < k_ranges_refused_max) return;
  if (kind_ == Kind::part) {
    state_ = State::unranged;
  } else {
    whole_ = true;
  }
}

/// Whether the running answer comes from where a redirect led, and not from the Hub's own routes:
/// the storage may have the same origin, with a mirror.
bool RangeFetch::at_storage() const {
  if (!context_.courier.at_hub(url_)) return true;
  return hops_ > 0 && !headers_.has("X-Error-Code");
}

/// Some servers refuse large files as a whole, some every request without a range (C08). False
/// where nothing smaller is left to ask for.
bool RangeFetch::ask_for_less() {
  const std::uint64_t length = asked_.end - asked_.first;
  if (length > k_smallest_window) {
    window_ = std::max(k_smallest_window, std::min(k_first_window, length / 8));
    return true;
  }
  return !asked_.ranged && !whole_ && !std::exchange(insist_, true);
}

void RangeFetch::ended_status() {
  const auto asked = wait_asked_for(headers_, std::time(nullptr));
  const bool storage = at_storage();
  const std::string said = fmt::format("the storage answers {}", status_);
  if ((status_ == 400 || status_ == 413) && !headers_.has("X-Error-Code") && ask_for_less()) return;
  if (storage && !is_retryable_status(status_)) return renew(said);
  const std::string revision = context_.commit.hex();
  const Subject subject{context_.options.endpoint, context_.repo.text, revision, file_.path,
                        context_.courier.has_token()};
  Error error =
      storage ? failure(Errc::net_transient, said) : refusal(subject, status_, headers_, words_);
  if (error.code != Errc::net_transient) return give_up(std::move(error));
  retry(std::move(error), asked);
}

/// A signed address that is no longer good: ask the site for a new one. That is no failure as long
/// as bytes come in between (C03).
void RangeFetch::renew(std::string_view why) {
  if (++renewals_in_vain_ >= k_renewals_in_vain_max ||
      ++renewals_ > context_.options.max_renewals) {
    return retry(failure(Errc::net_transient, why), std::nullopt);
  }
  context_.host.on_notice({Notice::Kind::renewed, fmt::format("'{}': {}", file_.path, why), {}});
  back_to_site();
}

void RangeFetch::back_to_site() {
  if (source_.storage.text() == url_.text()) source_.storage = {};
  url_ = source_.first();
  hops_ = 0;
}

void RangeFetch::retry(Error error, std::optional<std::chrono::seconds> asked) {
  using std::chrono::milliseconds;
  state_ = State::ready;
  if (!info(error.code).retryable) return give_up(std::move(error));
  const auto wait = attempts_.failed(context_.host.jitter());
  if (attempts_.failures() >= k_attempts_at_mirror && next_site(error)) return;
  const milliseconds longer = std::max<milliseconds>(wait.value_or(milliseconds(0)),
                                                     asked.value_or(std::chrono::seconds(0)));
  if (!wait || !budget_.take(longer)) {
    error.message += fmt::format(", given up after {} attempts", attempts_.failures());
    return fatal(std::move(error));
  }
  ready_at_ = context_.host.now() + longer;
  if (asked) context_.hold_until = std::max(context_.hold_until, ready_at_);
  context_.host.on_notice(
      {asked ? Notice::Kind::rate_limited : Notice::Kind::retry, error.message, longer});
  fresh_connection_ = true;
  // Once more the same address, then ask the site, which may name another storage.
  if (attempts_.failures() > 1 || context_.courier.at_hub(url_)) back_to_site();
}

/// Mirrors come first and the Hub last; what one cannot give, the next may.
bool RangeFetch::next_site(const Error& error) {
  if (source_.site + 1 >= source_.sites.size()) return false;
  ++source_.site;
  context_.host.on_notice({Notice::Kind::retry,
                           fmt::format("{}; trying '{}'", error.message, source_.first().origin()),
                           {}});
  source_.storage = {};
  attempts_.progressed();
  renewals_in_vain_ = 0;
  whole_ = false;
  back_to_site();
  state_ = State::ready;
  return true;
}

void RangeFetch::give_up(Error error) {
  if (!next_site(error)) fatal(std::move(error));
}

void RangeFetch::fatal(Error error) {
  if (!error_) error_ = std::move(error);
  state_ = State::failed;
}

} // namespace modeld::fetch
