// SPDX-License-Identifier: Apache-2.0
#include "daemon/accounts.hpp"

#include <fmt/format.h>

#include <grp.h>
#include <pwd.h>

#include <charconv>
#include <optional>
#include <vector>

namespace modeld::daemon {
namespace {

constexpr std::size_t k_max_record = 1U << 20; // of the database

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t id = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), id);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return id;
}

} // namespace

Result<std::uint32_t> user_id(std::string_view text) {
  if (const auto id = number(text)) return *id;
  std::vector<char> buffer(k_max_record);
  passwd record{};
  passwd* found = nullptr;
  ::getpwnam_r(std::string(text).c_str(), &record, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return found->pw_uid;
  return fail(Errc::invalid_argument, fmt::format("looking for user '{}': there is none", text),
              "a number stands for a user without a name");
}

Result<std::uint32_t> group_id(std::string_view text) {
  if (const auto id = number(text)) return *id;
  std::vector<char> buffer(k_max_record);
  group record{};
  group* found = nullptr;
  ::getgrnam_r(std::string(text).c_str(), &record, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return found->gr_gid;
  return fail(
      Errc::invalid_argument, fmt::format("looking for group '{}': there is none", text),
      fmt::format("groupadd {} makes the group; a number stands for one without a name", text));
}

std::string user_name(std::uint32_t uid) {
  std::vector<char> buffer(k_max_record);
  passwd record{};
  passwd* found = nullptr;
  ::getpwuid_r(uid, &record, buffer.data(), buffer.size(), &found);
  return found == nullptr ? std::string() : found->pw_name;
}

std::string named_user(std::uint32_t uid) {
  const std::string name = user_name(uid);
  return name.empty() ? fmt::format("{}", uid) : fmt::format("{} ('{}')", uid, name);
}

} // namespace modeld::daemon
