// SPDX-License-Identifier: Apache-2.0
#include "schema/error.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>

namespace modeld {
namespace {

constexpr std::array<ErrcInfo, 16> k_table{{
    {Errc::invalid_argument, "invalid_argument", 400, 2, false},
    {Errc::not_found, "not_found", 404, 3, false},
    {Errc::conflict, "conflict", 409, 1, false},
    {Errc::digest_mismatch, "digest_mismatch", 422, 4, false},
    {Errc::malformed, "malformed", 422, 4, false},
    {Errc::corrupt, "corrupt", 500, 4, false},
    {Errc::unsupported, "unsupported", 422, 1, false},
    {Errc::no_space, "no_space", 507, 6, false},
    {Errc::busy, "busy", 503, 1, true},
    {Errc::io, "io", 500, 1, false},
    {Errc::net_transient, "net_transient", 502, 7, true},
    {Errc::net_permanent, "net_permanent", 502, 7, false},
    {Errc::denied, "denied", 403, 5, false},
    {Errc::unreachable, "unreachable", 503, 8, true},
    {Errc::cancelled, "cancelled", 409, 130, false},
    {Errc::internal, "internal", 500, 1, false},
}};

Errc code_of(int sys) {
  switch (sys) {
  case ENOSPC:
  case EDQUOT:
  case EFBIG:
    return Errc::no_space;
  case ENOENT:
    return Errc::not_found;
  case EACCES:
  case EPERM:
  case EROFS:
    return Errc::denied;
  default:
    return Errc::io;
  }
}

} // namespace

const ErrcInfo& info(Errc code) {
  return k_table[static_cast<std::size_t>(code)];
}

std::vector<ErrcInfo> all_error_codes() {
  return {k_table.begin(), k_table.end()};
}

Errc errc_from_slug(std::string_view slug) {
  for (const ErrcInfo& row : k_table) {
    if (row.slug == slug) return row.code;
  }
  return Errc::internal;
}

Error Error::context(std::string_view doing) && {
  message = std::string(doing) + ": " + message;
  return std::move(*this);
}

Error Error::with_hint(std::string text) && {
  hint = std::move(text);
  return std::move(*this);
}

Error Error::with_detail(std::string name, std::string value) && {
  details.emplace_back(std::move(name), std::move(value));
  return std::move(*this);
}

Error from_errno(int sys, std::string message) {
  Error error{code_of(sys), std::move(message), {}, {}, sys};
  error.message += ": " + std::generic_category().message(sys);
  return error;
}

} // namespace modeld
