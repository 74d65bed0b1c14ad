// SPDX-License-Identifier: Apache-2.0
#include "fetch/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace modeld::fetch {
namespace {

// The Hub's own names (hub-protocol.md 1.8): a mirror may send its API callers there.
constexpr std::array<std::string_view, 2> k_hub_hosts{"huggingface.co", "hf.co"};

} // namespace

bool is_redirect(unsigned status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

HttpRequest Courier::request(Url url) const {
  HttpRequest request{std::move(url), {}, false};
  if (has_token() && at_hub(request.url)) {
    request.headers.emplace_back("Authorization", "Bearer " + token_.reveal());
  }
  return request;
}

Result<Url> Courier::follow(const Url& from, const Headers& headers, unsigned hops) const {
  const auto refuse = [&](std::string_view why) {
    return fail(Errc::net_permanent,
                fmt::format("following a redirect from '{}': {}", from.redacted(), why));
  };
  if (hops > max_redirects_) return refuse(fmt::format("more than {} in a row", max_redirects_));
  const std::string_view location = headers.get("Location");
  if (location.empty()) return refuse("it has no Location");
  auto to = from.join(location);
  if (!to) return refuse(to.error().message);
  if (from.secure() && !to->secure()) {
    return refuse(fmt::format("it leads from https down to '{}'", to->redacted()));
  }
  return to;
}

Result<Url> Courier::follow_api(const Url& from, const Headers& headers, unsigned hops) const {
  MODELD_ASSIGN(Url to, follow(from, headers, hops));
  const bool known =
      std::find(k_hub_hosts.begin(), k_hub_hosts.end(), to.host()) != k_hub_hosts.end();
  if (to.origin() == from.origin() || at_hub(to) || (known && to.secure())) return to;
  return fail(
      Errc::net_permanent,
      fmt::format("asking '{}': it redirects to '{}', which is not a Hub that was configured",
                  from.redacted(), to.redacted()),
      fmt::format("set HF_ENDPOINT to {} if you trust it", to.origin()));
}

} // namespace modeld::fetch
