// SPDX-License-Identifier: Apache-2.0
#include "quantize/encoder/split.hpp"

#include "quantize/encoder/utf8_text.hpp"

#include <algorithm>

namespace modeld::quantize {
namespace {

struct Part {
  std::size_t begin, end;
  bool match;
};

/// Matches and the gaps between them, in order.
std::vector<Part> parts_of(std::size_t size, const std::vector<TextSpan>& matches, bool invert) {
  std::vector<Part> parts;
  std::size_t at = 0;
  for (const auto& [begin, end] : matches) {
    if (begin > at) parts.push_back({at, begin, invert});
    parts.push_back({begin, end, !invert});
    at = end;
  }
  if (at < size) parts.push_back({at, size, invert});
  return parts;
}

/// A match goes to the part before it, unless that was one, too.
std::vector<Part> merged_with_previous(const std::vector<Part>& parts) {
  std::vector<Part> out;
  bool before = false;
  for (const Part& part : parts) {
    if (part.match && !before && !out.empty()) {
      out.back().end = part.end;
    } else {
      out.push_back(part);
    }
    before = part.match;
  }
  return out;
}

std::vector<Part> merged_with_next(const std::vector<Part>& parts) {
  std::vector<Part> out;
  bool after = false;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->match && !after && !out.empty()) {
      out.back().begin = part->begin;
    } else {
      out.push_back(*part);
    }
    after = part->match;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<Part> contiguous(const std::vector<Part>& parts) {
  std::vector<Part> out;
  bool before = false;
  for (const Part& part : parts) {
    if (part.match == before && !out.empty()) {
      out.back().end = part.end;
    } else {
      out.push_back(part);
    }
    before = part.match;
  }
  return out;
}

} // namespace

std::optional<SplitBehavior> split_behavior_from_name(std::string_view name) {
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  return std::nullopt;
}

void split_piece(const EncoderPiece& piece, const std::vector<TextSpan>& matches, bool invert,
                 SplitBehavior behavior, std::vector<EncoderPiece>& out) {
  std::vector<Part> parts = parts_of(piece.text.size(), matches, invert);
  switch (behavior) {
  case SplitBehavior::isolated:
    break;
  case SplitBehavior::removed:
    std::erase_if(parts, [](const Part& p) { return p.match; });
    break;
  case SplitBehavior::merged_with_previous:
    parts = merged_with_previous(parts);
    break;
  case SplitBehavior::merged_with_next:
    parts = merged_with_next(parts);
    break;
  case SplitBehavior::contiguous:
    parts = contiguous(parts);
    break;
  }
  for (const Part& part : parts) {
    if (part.begin == part.end) continue;
    out.push_back(
        {piece.text.substr(part.begin, part.end - part.begin), piece.first && part.begin == 0});
  }
}

std::vector<TextSpan> character_matches(std::string_view text,
                                        const std::function<bool(char32_t)>& kind) {
  std::vector<TextSpan> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t before = at;
    if (kind(next_code_point(text, at))) out.emplace_back(before, at);
  }
  return out;
}

std::vector<TextSpan> run_matches(std::string_view text,
                                  const std::function<bool(char32_t)>& kind) {
  std::vector<TextSpan> out;
  for (const auto& span : character_matches(text, kind)) {
    if (!out.empty() && out.back().second == span.first) {
      out.back().second = span.second;
    } else {
      out.push_back(span);
    }
  }
  return out;
}

std::vector<TextSpan> literal_matches(std::string_view text, std::string_view literal) {
  std::vector<TextSpan> out;
  if (literal.empty()) return out;
  for (auto at = text.find(literal); at != std::string_view::npos;
       at = text.find(literal, at + literal.size())) {
    out.emplace_back(at, at + literal.size());
  }
  return out;
}

} // namespace modeld::quantize
