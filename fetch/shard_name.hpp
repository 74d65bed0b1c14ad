// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace modeld::fetch {

/// "folder/name-00002-of-00005.gguf" taken apart.
struct ShardName {
  std::string set;          ///< what all parts share: "folder/name-*-of-00005.gguf"
  std::uint32_t number = 0; ///< from 1
  std::uint32_t count = 0;
};

/// Nothing for names without "-NNNNN-of-NNNNN" (five digits each) before the last '.', or with a
/// number that is 0 or above the count.
std::optional<ShardName> parse_shard_name(std::string_view path);

} // namespace modeld::fetch
