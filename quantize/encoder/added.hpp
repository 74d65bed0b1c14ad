// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/encoder/normalizer.hpp"
#include "quantize/tokenizer/hf_added_tokens.hpp"
#include "schema/result.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::quantize {

/// Finds added tokens in a text: leftmost, and at one place the longest. One search for those that
/// stand in the raw text, one for those in the normalized.
class AddedSearch {
public:
  /// A part of the text: a token's id, or text for the model.
  struct Part {
    std::size_t begin = 0, end = 0;
    std::optional<std::uint32_t> id;
  };

  static Result<AddedSearch> make(const AddedTokens& tokens, const Normalizer* normalizer);
  std::vector<Part> cut_raw(std::string_view text) const { return cut(text, raw_); }
  std::vector<Part> cut_normalized(std::string_view text) const { return cut(text, normalized_); }

private:
  struct Pattern {
    std::string text;
    std::uint32_t id = 0;
    bool lstrip = false, rstrip = false, single_word = false;
  };
  /// Patterns by their first byte, the longest first; of equal ones the first stays.
  struct Patterns {
    std::array<std::vector<Pattern>, 256> by_byte;
    bool any = false;
    void add(Pattern pattern);
    void sort();
  };
  static std::vector<Part> cut(std::string_view text, const Patterns& patterns);

  Patterns raw_, normalized_;
};

} // namespace modeld::quantize
