// SPDX-License-Identifier: Apache-2.0
#include "fetch/url.hpp"

#include "fetch/curl_handle.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace modeld::fetch {
namespace {

constexpr std::size_t k_max_url = 16 << 10; // signed addresses take up to about 8 KiB

std::string part(CURLU* url, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, flags) != CURLUE_OK) return {};
  const CurlText owner(text);
  return text;
}

tl::unexpected<Error> bad_url(std::string_view text, std::string_view why) {
  // Up to the query: signatures and tokens do not belong in messages.
  return fail(Errc::invalid_argument,
              fmt::format("reading address '{}': {}", text.substr(0, text.find('?')), why));
}

std::string encode(std::string_view text, bool keep_slash) {
  std::string out;
  for (const char c : text) {
    const bool unreserved = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                            (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.' || c == '~';
    if (unreserved || (keep_slash && c == '/')) {
      out.push_back(c);
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

} // namespace

Result<Url> Url::parse(std::string_view text) {
  if (text.find("://") == std::string_view::npos) return bad_url(text, "it has no scheme");
  Url nowhere;
  return nowhere.join(text);
}

Result<Url> Url::join(std::string_view reference) const {
  if (reference.size() > k_max_url) return bad_url("", "longer than 16384 bytes");
  const auto at_sign = reference.substr(0, reference.find_first_of("?#")).rfind('@');
  const auto authority = reference.find("//");
  if (at_sign != std::string_view::npos && authority < at_sign &&
      reference.find('/', authority + 2) > at_sign) {
    return fail(Errc::invalid_argument, "reading an address: it has a user name or password in it",
                "give tokens by HF_TOKEN, never inside an address");
  }
  const UrlHandle url(curl_url());
  constexpr unsigned k_flags = CURLU_URLENCODE | CURLU_DISALLOW_USER | CURLU_NON_SUPPORT_SCHEME;
  if (!text_.empty()) curl_url_set(url.get(), CURLUPART_URL, text_.c_str(), 0);
  const std::string wanted(reference.substr(0, reference.find('#')));
  const CURLUcode code = curl_url_set(url.get(), CURLUPART_URL, wanted.c_str(), k_flags);
  if (code != CURLUE_OK) return bad_url(reference, curl_url_strerror(code));
  Url made;
  const std::string scheme = part(url.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") {
    return bad_url(reference, fmt::format("scheme '{}', allowed are http and https", scheme));
  }
  made.secure_ = scheme == "https";
  made.host_ = part(url.get(), CURLUPART_HOST);
  std::transform(made.host_.begin(), made.host_.end(), made.host_.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (made.host_.empty()) return bad_url(reference, "it has no host");
  made.origin_ = fmt::format("{}://{}:{}", scheme, made.host_,
                             part(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT));
  made.text_ = part(url.get(), CURLUPART_URL);
  return made;
}

std::string Url::redacted() const {
  const auto mark = text_.find('?');
  return mark == std::string::npos ? text_ : text_.substr(0, mark) + "?...";
}

std::string encode_segment(std::string_view text) {
  return encode(text, false);
}

std::string encode_path(std::string_view text) {
  return encode(text, true);
}

} // namespace modeld::fetch
