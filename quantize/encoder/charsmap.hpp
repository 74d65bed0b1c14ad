// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::quantize {

/// SentencePiece's precompiled character map: a double-array trie over source texts and a table of
/// what they become. Every index is checked when it is followed.
class CharsMap {
public:
  static Result<CharsMap> parse(std::string_view bytes);
  /// Grapheme by grapheme, short ones as a whole, then character by character.
  std::string apply(std::string_view text) const;

private:
  std::optional<std::string_view> find(std::string_view key) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

} // namespace modeld::quantize
