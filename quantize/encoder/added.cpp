// SPDX-License-Identifier: Apache-2.0
#include "quantize/encoder/added.hpp"

#include "quantize/encoder/unicode.hpp"
#include "quantize/encoder/utf8_text.hpp"

#include <algorithm>

namespace modeld::quantize {
namespace {

/// Where the last character of a text begins.
std::size_t last_character(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) {
    --at;
  }
  return at;
}

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  std::size_t at = last_character(text);
  return is_word_character(next_code_point(text, at));
}

bool starts_with_word(std::string_view text) {
  std::size_t at = 0;
  return !text.empty() && is_word_character(next_code_point(text, at));
}

std::size_t begin_of_trailing_space(std::string_view text) {
  while (!text.empty()) {
    const std::size_t before = last_character(text);
    std::size_t at = before;
    if (!is_white_space(next_code_point(text, at))) break;
    text = text.substr(0, before);
  }
  return text.size();
}

std::size_t end_of_leading_space(std::string_view text) {
  std::size_t end = 0;
  for (std::size_t at = 0; at < text.size(); end = at) {
    if (!is_white_space(next_code_point(text, at))) break;
  }
  return end;
}

} // namespace

void AddedSearch::Patterns::add(Pattern pattern) {
  if (pattern.text.empty()) return;
  any = true;
  by_byte.at(static_cast<unsigned char>(pattern.text.front())).push_back(std::move(pattern));
}

void AddedSearch::Patterns::sort() {
  for (auto& list : by_byte) {
    std::stable_sort(list.begin(), list.end(), [](const Pattern& a, const Pattern& b) {
      return a.text.size() > b.text.size();
    });
  }
}

Result<AddedSearch> AddedSearch::make(const AddedTokens& tokens, const Normalizer* normalizer) {
  AddedSearch out;
  for (const AddedToken& token : tokens.to_search()) {
    const auto id = tokens.id_of(token.content);
    if (!id) continue;
    const AddedToken& now = tokens.by_id().at(*id);
    Pattern pattern{token.content, *id, now.lstrip, now.rstrip, now.single_word};
    if (!token.normalized) {
      out.raw_.add(std::move(pattern));
      continue;
    }
    if (normalizer != nullptr) {
      MODELD_ASSIGN(pattern.text, normalizer->apply(token.content));
    }
    out.normalized_.add(std::move(pattern));
  }
  out.raw_.sort();
  out.normalized_.sort();
  return out;
}

std::vector<AddedSearch::Part> AddedSearch::cut(std::string_view text, const Patterns& patterns) {
  std::vector<Part> parts;
  std::size_t taken = 0;
  for (std::size_t at = 0; patterns.any && at < text.size();) {
    const auto rest = text.substr(at);
    const auto& list = patterns.by_byte.at(static_cast<unsigned char>(rest.front()));
    const auto found = std::find_if(list.begin(), list.end(), [&](const Pattern& pattern) {
      return rest.starts_with(pattern.text);
    });
    if (found == list.end()) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = at + found->text.size();
    at = end;
    if (found->single_word &&
        (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end)))) {
      continue;
    }
    if (found->lstrip) begin = std::max(begin_of_trailing_space(text.substr(0, begin)), taken);
    if (found->rstrip) end += end_of_leading_space(text.substr(end));
    if (taken < begin) parts.push_back({taken, begin, std::nullopt});
    parts.push_back({begin, end, found->id});
    taken = end;
  }
  if (taken < text.size()) parts.push_back({taken, text.size(), std::nullopt});
  return parts;
}

} // namespace modeld::quantize
