// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace modeld::daemon {

/// What a Range header asks for of a body of so many bytes (RFC 9110, 14.1.2).
struct ByteRange {
  enum class Kind { whole, part, unsatisfiable };
  Kind kind = Kind::whole;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;

  bool operator==(const ByteRange&) const = default;
};

/// One range "bytes=A-B", "bytes=A-" or "bytes=-N". What is no such range, or several, means the
/// whole body, as the standard allows; a range that starts behind the end is unsatisfiable.
ByteRange parse_range(std::string_view header, std::uint64_t size);

} // namespace modeld::daemon
