// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/model_ref.hpp"
#include "store/store.hpp"

#include <boost/json/array.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace modeld::daemon {

/// What each user may take, and exceptions from that: "alice=50GiB 1002=0", by name or user id, 0
/// for no limit. invalid_argument names the entry.
Result<store::UserQuotas> read_user_quotas(std::uint64_t each, std::string_view exceptions);

/// no_space, before a job starts, where nothing is left of the user's quota and nothing is here of
/// what the ref means. Else the job finds out what it needs.
Result<void> check_quota(const store::Store& store, const ModelRef& ref, std::uint32_t uid);

boost::json::array user_usage_json(const std::vector<store::UserUsage>& users);

} // namespace modeld::daemon
