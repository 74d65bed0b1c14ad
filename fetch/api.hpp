// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/host.hpp"
#include "fetch/hub_client.hpp"
#include "fetch/request.hpp"
#include "fetch/retry.hpp"
#include "fetch/transfer.hpp"
#include "schema/result.hpp"

#include <chrono>
#include <string>

namespace modeld::fetch {

struct ApiAnswer {
  unsigned status = 0;
  Headers headers;
  std::string body;
  Url url; ///< that answered, after redirects
};

/// Requests for JSON, one after the other, with redirects inside the Hub and retries. Any answer
/// that a retry cannot mend is returned, refusals too.
class Api {
public:
  Api(Wire& wire, const HubOptions& options, const Courier& courier, Host& host)
      : wire_(wire), options_(options), courier_(courier), host_(host),
        budget_(options.retry_budget) {}

  Result<ApiAnswer> get(const Url& url);

private:
  Result<ApiAnswer> once(const Url& url, bool fresh_connection);
  Result<ApiAnswer> follow(const Url& url, bool fresh_connection);
  Result<void> pause(std::chrono::milliseconds wait, Notice::Kind kind, const std::string& why);

  Wire& wire_;
  const HubOptions& options_;
  const Courier& courier_;
  Host& host_;
  RetryBudget budget_;
};

/// Errc::cancelled, in the words used everywhere in fetch.
Error cancelled_error();

} // namespace modeld::fetch
