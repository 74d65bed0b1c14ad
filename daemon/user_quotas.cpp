// SPDX-License-Identifier: Apache-2.0
#include "daemon/user_quotas.hpp"

#include "daemon/accounts.hpp"
#include "daemon/catalog.hpp"
#include "daemon/size_text.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <sstream>
#include <string>

namespace modeld::daemon {

Result<store::UserQuotas> read_user_quotas(std::uint64_t each, std::string_view exceptions) {
  store::UserQuotas quotas{each, {}};
  std::istringstream in{std::string(exceptions)};
  for (std::string entry; in >> entry;) {
    const std::string doing = fmt::format("reading 'store.user_quotas' at '{}'", entry);
    const auto equals = entry.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == entry.size()) {
      return fail(Errc::invalid_argument, fmt::format("{}: it is not USER=SIZE", doing),
                  "as in 'alice=50GiB 1002=0', with spaces between; 0 is no limit");
    }
    auto uid = user_id(std::string_view(entry).substr(0, equals));
    if (!uid) return fail(std::move(uid).error().context(doing));
    auto bytes = parse_bytes(entry.substr(equals + 1), "a quota");
    if (!bytes) return fail(std::move(bytes).error().context(doing));
    if (!quotas.exceptions.emplace(*uid, *bytes).second) {
      return fail(Errc::invalid_argument, fmt::format("{}: user {} has one already", doing, *uid));
    }
  }
  return quotas;
}

Result<void> check_quota(const store::Store& store, const ModelRef& ref, std::uint32_t uid) {
  MODELD_ASSIGN(const auto place, find_place(store, ref));
  if (place) {
    const auto here = store.find_snapshot(place->repo, place->commit);
    if (!here || *here) return {}; // damaged: what is fetched again is no more than it was
  }
  auto left = store.check_quota(uid);
  if (left) return {};
  return fail(std::move(left).error().context(fmt::format("asking for '{}'", ref.str())));
}

boost::json::array user_usage_json(const std::vector<store::UserUsage>& users) {
  boost::json::array list;
  for (const store::UserUsage& user : users) {
    list.push_back(boost::json::object{{"uid", user.uid},
                                       {"name", user_name(user.uid)},
                                       {"used", user.used},
                                       {"reserved", user.reserved},
                                       {"quota", user.quota}});
  }
  return list;
}

} // namespace modeld::daemon
