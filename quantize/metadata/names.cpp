// SPDX-License-Identifier: Apache-2.0
#include "quantize/metadata/names.hpp"

#include "quantize/encoder/utf8_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

// The grammar of one part between dashes, all in any case:
//   version   (v|iter)? digits (. digits)*
//   type      i? q digit (_ word-character)*  |  b? f p? (16|32)
//   size      (a | digits x)? digits ((.|_) digits)? [kmbt] digit?  |  small mini medium large xl
//   xxl finetune  chat instruct vision lora
// A part that is none of these belongs to the base name while the name has not been interrupted,
// and to the finetune after.

namespace modeld::quantize {
namespace {

enum Kind : unsigned {
  k_basename = 1,
  k_size_label = 2,
  k_finetune = 4,
  k_version = 8,
  k_type = 16,
};

struct Part {
  std::string text;
  unsigned kinds = 0;
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}
std::string lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

/// Reads a lower-case text from the left.
class Reader {
public:
  explicit Reader(std::string_view text) : rest_(text) {}
  bool done() const { return rest_.empty(); }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool take_any(std::string_view letters) {
    if (rest_.empty() || letters.find(rest_.front()) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool digits() {
    const auto n = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    rest_.remove_prefix(n);
    return n > 0;
  }

private:
  std::string_view rest_;
};

bool is_version(std::string_view text) {
  Reader in(text);
  if (!in.take("v")) in.take("iter");
  if (!in.digits()) return false;
  while (in.take(".")) {
    if (!in.digits()) return false;
  }
  return in.done();
}

bool is_quant_type(std::string_view text) {
  Reader in(text);
  in.take("i");
  if (in.take("q") && in.take_any("0123456789")) {
    constexpr std::string_view k_word = "abcdefghijklmnopqrstuvwxyz0123456789_";
    while (in.take("_")) {
      if (!in.take_any(k_word)) return false;
    }
    return in.done();
  }
  Reader floats(text);
  floats.take("b");
  if (!floats.take("f")) return false;
  floats.take("p");
  return (floats.take("16") || floats.take("32")) && floats.done();
}

/// After the optional prefix: digits, a fraction, the letter, one digit.
bool is_size_tail(Reader in) {
  if (!in.digits()) return false;
  if (in.take_any("._") && !in.digits()) return false;
  if (!in.take_any("kmbt")) return false;
  in.take_any("0123456789");
  return in.done();
}

bool is_size(std::string_view text) {
  constexpr std::array<std::string_view, 6> k_words{"small", "mini", "medium",
                                                    "large", "xl",   "xxl"};
  if (std::find(k_words.begin(), k_words.end(), text) != k_words.end()) return true;
  if (is_size_tail(Reader(text))) return true;
  Reader active(text);
  if (active.take("a")) return is_size_tail(active);
  Reader experts(text);
  return experts.digits() && experts.take("x") && is_size_tail(experts);
}

bool is_finetune(std::string_view text) {
  return text == "chat" || text == "instruct" || text == "vision" || text == "lora";
}

/// "7b1" is 7.1B (bloom); a letter after a digit goes upper.
std::string normalized_size(std::string text) {
  std::replace(text.begin(), text.end(), '_', '.');
  if (is_digit(text.back())) {
    const char fraction = text.back();
    const char letter = text[text.size() - 2];
    text.resize(text.size() - 2);
    text += '.';
    text += fraction;
    text += letter;
  }
  if (text.size() > 1 && is_digit(text[text.size() - 2])) text.back() = upper(text.back());
  return text;
}

/// The number that a label states; nothing for "8x7B", "A3B" or a word.
std::optional<double> parameters_of_label(std::string_view label) {
  const auto number = label.substr(0, label.size() - 1);
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc{} || end != number.data() + number.size() || number.empty()) {
    return std::nullopt;
  }
  if (!is_digit(number.front())) return std::nullopt;
  const auto exponent = std::string_view(" KMBT").find(label.back());
  if (exponent == std::string_view::npos) return value / 1000;
  return value * std::pow(1000.0, static_cast<double>(exponent));
}

/// Whether a stated size is so far from the real one that it must be a context length. Adapters
/// need not touch all layers, so for them only far too small counts.
bool is_not_the_size(double stated, std::int64_t total) {
  if (total < 0) return stated < static_cast<double>(-total / 8);
  const auto seven_eighths = total / 8 * 7 + total % 8 * 7 / 8;
  return total > 0 &&
         std::fabs(stated - static_cast<double>(total)) > static_cast<double>(seven_eighths);
}

void annotate_size(Part& part, std::int64_t total) {
  part.text = normalized_size(std::move(part.text));
  const auto stated = parameters_of_label(part.text);
  if (total != 0 && stated && is_not_the_size(*stated, total)) {
    part.kinds |= k_finetune;
    part.text.back() = lower(part.text.back());
  }
  if (part.kinds == 0) part.kinds |= k_size_label;
}

void annotate(Part& part, bool first, std::int64_t total) {
  const std::string text = lowered(part.text);
  if (is_version(text)) {
    part.kinds |= k_version;
  } else if (is_quant_type(text)) {
    part.kinds |= k_type;
    std::transform(part.text.begin(), part.text.end(), part.text.begin(), upper);
  } else if (!first && is_size(text)) {
    annotate_size(part, total);
  } else if (!first && is_finetune(text)) {
    part.kinds |= total < 0 && text == "lora" ? k_type : k_finetune;
  }
}

/// A size in words gives way to one in numbers.
void drop_word_sizes(std::vector<Part>& parts) {
  const bool numbers = std::any_of(parts.begin(), parts.end(), [](const Part& p) {
    return (p.kinds & k_size_label) != 0 && std::any_of(p.text.begin(), p.text.end(), is_digit);
  });
  if (!numbers) return;
  for (Part& part : parts) {
    if (std::none_of(part.text.begin(), part.text.end(), is_digit)) part.kinds &= ~k_size_label;
  }
}

bool starts_with_letter(std::string_view text) {
  std::size_t at = 0;
  return is_letter(next_code_point(text, at));
}

void find_basename(std::vector<Part>& parts) {
  bool at_start = true;
  for (Part& part : parts) {
    const bool plain = part.kinds == 0;
    if (at_start && ((plain && starts_with_letter(part.text)) || (part.kinds & k_version) != 0)) {
      part.kinds |= k_basename;
    } else {
      at_start = false;
      if (plain) part.kinds |= k_finetune;
    }
  }
  // A version at the end is the model's, not part of its name.
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if ((part->kinds & k_basename) == 0 || part->kinds == k_basename) break;
    part->kinds &= ~k_basename;
  }
}

std::optional<std::string> joined(const std::vector<Part>& parts, unsigned kind,
                                  unsigned without = 0) {
  std::vector<std::string_view> seen;
  std::string out;
  for (const Part& part : parts) {
    if ((part.kinds & kind) == 0 || (part.kinds & without) != 0) continue;
    // Only sizes are said once.
    if (kind == k_size_label && std::find(seen.begin(), seen.end(), part.text) != seen.end()) {
      continue;
    }
    seen.emplace_back(part.text);
    if (!out.empty()) out += '-';
    out += part.text;
  }
  if (out.empty()) return std::nullopt;
  return out;
}

std::vector<Part> split_at_dashes(std::string_view name) {
  std::vector<Part> parts;
  for (std::size_t start = 0; start <= name.size();) {
    const auto end = std::min(name.find('-', start), name.size());
    if (end > start) parts.push_back({std::string(name.substr(start, end - start)), 0});
    start = end + 1;
  }
  return parts;
}

/// `^(v\d+(\.\d+)*|\d.*)$`: versions and numbers keep their letters as they are.
bool is_version_word(std::string_view word) {
  std::size_t at = 0;
  if (is_decimal_digit(next_code_point(word, at))) return true;
  if (!word.starts_with('v')) return false;
  return word.size() > 1 && is_version(word);
}

} // namespace

ModelIdParts model_id_parts(std::string_view id, std::int64_t total) {
  ModelIdParts out;
  if (id.find(' ') != std::string_view::npos) {
    out.name = std::string(id);
    return out;
  }
  std::string_view name = id;
  if (const auto slash = id.find('/'); slash != std::string_view::npos) {
    name = id.substr(slash + 1);
    // "./" and "../" are places, not organizations.
    if (!id.starts_with('.')) out.organization = std::string(id.substr(0, slash));
  }
  out.name = std::string(name);

  std::vector<Part> parts = split_at_dashes(name);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    annotate(parts[i], i == 0, total);
  }
  drop_word_sizes(parts);
  find_basename(parts);
  out.basename = joined(parts, k_basename);
  out.size_label = joined(parts, k_size_label);
  out.finetune = joined(parts, k_finetune);
  out.version = joined(parts, k_version, k_basename);
  // A name without any of these is just a name.
  if (!out.size_label && !out.finetune && !out.version) out.basename.reset();
  return out;
}

std::string id_to_title(std::string_view id) {
  std::string text(stripped(id));
  std::replace(text.begin(), text.end(), '-', ' ');
  std::string out;
  for (const std::string_view word : split_at_spaces(text)) {
    if (!out.empty()) out += ' ';
    if (is_lower_word(word) && !is_version_word(word)) {
      out += title_cased(word);
    } else {
      out += word;
    }
  }
  return out;
}

} // namespace modeld::quantize
