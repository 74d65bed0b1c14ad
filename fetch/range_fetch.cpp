// SPDX-License-Identifier: Apache-2.0
#include "fetch/range_fetch.hpp"

#include "fetch/bandwidth.hpp"
#include "fetch/hub_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <string_view>

namespace modeld::fetch {
namespace {

constexpr std::size_t k_max_words = 64 << 10; // of an error's body
constexpr std::size_t k_max_quote = 512;      // of what stands in place of a file
constexpr std::uint64_t k_smallest_window = 1 << 20;
constexpr std::uint64_t k_first_window = 512 << 20; // where a server refuses the whole (C08)
constexpr unsigned k_ranges_refused_max = 2;
constexpr unsigned k_renewals_in_vain_max = 3;
constexpr unsigned k_attempts_at_mirror = 2;

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string_view as_text(std::span<const std::byte> bytes, std::size_t most) {
  return {reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), most)};
}

} // namespace

RangeFetch::RangeFetch(DownloadContext& context, const ListedFile& file, FileSource& source,
                       RangeOwner& owner, std::uint64_t first, std::uint64_t end, Kind kind)
    : context_(context), file_(file), source_(source), owner_(owner), kind_(kind), end_(end),
      position_(first), high_water_(first), window_(std::numeric_limits<std::uint64_t>::max()),
      url_(source.storage.text().empty() ? source.first() : source.storage),
      hops_(source.storage.text().empty() ? 0 : 1), attempts_(context.options.max_attempts),
      budget_(context.options.retry_budget),
      watch_(context.options.low_speed_bytes_per_second, context.options.low_speed_time) {}

Clock::time_point RangeFetch::ready_at() const {
  return std::max(ready_at_, context_.hold_until);
}

Wanted RangeFetch::wanted() const {
  if (whole_) return {0, file_.size, file_.size, false, {}};
  const std::uint64_t end = position_ + std::min(end_ - position_, window_);
  const bool ranged = position_ > 0 || end < file_.size;
  return {position_, end, file_.size, ranged,
          url_.host() == source_.etag_host ? source_.etag : std::string()};
}

void RangeFetch::start() {
  asked_ = wanted();
  HttpRequest request = context_.courier.request(url_);
  if (asked_.ranged) {
    request.headers.emplace_back("Range", range_value(asked_));
    if (!asked_.etag.empty()) request.headers.emplace_back("If-Range", asked_.etag);
  }
  request.fresh_connection = std::exchange(fresh_connection_, false);
  status_ = 0;
  body_ = Body::discard;
  words_.clear();
  begun_ = false;
  state_ = State::running;
  watch_.start(context_.host.now());
  id_ = context_.wire.start(request, *this);
}

void RangeFetch::check_speed(Clock::time_point now) {
  if (state_ != State::running || !watch_.stalled(now)) return;
  context_.wire.cancel(id_);
  context_.host.on_notice({Notice::Kind::stalled, fmt::format("'{}' went silent", file_.path), {}});
  retry(failure(Errc::net_transient, "the server went silent"), std::nullopt);
}

void RangeFetch::cancel() {
  if (state_ == State::running) context_.wire.cancel(id_);
  state_ = State::ready;
}

bool RangeFetch::on_head(unsigned status, const Headers& headers) {
  status_ = status;
  headers_ = headers;
  if (context_.courier.at_hub(url_) && status < 400) check_hub_head(headers);
  if (error_) return false;
  if (is_redirect(status)) return true;
  if (status == 200 || status == 206) return accept(headers);
  if (status == 416) {
    verdict_ = judge(asked_, status, headers);
    return true;
  }
  body_ = Body::words;
  return true;
}

/// A 200 or 206: content, or something that must not be written. What is refused is read a little
/// further, since its first bytes tell a web page or a pointer from a broken file.
bool RangeFetch::accept(const Headers& headers) {
  verdict_ = judge(asked_, status_, headers);
  if (verdict_.kind == Verdict::Kind::restart && kind_ == Kind::part)
    verdict_.kind = Verdict::Kind::refuse;
  body_ = verdict_.kind == Verdict::Kind::refuse ? Body::refused : Body::content;
  return true;
}

/// The Hub's own words about the file have to agree with its listing.
void RangeFetch::check_hub_head(const Headers& headers) {
  const std::string_view commit = headers.get("X-Repo-Commit");
  if (!commit.empty() && commit != context_.commit.hex()) {
    return fatal(
        failure(Errc::net_permanent, fmt::format("the Hub answers for commit '{}', asked was {}",
                                                 commit.substr(0, 80), context_.commit.hex())));
  }
  const auto size = parse_number(headers.get("X-Linked-Size"));
  if (size && *size != file_.size) {
    return fatal(
        failure(Errc::net_permanent,
                fmt::format("the Hub announces {} bytes, its listing says {}", *size, file_.size)));
  }
  const std::string_view id = bare_etag(headers.get("X-Linked-ETag"));
  if (!is_hex(id)) return; // an unknown form is no digest, never a mismatch (C16)
  const bool other = (id.size() == 64 && file_.sha256 && id != file_.sha256->hex()) ||
                     (id.size() == 40 && !file_.sha256 && id != file_.git_oid.hex());
  if (!other) return;
  fatal(failure(Errc::net_permanent,
                fmt::format("the Hub announces the digest {}, its listing says {}", id,
                            file_.sha256 ? file_.sha256->hex() : file_.git_oid.hex())));
}

bool RangeFetch::on_body(std::span<const std::byte> bytes) {
  watch_.count(bytes.size());
  for (const auto& limit : context_.options.limits) {
    limit->count(bytes.size(), context_.host.now());
  }
  switch (body_) {
  case Body::discard:
    return true;
  case Body::words:
    words_ += as_text(bytes, k_max_words - words_.size());
    return true;
  case Body::refused:
    words_ = as_text(bytes, k_max_quote);
    return false;
  case Body::content:
    return write(bytes);
  }
  return false;
}

/// Before the first byte of an accepted answer is passed on.
bool RangeFetch::begin_content(std::span<const std::byte> first) {
  const bool from_start = verdict_.kind == Verdict::Kind::restart || asked_.first == 0;
  const std::string_view text = as_text(first, k_max_quote);
  if (from_start && (looks_like_page(file_.path, headers_.get("Content-Type"), text) ||
                     (file_.sha256 && looks_like_pointer(text)))) {
    words_ = text;
    body_ = Body::refused;
    return false;
  }
  if (from_start && position_ > 0) {
    if (auto done = owner_.on_restart(*this); !done) {
      fatal(std::move(done).error());
      return false;
    }
    position_ = 0;
  }
  source_.etag = is_strong_etag(headers_.get("ETag")) ? headers_.get("ETag") : "";
  source_.etag_host = url_.host();
  if (hops_ > 0 && !context_.courier.at_hub(url_)) source_.storage = url_;
  begun_ = true;
  return true;
}

bool RangeFetch::write(std::span<const std::byte> bytes) {
  if (!begun_ && !begin_content(bytes)) return false;
  const std::uint64_t end = verdict_.kind == Verdict::Kind::restart ? file_.size : asked_.end;
  const auto fits =
      static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), end - position_));
  if (auto done = owner_.on_bytes(*this, bytes.first(fits)); !done) {
    fatal(std::move(done).error().context(fmt::format("downloading '{}'", file_.path)));
    return false;
  }
  position_ += fits;
  context_.received += fits;
  if (position_ > high_water_) {
    high_water_ = position_;
    attempts_.progressed();
    renewals_in_vain_ = 0;
    ranges_refused_ = 0;
  }
  return fits == bytes.size(); // more than was asked for: the rest is not ours
}

void RangeFetch::on_end(const Error* error) {
  state_ = State::ready;
  if (error_) {
    state_ = State::failed;
    return;
  }
  if (error != nullptr && (status_ == 0 || body_ == Body::words || is_redirect(status_))) {
    return retry(failure(error->code, error->message).with_hint(error->hint), std::nullopt);
  }
  if (is_redirect(status_)) return ended_redirect();
  if (body_ == Body::content) return ended_content(error);
  if (body_ == Body::refused || status_ == 416) return ended_refused();
  ended_status();
}

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
  if (looks_like_page(file_.path, headers_.get("Content-Type"), words_)) {
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

void RangeFetch::ended_status() {
  const auto asked = wait_asked_for(headers_, std::time(nullptr));
  const bool storage = at_storage();
  const std::string said = fmt::format("the storage answers {}", status_);
  if (storage && !is_retryable_status(status_)) {
    const std::uint64_t length = asked_.end - asked_.first;
    const bool too_much = status_ == 400 || status_ == 413;
    if (!too_much || length <= k_smallest_window) return renew(said);
    window_ = std::max(k_smallest_window, std::min(k_first_window, length / 8));
    return;
  }
  const Subject subject{context_.options.endpoint, context_.repo.text, context_.commit.hex(),
                        file_.path, context_.courier.has_token()};
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

Error RangeFetch::failure(Errc code, std::string_view cause) const {
  return Error{code, fmt::format("downloading '{}': {}", file_.path, cause), {}, {}, 0};
}

} // namespace modeld::fetch
