// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace modeld::quantize {

/// Tokens of bytes in the order of their ranks, as tiktoken and tekken keep them; a token's rank is
/// its id.
class ByteRanks {
public:
  /// Takes tokens by ascending rank. malformed: an empty or repeated token.
  static Result<ByteRanks> make(std::vector<std::string> tokens, std::string_view where);
  /// A tiktoken file: lines of base64 and a rank; the ranks run from 0 without a gap.
  static Result<ByteRanks> parse_tiktoken(std::string_view text, std::string_view where);

  ByteRanks() = default;
  ByteRanks(ByteRanks&&) noexcept = default;
  ByteRanks& operator=(ByteRanks&&) noexcept = default;

  const std::vector<std::string>& tokens() const { return tokens_; }
  std::optional<std::uint32_t> rank(std::string_view token) const;

  /// The two tokens that were merged into this one: merging its bytes by ranks below its own.
  /// Nothing where that does not end in two parts.
  std::optional<std::pair<std::string, std::string>> parents(std::uint32_t rank) const;

  /// Merges as byte-level text: for each longer token its two parents, where it has such.
  std::vector<std::string> merges_by_parents() const;
  /// Merges as byte-level text: for each token from rank 256 every split in two known tokens, by
  /// the ranks of the parts. malformed where one has none.
  Result<std::vector<std::string>> merges_by_splits(std::string_view where) const;

private:
  std::vector<std::string> tokens_;
  /// Keys point into tokens_, whose strings stay where they are.
  std::unordered_map<std::string_view, std::uint32_t> ranks_;
};

/// Strict base64 with padding; nothing for anything else.
std::optional<std::string> decode_base64(std::string_view text);

} // namespace modeld::quantize
