// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/byte_ranks.hpp"

#include "quantize/tokenizer/hf_decoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>

namespace modeld::quantize {
namespace {

int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

std::string merge_text(std::string_view left, std::string_view right) {
  return fmt::format("{} {}", byte_level_text(left), byte_level_text(right));
}

} // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  unsigned bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool pad = i + padding >= text.size();
    const int value = pad ? 0 : base64_value(text[i]);
    if (value < 0) return std::nullopt;
    bits = (bits << 6U) | static_cast<unsigned>(value);
    if (i % 4 != 3) continue;
    out += static_cast<char>((bits >> 16U) & 0xFFU);
    out += static_cast<char>((bits >> 8U) & 0xFFU);
    out += static_cast<char>(bits & 0xFFU);
    bits = 0;
  }
  out.resize(out.size() - padding);
  return out;
}

Result<ByteRanks> ByteRanks::make(std::vector<std::string> tokens, std::string_view where) {
  ByteRanks out;
  out.tokens_ = std::move(tokens);
  out.ranks_.reserve(out.tokens_.size());
  for (std::size_t rank = 0; rank < out.tokens_.size(); ++rank) {
    const std::string& token = out.tokens_[rank];
    if (token.empty() || !out.ranks_.emplace(token, static_cast<std::uint32_t>(rank)).second) {
      return fail(Errc::malformed, fmt::format("reading '{}': the token of rank {} is {}", where,
                                               rank, token.empty() ? "empty" : "there twice"));
    }
  }
  return out;
}

Result<ByteRanks> ByteRanks::parse_tiktoken(std::string_view text, std::string_view where) {
  std::vector<std::string> tokens;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const auto space = line.find(' ');
    const auto token = decode_base64(line.substr(0, std::min(space, line.size())));
    std::size_t rank = 0;
    const auto digits =
        space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    if (!token || error != std::errc{} || stop != digits.data() + digits.size() ||
        rank != tokens.size()) {
      return fail(Errc::malformed,
                  fmt::format("reading '{}': line {} is not base64 with the rank {}", where,
                              tokens.size() + 1, tokens.size()));
    }
    tokens.push_back(*token);
  }
  return make(std::move(tokens), where);
}

std::optional<std::uint32_t> ByteRanks::rank(std::string_view token) const {
  const auto at = ranks_.find(token);
  return at == ranks_.end() ? std::nullopt : std::optional(at->second);
}

std::optional<std::pair<std::string, std::string>> ByteRanks::parents(std::uint32_t own) const {
  const std::string_view token = tokens_.at(own);
  std::vector<std::size_t> ends;
  for (std::size_t i = 1; i <= token.size(); ++i) {
    ends.push_back(i);
  }
  const auto begin_of = [&](std::size_t part) { return part == 0 ? 0 : ends[part - 1]; };
  while (ends.size() > 1) {
    std::optional<std::uint32_t> lowest;
    std::size_t where = 0;
    for (std::size_t part = 0; part + 1 < ends.size(); ++part) {
      const auto begin = begin_of(part);
      const auto found = rank(token.substr(begin, ends[part + 1] - begin));
      if (found && (!lowest || *found < *lowest)) {
        lowest = found;
        where = part;
      }
    }
    if (!lowest || *lowest >= own) break;
    ends.erase(ends.begin() + static_cast<std::ptrdiff_t>(where));
  }
  if (ends.size() != 2) return std::nullopt;
  return std::pair(std::string(token.substr(0, ends[0])), std::string(token.substr(ends[0])));
}

std::vector<std::string> ByteRanks::merges_by_parents() const {
  std::vector<std::string> merges;
  for (std::uint32_t own = 0; own < tokens_.size(); ++own) {
    if (tokens_[own].size() == 1) continue;
    if (const auto pair = parents(own)) merges.push_back(merge_text(pair->first, pair->second));
  }
  return merges;
}

Result<std::vector<std::string>> ByteRanks::merges_by_splits(std::string_view where) const {
  constexpr std::uint32_t k_single_bytes = 256;
  std::vector<std::string> merges;
  for (std::uint32_t own = k_single_bytes; own < tokens_.size(); ++own) {
    const std::string_view token = tokens_[own];
    std::vector<std::tuple<std::uint32_t, std::uint32_t, std::size_t>> splits;
    for (std::size_t at = 1; at < token.size(); ++at) {
      const auto left = rank(token.substr(0, at));
      const auto right = rank(token.substr(at));
      if (left && right) splits.emplace_back(*left, *right, at);
    }
    if (splits.empty()) {
      return fail(
          Errc::malformed,
          fmt::format("reading '{}': the token of rank {} is no merge of two others", where, own));
    }
    std::sort(splits.begin(), splits.end());
    for (const auto& [left, right, at] : splits) {
      merges.push_back(merge_text(token.substr(0, at), token.substr(at)));
    }
  }
  return merges;
}

} // namespace modeld::quantize
