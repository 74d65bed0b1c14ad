// SPDX-License-Identifier: Apache-2.0
#include "fetch/file_fetch.hpp"

#include "fetch/hub_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <string_view>

namespace modeld::fetch {
namespace {

constexpr std::size_t k_max_words = 64 << 10; // of an error's body
constexpr std::uint64_t k_smallest_window = 1 << 20;
constexpr std::uint64_t k_first_window = 512 << 20; // where a server refuses the whole (C08)
constexpr unsigned k_ranges_refused_max = 2;
constexpr unsigned k_renewals_in_vain_max = 3;

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

} // namespace

FileFetch::FileFetch(DownloadContext& context, std::size_t index, const Download& download,
                     Url first)
    : context_(context), index_(index), file_(download.file), sink_(download.sink), first_(first),
      url_(std::move(first)), written_(download.offset), high_water_(download.offset),
      window_(std::numeric_limits<std::uint64_t>::max()), attempts_(context.options.max_attempts),
      budget_(context.options.retry_budget),
      watch_(context.options.low_speed_bytes_per_second, context.options.low_speed_time) {}

Wanted FileFetch::wanted() const {
  if (whole_) return {0, file_.size, file_.size, false, {}};
  const std::uint64_t left = file_.size - written_;
  const std::uint64_t end = written_ + std::min(left, window_);
  const bool ranged = written_ > 0 || end < file_.size;
  return {written_, end, file_.size, ranged, url_.host() == etag_host_ ? etag_ : std::string()};
}

void FileFetch::start() {
  if (written_ == file_.size) { // empty, or complete before the first request (C01)
    complete();
    return;
  }
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

void FileFetch::check_speed(Clock::time_point now) {
  if (state_ != State::running || !watch_.stalled(now)) return;
  context_.wire.cancel(id_);
  context_.host.on_notice({Notice::Kind::stalled, fmt::format("'{}' went silent", file_.path), {}});
  retry(failure(Errc::net_transient, "the server went silent"), std::nullopt);
}

void FileFetch::cancel() {
  if (state_ == State::running) context_.wire.cancel(id_);
}

bool FileFetch::on_head(unsigned status, const Headers& headers) {
  status_ = status;
  headers_ = headers;
  if (context_.courier.at_hub(url_) && status < 400) check_hub_head(headers);
  if (error_) return false;
  if (is_redirect(status)) return true;
  if (status == 200 || status == 206) return accept(headers);
  if (status == 416) {
    verdict_ = judge(asked_, status, headers);
    body_ = Body::discard;
    return true;
  }
  body_ = Body::words;
  return true;
}

/// A 200 or 206: content, or something that must not be written. What is refused is read a little
/// further, since its first bytes tell a web page or a pointer from a broken file.
bool FileFetch::accept(const Headers& headers) {
  verdict_ = judge(asked_, status_, headers);
  body_ = verdict_.kind == Verdict::Kind::refuse ? Body::refused : Body::content;
  return true;
}

/// The Hub's own words about the file have to agree with its listing.
void FileFetch::check_hub_head(const Headers& headers) {
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

bool FileFetch::on_body(std::span<const std::byte> bytes) {
  watch_.count(bytes.size());
  switch (body_) {
  case Body::discard:
    return true;
  case Body::words:
    if (words_.size() + bytes.size() <= k_max_words) {
      words_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return true;
  case Body::refused:
    words_.assign(reinterpret_cast<const char*>(bytes.data()),
                  std::min<std::size_t>(bytes.size(), 512));
    return false;
  case Body::content:
    return write(bytes);
  }
  return false;
}

/// Before the first byte of an accepted answer is written.
bool FileFetch::begin_content(std::span<const std::byte> first) {
  const bool from_start = verdict_.kind == Verdict::Kind::restart || asked_.first == 0;
  const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
  if (from_start && (looks_like_page(file_.path, headers_.get("Content-Type"), text) ||
                     (file_.sha256 && looks_like_pointer(text)))) {
    words_ = text.substr(0, 512);
    body_ = Body::refused;
    return false;
  }
  if (from_start && written_ > 0) {
    if (auto done = restart_sink(); !done) {
      fatal(std::move(done).error());
      return false;
    }
  }
  etag_ = is_strong_etag(headers_.get("ETag")) ? headers_.get("ETag") : "";
  etag_host_ = url_.host();
  begun_ = true;
  return true;
}

bool FileFetch::write(std::span<const std::byte> bytes) {
  if (!begun_ && !begin_content(bytes)) return false;
  const std::uint64_t end = verdict_.kind == Verdict::Kind::restart ? file_.size : asked_.end;
  const auto fits = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), end - written_));
  if (auto done = sink_->write(bytes.first(fits)); !done) {
    fatal(std::move(done).error().context(fmt::format("downloading '{}'", file_.path)));
    return false;
  }
  written_ += fits;
  if (written_ > high_water_) {
    high_water_ = written_;
    attempts_.progressed();
    renewals_in_vain_ = 0;
    ranges_refused_ = 0;
  }
  context_.host.on_progress(index_, written_);
  return fits == bytes.size(); // more than was asked for: the rest is not ours
}

Result<void> FileFetch::restart_sink() {
  context_.host.on_notice({Notice::Kind::restarted,
                           fmt::format("'{}' starts again from the first byte", file_.path),
                           {}});
  MODELD_ASSIGN(sink_, context_.host.on_restart(index_));
  written_ = 0;
  etag_.clear();
  context_.host.on_progress(index_, 0);
  return {};
}

void FileFetch::on_end(const Error* error) {
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

void FileFetch::ended_redirect() {
  auto next = context_.courier.follow(url_, headers_, ++hops_);
  if (!next)
    return fatal(std::move(next).error().context(fmt::format("downloading '{}'", file_.path)));
  url_ = std::move(*next);
}

void FileFetch::ended_content(const Error* error) {
  if (written_ == file_.size) return complete();
  if (begun_ && written_ == asked_.end) return; // the next window, from the same address
  if (error != nullptr) return retry(failure(error->code, error->message), std::nullopt);
  retry(failure(Errc::net_transient,
                fmt::format("the answer ended at byte {} of {}", written_, file_.size)),
        std::nullopt);
}

/// An answer that judge() or its first bytes ruled out.
void FileFetch::ended_refused() {
  if (verdict_.kind == Verdict::Kind::complete) return complete();
  if (looks_like_page(file_.path, headers_.get("Content-Type"), words_)) {
    return fatal(
        failure(Errc::net_permanent, "a web page came in place of the file")
            .with_hint("a login page, a proxy or a block page answers in the Hub's name: open "
                       "the address in a browser, and check HF_ENDPOINT and HTTPS_PROXY"));
  }
  if (file_.sha256 && looks_like_pointer(words_)) {
    return fatal(
        failure(Errc::net_permanent,
                fmt::format("an LFS pointer came in place of the content, expected are {} bytes "
                            "with SHA-256 {}",
                            file_.size, file_.sha256->hex()))
            .with_hint("the server does not hold the large files: use another HF_ENDPOINT"));
  }
  if (asked_.ranged && ++ranges_refused_ >= k_ranges_refused_max) whole_ = true;
  retry(failure(Errc::net_transient, verdict_.why), std::nullopt);
}

/// Whether the running answer comes from where a redirect led, and not from the Hub's own routes:
/// the storage may have the same origin, with a mirror.
bool FileFetch::at_storage() const {
  if (!context_.courier.at_hub(url_)) return true;
  return hops_ > 0 && !headers_.has("X-Error-Code");
}

void FileFetch::ended_status() {
  const auto asked = wait_asked_for(headers_, std::time(nullptr));
  const bool storage = at_storage();
  if (storage && !is_retryable_status(status_)) {
    const bool too_much = status_ == 400 || status_ == 413;
    if (too_much && asked_.end - asked_.first > k_smallest_window) {
      window_ = window_ > file_.size ? std::min(k_first_window, (asked_.end - asked_.first) / 2)
                                     : window_ / 8;
      window_ = std::max(window_, k_smallest_window);
      return;
    }
    return renew(fmt::format("the storage answers {}", status_));
  }
  const Subject subject{context_.options.endpoint, context_.repo.text, context_.commit.hex(),
                        file_.path, context_.courier.has_token()};
  Error error = !storage
                    ? refusal(subject, status_, headers_, words_)
                    : failure(Errc::net_transient, fmt::format("the storage answers {}", status_));
  if (error.code != Errc::net_transient) return fatal(std::move(error));
  retry(std::move(error), asked);
}

/// A signed address that is no longer good: ask the Hub for a new one. That is no failure as long
/// as bytes come in between (C03).
void FileFetch::renew(std::string_view why) {
  if (++renewals_in_vain_ >= k_renewals_in_vain_max ||
      ++renewals_ > context_.options.max_renewals) {
    return retry(failure(Errc::net_transient, why), std::nullopt);
  }
  context_.host.on_notice({Notice::Kind::renewed, fmt::format("'{}': {}", file_.path, why), {}});
  url_ = first_;
  hops_ = 0;
}

void FileFetch::retry(Error error, std::optional<std::chrono::seconds> asked) {
  state_ = State::ready;
  if (!info(error.code).retryable) return fatal(std::move(error));
  const auto wait = attempts_.failed(context_.host.jitter());
  const auto longer = std::max<std::chrono::milliseconds>(
      wait.value_or(std::chrono::milliseconds(0)), asked.value_or(std::chrono::seconds(0)));
  if (!wait || !budget_.take(longer)) {
    error.message += fmt::format(", given up after {} attempts", attempts_.failures());
    return fatal(std::move(error));
  }
  ready_at_ = context_.host.now() + longer;
  if (asked) context_.hold_until = std::max(context_.hold_until, ready_at_);
  context_.host.on_notice(
      {asked ? Notice::Kind::rate_limited : Notice::Kind::retry, error.message, longer});
  fresh_connection_ = true;
  // Once more the same address, then ask the Hub, which may name another storage.
  if (attempts_.failures() > 1 || context_.courier.at_hub(url_)) url_ = first_;
  hops_ = url_.text() == first_.text() ? 0 : hops_;
}

void FileFetch::complete() {
  auto done = context_.host.on_file_done(index_);
  if (done) {
    state_ = State::done;
    return;
  }
  if (done.error().code != Errc::digest_mismatch || fetched_again_)
    return fatal(std::move(done).error());
  fetched_again_ = true;
  if (auto restarted = restart_sink(); !restarted) return fatal(std::move(restarted).error());
  high_water_ = 0;
  url_ = first_;
  hops_ = 0;
  fresh_connection_ = true;
  state_ = State::ready;
}

void FileFetch::fatal(Error error) {
  if (!error_) error_ = std::move(error);
  state_ = State::failed;
}

Error FileFetch::failure(Errc code, std::string_view cause) const {
  return Error{code, fmt::format("downloading '{}': {}", file_.path, cause), {}, {}, 0};
}

} // namespace modeld::fetch
