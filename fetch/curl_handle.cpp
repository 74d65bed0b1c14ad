// SPDX-License-Identifier: Apache-2.0
#include "fetch/curl_handle.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace modeld::fetch {
namespace {

bool is_transient(CURLcode code) {
  switch (code) {
  case CURLE_COULDNT_RESOLVE_PROXY:
  case CURLE_COULDNT_RESOLVE_HOST:
  case CURLE_COULDNT_CONNECT:
  case CURLE_WEIRD_SERVER_REPLY:
  case CURLE_PARTIAL_FILE:
  case CURLE_OPERATION_TIMEDOUT:
  case CURLE_SSL_CONNECT_ERROR:
  case CURLE_GOT_NOTHING:
  case CURLE_SEND_ERROR:
  case CURLE_RECV_ERROR:
  case CURLE_BAD_CONTENT_ENCODING:
  case CURLE_AGAIN:
  case CURLE_HTTP2:
  case CURLE_HTTP2_STREAM:
    return true;
  default:
    return false;
  }
}

std::string_view hint_of(CURLcode code) {
  switch (code) {
  case CURLE_PEER_FAILED_VERIFICATION:
    return "the certificate is not trusted: set hub.ca_bundle where a proxy of your own signs it";
  case CURLE_SSL_CACERT_BADFILE:
    return "hub.ca_bundle names no readable PEM file";
  case CURLE_COULDNT_RESOLVE_HOST:
    return "check the name in HF_ENDPOINT and the network; HTTPS_PROXY names a proxy";
  default:
    return "";
  }
}

} // namespace

void init_curl() {
  static const CURLcode once = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (once != CURLE_OK) std::abort(); // no memory, or a broken TLS library: nothing to go on from
}

void append(HeaderList& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  if (longer == nullptr) std::abort(); // no memory for a few bytes
  list.release(); // NOLINT(bugprone-unused-return-value): the longer list owns it now
  list.reset(longer);
}

Error from_curl(CURLcode code, std::string_view doing, std::string_view detail) {
  const std::string_view cause = detail.empty() ? curl_easy_strerror(code) : detail;
  return Error{is_transient(code) ? Errc::net_transient : Errc::net_permanent,
               fmt::format("{}: {}", doing, cause),
               std::string(hint_of(code)),
               {},
               0};
}

} // namespace modeld::fetch
