// SPDX-License-Identifier: Apache-2.0
// What GGUF values themselves must hold: GG-15, GG-16, GG-18, GG-19.
#include "validate/escape.hpp"
#include "validate/gguf_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace modeld::validate {
namespace {

/// Byte-level vocabularies hold pieces of characters.
bool is_token_list(std::string_view key) {
  return key == "tokenizer.ggml.tokens" || key == "tokenizer.ggml.merges";
}

bool ends_like_a_factor(std::string_view key) {
  constexpr std::array<std::string_view, 6> k_endings{"_epsilon", "freq_base", "factor",
                                                      "scale",    "clamp_kqv", "logit_scale"};
  return std::any_of(k_endings.begin(), k_endings.end(),
                     [&](std::string_view ending) { return key.ends_with(ending); });
}

} // namespace

void GgufReader::check_string(const GgufKvView& item) {
  const std::string_view text = *item.value.as_string();
  if (is_clean_utf8(text.data(), text.size(), text.size()) || report_.full()) return;
  if (const std::size_t good = utf8_valid_prefix(text); good != text.size()) {
    report_.warn("GG-16", item.value.offset + good,
                 fmt::format("string {} holds the byte 0x{:02X}, which is no UTF-8",
                             quoted(item.key), static_cast<unsigned char>(text[good])));
  }
  if (text.find('\0') != std::string_view::npos) {
    report_.warn("GG-16", item.value.offset,
                 fmt::format("string {} holds a NUL, readers cut it there", quoted(item.key)));
  }
}

bool GgufReader::walk_strings(const GgufKvView& item, std::uint64_t count) {
  const GgufEncoding encoding = header_.encoding;
  const std::size_t prefix = encoding.length_bytes();
  const auto* data = reinterpret_cast<const char*>(file_.data());
  const std::size_t size = file_.size();
  std::uint64_t bad = 0;
  std::uint64_t nul = 0;
  std::uint64_t first_bad = 0;
  std::uint64_t first_nul = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t at = at_;
    if (size - at < prefix) return need(prefix, "GG-15", "a string of an array");
    const std::uint64_t length = encoding.length(file_.data() + at);
    if (length > size - at - prefix || length > limits_.gguf_string_bytes) {
      std::string_view text;
      return read_string("a string of an array", text); // says what is wrong
    }
    at_ = at + prefix + static_cast<std::size_t>(length);
    if (is_clean_utf8(data + at + prefix, static_cast<std::size_t>(length), size - at - prefix))
      continue;
    std::string_view text{data + at + prefix, static_cast<std::size_t>(length)};
    if (encoding.short_lengths && text.ends_with('\0')) text.remove_suffix(1);
    if (utf8_valid_prefix(text) != text.size() && bad++ == 0) first_bad = at;
    if (text.find('\0') != std::string_view::npos && nul++ == 0) first_nul = at;
  }
  if (bad > 0) {
    report_.add("GG-16", is_token_list(item.key) ? Severity::info : Severity::warning, first_bad,
                fmt::format("{} strings of {} are no UTF-8", bad, quoted(item.key)));
  }
  if (nul > 0) {
    report_.warn(
        "GG-16", first_nul,
        fmt::format("{} strings of {} hold a NUL, readers cut them there", nul, quoted(item.key)));
  }
  return true;
}

void GgufReader::check_bools(const GgufKvView& item) {
  const GgufValueView& value = item.value;
  if ((value.is_array() ? value.element : value.type) != GgufType::boolean) return;
  const auto at = std::find_if(value.bytes.begin(), value.bytes.end(),
                               [](std::byte byte) { return byte > std::byte{1}; });
  if (at == value.bytes.end()) return;
  report_.add("GG-18", error_if_strict(report_.profile()),
              value.offset + static_cast<std::uint64_t>(at - value.bytes.begin()),
              fmt::format("boolean {} is {}, allowed are 0 and 1", quoted(item.key),
                          std::to_integer<unsigned>(*at)));
}

void GgufReader::check_floats(const GgufKvView& item) {
  const GgufValueView& value = item.value;
  const GgufType type = value.is_array() ? value.element : value.type;
  if (type != GgufType::f32 && type != GgufType::f64) return;
  const std::size_t size = scalar_bytes(type);
  // By the bits of the exponent: isnan means nothing to a compiler with fast math.
  for (std::size_t i = 0; i < value.bytes.size(); i += size) {
    const bool finite =
        type == GgufType::f32
            ? (header_.encoding.u32(value.bytes.data() + i) & 0x7F800000U) != 0x7F800000U
            : (header_.encoding.u64(value.bytes.data() + i) & 0x7FF0000000000000ULL) !=
                  0x7FF0000000000000ULL;
    if (finite) continue;
    report_.add("GG-19", ends_like_a_factor(item.key) ? Severity::error : Severity::warning,
                value.offset + i,
                fmt::format("value of key {} is not a finite number", quoted(item.key)));
    return;
  }
}

} // namespace modeld::validate
