// SPDX-License-Identifier: Apache-2.0
#include "quantize/encoder/pretokenizer.hpp"

#include "quantize/encoder/make_steps.hpp"
#include "quantize/encoder/regex.hpp"
#include "quantize/encoder/scripts.hpp"
#include "quantize/encoder/split.hpp"
#include "quantize/encoder/unicode.hpp"
#include "quantize/encoder/utf8_text.hpp"
#include "quantize/tokenizer/files.hpp"
#include "quantize/tokenizer/hf_decoder.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <functional>
#include <optional>

namespace modeld::quantize {
namespace {

using boost::json::object;
using Pieces = std::vector<EncoderPiece>;

constexpr std::string_view k_gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Cuts each piece by itself at what a finder finds.
class Cut final : public PreTokenizer {
public:
  using Find = std::function<Result<std::vector<TextSpan>>(std::string_view)>;
  Cut(Find find, SplitBehavior behavior, bool invert = false)
      : find_(std::move(find)), behavior_(behavior), invert_(invert) {}

  Result<Pieces> apply(Pieces pieces) const override {
    Pieces out;
    for (const EncoderPiece& piece : pieces) {
      MODELD_ASSIGN(const auto found, find_(piece.text));
      split_piece(piece, found, invert_, behavior_, out);
    }
    return out;
  }

private:
  Find find_;
  SplitBehavior behavior_;
  bool invert_;
};

class Sequence final : public PreTokenizer {
public:
  explicit Sequence(std::vector<std::unique_ptr<PreTokenizer>> parts) : parts_(std::move(parts)) {}
  Result<Pieces> apply(Pieces pieces) const override {
    for (const auto& part : parts_) {
      MODELD_ASSIGN(pieces, part->apply(std::move(pieces)));
    }
    return pieces;
  }

private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

class ByteLevel final : public PreTokenizer {
public:
  ByteLevel(bool prefix_space, std::optional<EncoderRegex> pattern)
      : prefix_space_(prefix_space), pattern_(std::move(pattern)) {}

  Result<Pieces> apply(Pieces pieces) const override {
    Pieces out;
    for (EncoderPiece& piece : pieces) {
      if (prefix_space_ && !piece.text.starts_with(' ')) piece.text.insert(piece.text.begin(), ' ');
      if (!pattern_) {
        out.push_back(std::move(piece));
        continue;
      }
      MODELD_ASSIGN(const auto found, pattern_->find_all(piece.text));
      split_piece(piece, found, false, SplitBehavior::isolated, out);
    }
    for (EncoderPiece& piece : out) {
      piece.text = byte_level_text(piece.text);
    }
    return out;
  }

private:
  bool prefix_space_;
  std::optional<EncoderRegex> pattern_;
};

class Metaspace final : public PreTokenizer {
public:
  enum class Prepend { always, first, never };
  Metaspace(std::string marker, Prepend prepend, bool split)
      : marker_(std::move(marker)), prepend_(prepend), split_(split) {}

  Result<Pieces> apply(Pieces pieces) const override {
    Pieces out;
    for (EncoderPiece& piece : pieces) {
      std::string text;
      for (const char c : piece.text) {
        if (c == ' ') {
          text += marker_;
        } else {
          text += c;
        }
      }
      const bool wanted =
          prepend_ == Prepend::always || (prepend_ == Prepend::first && piece.first);
      if (wanted && !text.starts_with(marker_)) text = marker_ + text;
      piece.text = std::move(text);
      if (split_) {
        split_piece(piece, literal_matches(piece.text, marker_), false,
                    SplitBehavior::merged_with_next, out);
      } else {
        out.push_back(std::move(piece));
      }
    }
    return out;
  }

private:
  std::string marker_;
  Prepend prepend_;
  bool split_;
};

std::unique_ptr<PreTokenizer> cut_at(std::function<bool(char32_t)> kind, SplitBehavior behavior) {
  return std::make_unique<Cut>(
      [kind = std::move(kind)](std::string_view text) -> Result<std::vector<TextSpan>> {
        return character_matches(text, kind);
      },
      behavior);
}

std::unique_ptr<PreTokenizer> make_bert() {
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  parts.push_back(cut_at(is_white_space, SplitBehavior::removed));
  parts.push_back(cut_at(is_punctuation, SplitBehavior::isolated));
  return std::make_unique<Sequence>(std::move(parts));
}

/// Words, and runs of what is neither word nor space.
std::unique_ptr<PreTokenizer> make_whitespace() {
  return std::make_unique<Cut>(
      [](std::string_view text) -> Result<std::vector<TextSpan>> {
        auto words = run_matches(text, is_word_character);
        const auto others = run_matches(
            text, [](char32_t c) { return !is_word_character(c) && !is_white_space(c); });
        words.insert(words.end(), others.begin(), others.end());
        std::sort(words.begin(), words.end());
        return words;
      },
      SplitBehavior::removed, true);
}

std::unique_ptr<PreTokenizer> make_metaspace(const object& value) {
  const auto scheme = text_member(value, "prepend_scheme");
  const auto* old_flag = value.if_contains("add_prefix_space");
  auto prepend = Metaspace::Prepend::always;
  if (scheme == "first") prepend = Metaspace::Prepend::first;
  if (scheme == "never" || (!scheme && old_flag != nullptr && !is_truthy(old_flag))) {
    prepend = Metaspace::Prepend::never;
  }
  const auto* split = value.if_contains("split");
  return std::make_unique<Metaspace>(
      std::string(text_member(value, "replacement").value_or("\u2581")), prepend,
      split == nullptr || is_truthy(split));
}

Result<std::unique_ptr<PreTokenizer>> make_byte_level(const object& value) {
  const auto* use = value.if_contains("use_regex");
  std::optional<EncoderRegex> pattern;
  if (use == nullptr || is_truthy(use)) {
    MODELD_ASSIGN(pattern, EncoderRegex::compile(k_gpt2_pattern));
  }
  return std::make_unique<ByteLevel>(is_truthy(value.if_contains("add_prefix_space")),
                                     std::move(pattern));
}

Result<std::unique_ptr<PreTokenizer>> make_split(const object& value) {
  const auto behavior = split_behavior_from_name(text_member(value, "behavior").value_or(""));
  const auto* pattern = value.if_contains("pattern");
  const auto* kind = pattern == nullptr ? nullptr : pattern->if_object();
  if (!behavior || kind == nullptr) {
    return fail(Errc::malformed, "reading 'tokenizer.json': a Split without pattern or behavior");
  }
  const bool invert = is_truthy(value.if_contains("invert"));
  if (const auto literal = text_member(*kind, "String")) {
    return std::make_unique<Cut>(
        [text = std::string(*literal)](std::string_view in) -> Result<std::vector<TextSpan>> {
          return literal_matches(in, text);
        },
        *behavior, invert);
  }
  MODELD_ASSIGN(auto regex, EncoderRegex::compile(text_member(*kind, "Regex").value_or("")));
  return std::make_unique<Cut>(
      [regex = std::move(regex)](std::string_view in) { return regex.find_all(in); }, *behavior,
      invert);
}

std::unique_ptr<PreTokenizer> make_simple(std::string_view type, const object& value) {
  if (type == "BertPreTokenizer") return make_bert();
  if (type == "Whitespace") return make_whitespace();
  if (type == "WhitespaceSplit") return cut_at(is_white_space, SplitBehavior::removed);
  if (type == "Metaspace") return make_metaspace(value);
  if (type == "Digits") {
    return cut_at(is_numeric, is_truthy(value.if_contains("individual_digits"))
                                  ? SplitBehavior::isolated
                                  : SplitBehavior::contiguous);
  }
  if (type == "Punctuation") {
    return cut_at(is_punctuation,
                  split_behavior_from_name(text_member(value, "behavior").value_or(""))
                      .value_or(SplitBehavior::isolated));
  }
  if (type == "CharDelimiterSplit") {
    const std::string delimiter(text_member(value, "delimiter").value_or(""));
    return std::make_unique<Cut>(
        [delimiter](std::string_view in) -> Result<std::vector<TextSpan>> {
          return literal_matches(in, delimiter);
        },
        SplitBehavior::removed);
  }
  if (type == "UnicodeScripts") {
    return std::make_unique<Cut>(script_runs, SplitBehavior::removed, true);
  }
  return nullptr;
}

Result<std::unique_ptr<PreTokenizer>> make_one(std::string_view type, const object& fields) {
  if (type == "ByteLevel") return make_byte_level(fields);
  if (type == "Split") return make_split(fields);
  return make_simple(type, fields);
}

} // namespace

Result<std::unique_ptr<PreTokenizer>> PreTokenizer::make(const boost::json::value& value) {
  return make_steps<PreTokenizer, Sequence>(value, {"pre-tokenizer", "pretokenizers"}, make_one);
}

} // namespace modeld::quantize
