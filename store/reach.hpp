// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace modeld::store {

/// A user as the kernel checks files against: by id and every group.
struct Account {
  std::uint32_t uid = 0;
  std::vector<std::uint32_t> gids;
  std::string name; ///< empty where the system knows none
};

/// With all groups that the system's database gives the user, as a login would have them.
Account account_of(std::uint32_t uid);

/// Whether an account could open the path for reading, by mode bits, owners and ACLs of every
/// folder on the way, also of those that symbolic links lead through. denied names the first that
/// stops it and what would let it through. What sandboxes, mounts and security modules do on top is
/// not seen.
Result<void> check_reachable(const std::filesystem::path& path, const Account& account);

} // namespace modeld::store
