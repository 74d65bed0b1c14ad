// SPDX-License-Identifier: Apache-2.0
#include "fetch/range_fetch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

namespace modeld::fetch {
namespace {

constexpr std::size_t k_max_words = 64 << 10; // of an error's body
constexpr std::size_t k_max_quote = 512;      // of what stands in place of a file
constexpr unsigned k_moves_in_vain_max = 3;

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
  const bool ranged = position_ > 0 || end < file_.size || insist_;
  return {position_, end, file_.size, ranged,
          url_.origin() == source_.validator.origin ? source_.validator.etag : std::string()};
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
  last_byte_ = context_.host.now();
  watch_.start(last_byte_);
  id_ = context_.wire.start(request, *this);
}

void RangeFetch::check_speed(Clock::time_point now) {
  if (state_ != State::running || !watch_.stalled(now)) return;
  context_.wire.cancel(id_);
  context_.host.on_notice({Notice::Kind::stalled, fmt::format("'{}' went silent", file_.path), {}});
  Error silent = failure(Errc::net_transient, "the server went silent");
  if (watch_.slow_periods() >=
      context_.options.max_attempts) { // a byte now and then is no progress
    silent.message +=
        fmt::format(" or slower than {} bytes a second, {} times in a row",
                    context_.options.low_speed_bytes_per_second, watch_.slow_periods());
    state_ = State::ready;
    return give_up(std::move(silent));
  }
  retry(std::move(silent), std::nullopt);
}

void RangeFetch::hurry(Clock::time_point now, std::chrono::milliseconds patience) {
  if (state_ != State::running || now - last_byte_ < patience) return;
  if (moves_in_vain_ >= k_moves_in_vain_max) return; // from here on it is check_speed's
  ++moves_in_vain_;
  context_.wire.cancel(id_);
  state_ = State::ready;
  fresh_connection_ = true;
  context_.host.on_notice(
      {Notice::Kind::stalled,
       fmt::format("'{}': byte {} is late, asked for again", file_.path, position_),
       {}});
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
  if (verdict_.kind == Verdict::Kind::append) asked_.end = verdict_.end;
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
  last_byte_ = context_.host.now();
  for (const auto& share : context_.shares) {
    share->count(bytes.size(), last_byte_);
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
  const std::string_view etag = headers_.get("ETag");
  Validator now{url_.origin(), is_strong_etag(etag) ? std::string(etag) : std::string()};
  if (now != source_.validator) {
    source_.validator = std::move(now);
    owner_.on_validator();
  }
  source_.found = true;
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
    moves_in_vain_ = 0;
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

Error RangeFetch::failure(Errc code, std::string_view cause) const {
  return Error{code, fmt::format("downloading '{}': {}", file_.path, cause), {}, {}, 0};
}

} // namespace modeld::fetch
