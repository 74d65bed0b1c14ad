// SPDX-License-Identifier: Apache-2.0
#include "quantize/encoder/normalizer.hpp"

#include "quantize/encoder/charsmap.hpp"
#include "quantize/encoder/make_steps.hpp"
#include "quantize/encoder/regex.hpp"
#include "quantize/encoder/unicode.hpp"
#include "quantize/encoder/unicode_versions.hpp"
#include "quantize/encoder/utf8_text.hpp"
#include "quantize/tokenizer/byte_ranks.hpp"
#include "quantize/tokenizer/files.hpp"
#include "quantize/tokenizer/hf_decoder.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <functional>
#include <optional>
#include <vector>

namespace modeld::quantize {
namespace {

using boost::json::object;

/// A step without state of its own.
class Simple final : public Normalizer {
public:
  explicit Simple(std::function<std::string(std::string_view)> step) : step_(std::move(step)) {}
  Result<std::string> apply(std::string_view text) const override { return step_(text); }

private:
  std::function<std::string(std::string_view)> step_;
};

class Sequence final : public Normalizer {
public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> parts) : parts_(std::move(parts)) {}
  Result<std::string> apply(std::string_view text) const override {
    std::string out(text);
    for (const auto& part : parts_) {
      MODELD_ASSIGN(out, part->apply(out));
    }
    return out;
  }

private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

class Replace final : public Normalizer {
public:
  Replace(std::optional<EncoderRegex> pattern, std::string literal, std::string content)
      : pattern_(std::move(pattern)), literal_(std::move(literal)), content_(std::move(content)) {}
  Result<std::string> apply(std::string_view text) const override {
    std::string out;
    std::size_t at = 0;
    if (pattern_) {
      MODELD_ASSIGN(const auto found, pattern_->find_all(text));
      for (const auto& [begin, end] : found) {
        out += text.substr(at, begin - at);
        out += content_;
        at = end;
      }
    } else {
      for (auto begin = text.find(literal_); begin != std::string_view::npos;
           begin = text.find(literal_, at)) {
        out += text.substr(at, begin - at);
        out += content_;
        at = begin + literal_.size();
      }
    }
    out += text.substr(at);
    return out;
  }

private:
  std::optional<EncoderRegex> pattern_;
  std::string literal_;
  std::string content_;
};

template <class Keep>
std::string filtered(std::string_view text, Keep keep) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (const auto kept = keep(c)) append_utf8(out, *kept);
  }
  return out;
}

std::string without_nonspacing_marks(std::string_view text) {
  return filtered(text, [](char32_t c) {
    // One that is no nonspacing mark any more.
    const bool gone = (is_nonspacing_mark(c) && !is_mark_to_leave_for_bert(c)) || c == 0x1734;
    return gone ? std::nullopt : std::optional(c);
  });
}

std::string without_marks(std::string_view text) {
  return filtered(text, [](char32_t c) {
    // Two that are letters now.
    const bool gone = (is_mark(c) && !is_mark_to_leave(c)) || c == 0x1CF2 || c == 0x1CF3;
    return gone ? std::nullopt : std::optional(c);
  });
}

bool is_line_space(char32_t c) {
  return c == '\t' || c == '\n' || c == '\r';
}

std::string cleaned(std::string_view text) {
  return filtered(text, [](char32_t c) -> std::optional<char32_t> {
    if (c == 0 || c == 0xFFFD || (is_other(c) && !is_line_space(c))) return std::nullopt;
    return is_white_space(c) ? U' ' : c;
  });
}

std::string with_spaced_ideographs(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    const bool spaced = is_cjk_ideograph(c);
    if (spaced) out += ' ';
    append_utf8(out, c);
    if (spaced) out += ' ';
  }
  return out;
}

std::unique_ptr<Normalizer> make_bert(const object& value) {
  const auto flag = [&](std::string_view name, bool otherwise) {
    const auto* found = value.if_contains(name);
    return found == nullptr || found->is_null() ? otherwise : is_truthy(found);
  };
  const bool clean = flag("clean_text", true);
  const bool chinese = flag("handle_chinese_chars", true);
  const bool lower = flag("lowercase", true);
  const bool strip = flag("strip_accents", lower);
  return std::make_unique<Simple>([=](std::string_view text) {
    std::string out(text);
    if (clean) out = cleaned(out);
    if (chinese) out = with_spaced_ideographs(out);
    if (strip) out = without_nonspacing_marks(normal_form(out, NormalForm::nfd));
    if (lower) out = lowercase(out);
    return out;
  });
}

/// SentencePiece's "nmt" rules, the part before NFKC.
std::string nmt(std::string_view text) {
  return filtered(text, [](char32_t c) -> std::optional<char32_t> {
    if ((c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F ||
        c == 0x9F) {
      return std::nullopt;
    }
    const bool space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                       (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                       c == 0xFEFF || c == 0xFFFD;
    return space ? U' ' : c;
  });
}

std::string stripped_ends(std::string_view text, bool left, bool right) {
  const std::u32string wide = to_utf32(text);
  std::size_t begin = 0, end = wide.size();
  while (left && begin < end && is_white_space(wide[begin])) {
    ++begin;
  }
  while (right && end > begin && is_white_space(wide[end - 1])) {
    --end;
  }
  return to_utf8(std::u32string_view(wide).substr(begin, end - begin));
}

Result<std::unique_ptr<Normalizer>> make_replace(const object& value) {
  const auto* pattern = value.if_contains("pattern");
  const auto* kind = pattern == nullptr ? nullptr : pattern->if_object();
  const std::string content(text_member(value, "content").value_or(""));
  if (kind != nullptr) {
    if (const auto literal = text_member(*kind, "String"); literal && !literal->empty()) {
      return std::make_unique<Replace>(std::nullopt, std::string(*literal), content);
    }
    if (const auto regex = text_member(*kind, "Regex")) {
      MODELD_ASSIGN(auto compiled, EncoderRegex::compile(*regex));
      return std::make_unique<Replace>(std::move(compiled), std::string(), content);
    }
  }
  return fail(Errc::malformed, "reading 'tokenizer.json': a Replace without a pattern");
}

Result<std::unique_ptr<Normalizer>> make_charsmap(const object& value) {
  const auto encoded = text_member(value, "precompiled_charsmap");
  const auto bytes = encoded ? decode_base64(*encoded) : std::nullopt;
  if (!bytes) {
    return fail(Errc::malformed, "reading 'tokenizer.json': precompiled_charsmap is not base64");
  }
  MODELD_ASSIGN(auto map, CharsMap::parse(*bytes));
  return std::make_unique<Simple>(
      [map = std::move(map)](std::string_view text) { return map.apply(text); });
}

std::unique_ptr<Normalizer> make_simple(std::string_view type, const object& value) {
  const auto step = [](auto function) { return std::make_unique<Simple>(function); };
  const auto form = [&](NormalForm which) {
    return step([which](std::string_view text) { return normal_form(text, which); });
  };
  if (type == "NFC") return form(NormalForm::nfc);
  if (type == "NFD") return form(NormalForm::nfd);
  if (type == "NFKC") return form(NormalForm::nfkc);
  if (type == "NFKD") return form(NormalForm::nfkd);
  if (type == "Lowercase") return step(lowercase);
  if (type == "StripAccents") return step(without_marks);
  if (type == "Nmt") return step(nmt);
  if (type == "ByteLevel") return step(byte_level_text);
  if (type == "BertNormalizer") return make_bert(value);
  if (type == "Strip") {
    const bool left = is_truthy(value.if_contains("strip_left"));
    const bool right = is_truthy(value.if_contains("strip_right"));
    return step([=](std::string_view text) { return stripped_ends(text, left, right); });
  }
  if (type == "Prepend") {
    const std::string prefix(text_member(value, "prepend").value_or(""));
    return step([prefix](std::string_view text) {
      return text.empty() ? std::string() : prefix + std::string(text);
    });
  }
  return nullptr;
}

Result<std::unique_ptr<Normalizer>> make_one(std::string_view type, const object& fields) {
  if (type == "Replace") return make_replace(fields);
  if (type == "Precompiled") return make_charsmap(fields);
  return make_simple(type, fields);
}

} // namespace

Result<std::unique_ptr<Normalizer>> Normalizer::make(const boost::json::value& value) {
  return make_steps<Normalizer, Sequence>(value, {"normalizer", "normalizers"}, make_one);
}

} // namespace modeld::quantize
