// SPDX-License-Identifier: Apache-2.0
#include "daemon/pull_work.hpp"
#include "daemon/request_body.hpp"
#include "daemon/services.hpp"

#include <boost/json.hpp>

namespace modeld::daemon {
namespace {

// A question to the Hub inside of a request: short, and tried again once only.
constexpr std::chrono::seconds k_patience{5};

class ShortHost final : public fetch::Host {
public:
  bool cancelled() override { return std::chrono::steady_clock::now() > until_; }

private:
  std::chrono::steady_clock::time_point until_ = std::chrono::steady_clock::now() + 3 * k_patience;
};

Result<Response> user(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto token, request_token(request));
  if (token.empty()) {
    return fail(Errc::invalid_argument, "asking the Hub who you are: no token was shown",
                "modelctl login keeps a token");
  }
  fetch::HubOptions options = hub_options(services);
  options.max_attempts = 2;
  options.retry_budget = k_patience;
  options.low_speed_time = std::min<std::chrono::milliseconds>(options.low_speed_time, k_patience);
  const std::string endpoint = options.endpoint;
  MODELD_ASSIGN(auto client, fetch::HubClient::create(std::move(options)));
  ShortHost host;
  MODELD_ASSIGN(const auto name, client.whoami(token, host));
  return Response::json({{"name", name}, {"endpoint", endpoint}});
}

} // namespace

void add_hub_routes(Router& router, Services& services) {
  router.add("GET", "/v1/hub/user",
             [&services](const Request& request) { return user(services, request); });
}

} // namespace modeld::daemon
