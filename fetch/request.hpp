// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/headers.hpp"
#include "fetch/token.hpp"
#include "fetch/url.hpp"
#include "schema/result.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace modeld::fetch {

/// One request over the wire: one hop, redirects are not followed by themselves.
struct HttpRequest {
  Url url;
  std::vector<std::pair<std::string, std::string>> headers;
  bool fresh_connection = false; ///< do not reuse one: the last went silent
};

/// Where a request may go and what it may carry there. The one place in the program that writes an
/// Authorization header (failure case C04): every request, ranged, repeated or redirected, is made
/// by request(), which compares the address with the Hub's origin.
class Courier {
public:
  Courier(Url hub, Token token, unsigned max_redirects)
      : hub_(std::move(hub)), token_(std::move(token)), max_redirects_(max_redirects) {}

  HttpRequest request(Url url) const;
  bool at_hub(const Url& url) const { return url.origin() == hub_.origin(); }
  bool has_token() const { return !token_.empty(); }

  /// The next address after a redirect, the `hops`-th (from 1) of a request: net_permanent for too
  /// many, none or an unusable Location, or a step from https down to http.
  Result<Url> follow(const Url& from, const Headers& headers, unsigned hops) const;
  /// The same for API answers, which may not leave the Hub for an origin that nobody named.
  Result<Url> follow_api(const Url& from, const Headers& headers, unsigned hops) const;

private:
  Url hub_;
  Token token_;
  unsigned max_redirects_;
};

/// 301, 302, 303, 307 or 308.
bool is_redirect(unsigned status);

} // namespace modeld::fetch
