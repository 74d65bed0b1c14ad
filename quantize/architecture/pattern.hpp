// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::quantize {

/// Numbers in a tensor's name: of the block, of the expert.
struct NameNumbers {
  std::optional<std::uint32_t> bid;
  std::optional<std::uint32_t> xid;
};

/// A tensor's name with holes: {bid} and {xid} stand for a decimal number, * for any text.
class NamePattern {
public:
  /// malformed for an unknown hole.
  static Result<NamePattern> parse(std::string_view text);

  /// Whether the whole of `name` matches; the numbers that the holes hold.
  std::optional<NameNumbers> match(std::string_view name) const;
  /// The name with numbers in the holes. A missing number stays out.
  std::string fill(const NameNumbers& numbers) const;

  bool has_bid() const;
  bool has_xid() const;
  const std::string& text() const { return text_; }

private:
  struct Part {
    enum class Kind { text, bid, xid, any };
    Kind kind = Kind::text;
    std::string text;
  };
  bool match_from(std::string_view name, std::size_t part, NameNumbers& numbers) const;

  std::string text_;
  std::vector<Part> parts_;
};

} // namespace modeld::quantize
