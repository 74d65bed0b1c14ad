// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/encoder/pretokenizer.hpp"
#include "schema/result.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace modeld::quantize {

/// What becomes of the parts of a text that a pattern matches.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };
std::optional<SplitBehavior> split_behavior_from_name(std::string_view name);

using TextSpan = std::pair<std::size_t, std::size_t>;

/// Cuts a piece at the matches, which are in order and do not overlap. With `invert` the gaps are
/// the matches. Empty parts are dropped.
void split_piece(const EncoderPiece& piece, const std::vector<TextSpan>& matches, bool invert,
                 SplitBehavior behavior, std::vector<EncoderPiece>& out);

/// Each character of that kind is a match.
std::vector<TextSpan> character_matches(std::string_view text,
                                        const std::function<bool(char32_t)>& kind);
/// Each longest run of such characters is a match.
std::vector<TextSpan> run_matches(std::string_view text, const std::function<bool(char32_t)>& kind);
/// Each occurrence of a text, from left to right.
std::vector<TextSpan> literal_matches(std::string_view text, std::string_view literal);

} // namespace modeld::quantize
