// SPDX-License-Identifier: Apache-2.0
#include "fetch/shard_name.hpp"

#include "fetch/headers.hpp"

#include <fmt/format.h>

namespace modeld::fetch {
namespace {

constexpr std::size_t k_digits = 5;
constexpr std::string_view k_of = "-of-";

} // namespace

std::optional<ShardName> parse_shard_name(std::string_view path) {
  constexpr std::size_t k_length = 1 + k_digits + k_of.size() + k_digits; // "-NNNNN-of-NNNNN"
  const auto dot = path.rfind('.');
  if (dot == std::string_view::npos || dot < k_length) return std::nullopt;
  const std::string_view tail = path.substr(dot - k_length, k_length);
  if (tail.front() != '-' || tail.substr(1 + k_digits, k_of.size()) != k_of) return std::nullopt;
  const auto number = parse_number(tail.substr(1, k_digits));
  const auto count = parse_number(tail.substr(k_length - k_digits));
  if (!number || !count || *number == 0 || *number > *count) return std::nullopt;
  ShardName shard;
  shard.set =
      fmt::format("{}-*-of-{:05}{}", path.substr(0, dot - k_length), *count, path.substr(dot));
  shard.number = static_cast<std::uint32_t>(*number);
  shard.count = static_cast<std::uint32_t>(*count);
  return shard;
}

} // namespace modeld::fetch
