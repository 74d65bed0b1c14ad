// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <curl/curl.h>

#include <memory>
#include <string>
#include <string_view>

namespace modeld::fetch {

struct CloseEasy {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct CloseMulti {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};
struct CloseUrl {
  void operator()(CURLU* handle) const { curl_url_cleanup(handle); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
struct FreeText {
  void operator()(char* text) const { curl_free(text); }
};

using EasyHandle = std::unique_ptr<CURL, CloseEasy>;
using MultiHandle = std::unique_ptr<CURLM, CloseMulti>;
using UrlHandle = std::unique_ptr<CURLU, CloseUrl>;
using HeaderList = std::unique_ptr<curl_slist, FreeList>;
using CurlText = std::unique_ptr<char, FreeText>;

/// Prepares the library once for the process; safe from any thread.
void init_curl();
/// Appends "Name: value".
void append(HeaderList& list, const std::string& line);

/// The only door for curl's codes: what a retry can mend is net_transient, the rest net_permanent.
/// `detail` is curl's own words, which never hold headers or addresses with queries.
Error from_curl(CURLcode code, std::string_view doing, std::string_view detail);

} // namespace modeld::fetch
