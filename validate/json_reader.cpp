// SPDX-License-Identifier: Apache-2.0
#include "validate/json_reader.hpp"

#include "validate/escape.hpp"
#include "validate/name_index.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstring>

namespace modeld::validate {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// First byte that ends the plain part of a string: a quote, a backslash or a control character.
std::size_t plain_run(const char* at, std::size_t left) {
  constexpr std::uint64_t k_ones = 0x0101010101010101ULL;
  constexpr std::uint64_t k_highs = 0x8080808080808080ULL;
  std::size_t i = 0;
  if constexpr (std::endian::native == std::endian::little) {
    for (; left - i >= 8; i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, at + i, 8);
      const std::uint64_t quote = word ^ (k_ones * '"');
      const std::uint64_t slash = word ^ (k_ones * '\\');
      // A byte's high bit is set where it was zero, or below 0x20; borrows only reach bytes
      // above the first hit, so the lowest set bit is exact.
      const std::uint64_t hit = ((quote - k_ones) & ~quote) | ((slash - k_ones) & ~slash) |
                                ((word - k_ones * 0x20) & ~word);
      if ((hit & k_highs) != 0)
        return i + static_cast<std::size_t>(std::countr_zero(hit & k_highs)) / 8;
    }
  }
  while (i < left && at[i] != '"' && at[i] != '\\' && static_cast<unsigned char>(at[i]) >= 0x20)
    ++i;
  return i;
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

} // namespace

std::string_view describe(JsonToken token) {
  switch (token) {
  case JsonToken::object_begin:
  case JsonToken::object_end:
    return "an object";
  case JsonToken::array_begin:
  case JsonToken::array_end:
    return "an array";
  case JsonToken::key:
    return "a member name";
  case JsonToken::string:
    return "a string";
  case JsonToken::number:
    return "a number";
  case JsonToken::boolean:
    return "a boolean";
  case JsonToken::null:
    return "null";
  case JsonToken::end:
    return "the end";
  case JsonToken::fault:
    break;
  }
  return "no JSON";
}

JsonReader::JsonReader(std::string_view text, std::size_t max_depth, NonFinite non_finite)
    : in_(text), max_depth_(max_depth), non_finite_(non_finite) {}

JsonToken JsonReader::fail_at(std::size_t offset, std::string message) {
  start_ = offset;
  fault_ = std::move(message);
  return emit(JsonToken::fault);
}

void JsonReader::skip_space() {
  while (at_ < in_.size() &&
         (in_[at_] == ' ' || in_[at_] == '\n' || in_[at_] == '\t' || in_[at_] == '\r'))
    ++at_;
}

JsonToken JsonReader::next() {
  if (token_ == JsonToken::fault || token_ == JsonToken::end) return token_;
  skip_space();
  start_ = at_;
  if (state_ == State::done) {
    if (at_ == in_.size()) return emit(JsonToken::end);
    return fail_at(at_, fmt::format("found '{}' behind the end of the value, allowed is nothing "
                                    "but white space",
                                    escape_text(in_.substr(at_, 16))));
  }
  if (at_ == in_.size()) return fail_at(at_, "the text ends inside of a value");
  const char c = in_[at_];
  switch (state_) {
  case State::after_value:
    if (c == (stack_.back() ? '}' : ']')) return close();
    if (c != ',')
      return fail_at(at_, fmt::format("found '{}', expected ',' or '{}'",
                                      escape_text(in_.substr(at_, 1)), stack_.back() ? '}' : ']'));
    ++at_;
    skip_space();
    start_ = at_;
    if (at_ == in_.size()) return fail_at(at_, "the text ends behind a comma");
    return stack_.back() ? read_key() : read_value();
  case State::first_value:
    if (c == ']') return close();
    return read_value();
  case State::first_key:
    if (c == '}') return close();
    return read_key();
  case State::value:
  case State::done:
    break;
  }
  return read_value();
}

JsonToken JsonReader::open(bool object) {
  if (stack_.size() >= max_depth_) {
    too_deep_ = true;
    return fail_at(at_, fmt::format("nested more than {} levels deep", max_depth_));
  }
  stack_.push_back(object);
  ++at_;
  state_ = object ? State::first_key : State::first_value;
  return emit(object ? JsonToken::object_begin : JsonToken::array_begin);
}

JsonToken JsonReader::close() {
  const bool object = stack_.back();
  stack_.pop_back();
  ++at_;
  value_done();
  return emit(object ? JsonToken::object_end : JsonToken::array_end);
}

JsonToken JsonReader::read_value() {
  const char c = in_[at_];
  if (c == '{' || c == '[') return open(c == '{');
  if (c == '"') {
    if (!read_string()) return token_;
    value_done();
    return emit(JsonToken::string);
  }
  if (c == '-' || is_digit(c)) return read_number();
  return read_word();
}

JsonToken JsonReader::read_key() {
  if (in_[at_] != '"')
    return fail_at(at_, fmt::format("found '{}', expected a member name in quotes",
                                    escape_text(in_.substr(at_, 1))));
  if (!read_string()) return token_;
  skip_space();
  if (at_ == in_.size() || in_[at_] != ':')
    return fail_at(at_, "expected ':' behind a member name");
  ++at_;
  state_ = State::value;
  return emit(JsonToken::key);
}

JsonToken JsonReader::read_number() {
  std::size_t i = at_;
  const auto digits = [&] {
    const std::size_t first = i;
    while (i < in_.size() && is_digit(in_[i]))
      ++i;
    return i - first;
  };
  if (in_[i] == '-') ++i;
  if (non_finite_ == NonFinite::accept && in_.substr(i, 8) == "Infinity") {
    i += 8;
  } else {
    const std::size_t first = i;
    const std::size_t count = digits();
    if (count == 0) return fail_at(at_, "a number without digits");
    if (count > 1 && in_[first] == '0') return fail_at(at_, "a number with a leading zero");
    if (i < in_.size() && in_[i] == '.') {
      ++i;
      if (digits() == 0) return fail_at(at_, "a number without digits behind its point");
    }
    if (i < in_.size() && (in_[i] == 'e' || in_[i] == 'E')) {
      ++i;
      if (i < in_.size() && (in_[i] == '+' || in_[i] == '-')) ++i;
      if (digits() == 0) return fail_at(at_, "a number without digits in its exponent");
    }
  }
  value_ = in_.substr(at_, i - at_);
  at_ = i;
  value_done();
  return emit(JsonToken::number);
}

JsonToken JsonReader::read_word() {
  const auto take = [&](std::string_view word, JsonToken token) {
    if (in_.substr(at_, word.size()) != word) return false;
    value_ = in_.substr(at_, word.size());
    at_ += word.size();
    value_done();
    emit(token);
    return true;
  };
  if (take("true", JsonToken::boolean)) {
    boolean_ = true;
  } else if (take("false", JsonToken::boolean)) {
    boolean_ = false;
  } else if (!take("null", JsonToken::null) &&
             !(non_finite_ == NonFinite::accept &&
               (take("NaN", JsonToken::number) || take("Infinity", JsonToken::number)))) {
    return fail_at(at_,
                   fmt::format("found '{}', expected a value", escape_text(in_.substr(at_, 8))));
  }
  return token_;
}

bool JsonReader::read_string() {
  const std::size_t open = at_;
  std::size_t run = ++at_;
  bool escaped = false;
  for (;;) {
    at_ += plain_run(in_.data() + at_, in_.size() - at_);
    if (at_ == in_.size()) {
      fail_at(open, "a string without an end");
      return false;
    }
    const char c = in_[at_];
    if (c == '"') break;
    if (c != '\\') {
      fail_at(at_, fmt::format("a raw control character 0x{:02X} in a string, it must be escaped",
                               static_cast<unsigned char>(c)));
      return false;
    }
    if (!escaped) buffer_.clear();
    escaped = true;
    buffer_.append(in_, run, at_ - run);
    if (!read_escape()) return false;
    run = at_;
  }
  if (escaped) {
    buffer_.append(in_, run, at_ - run);
    value_ = buffer_;
  } else {
    value_ = in_.substr(run, at_ - run);
  }
  ++at_;
  return true;
}

bool JsonReader::read_hex4(std::uint32_t& unit) {
  if (in_.size() - at_ < 4) return false;
  unit = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const char c = in_[at_ + i];
    std::uint32_t digit = 0;
    if (is_digit(c)) {
      digit = static_cast<std::uint32_t>(c - '0');
    } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
      digit = static_cast<std::uint32_t>((c | 0x20) - 'a' + 10);
    } else {
      return false;
    }
    unit = unit << 4 | digit;
  }
  at_ += 4;
  return true;
}

bool JsonReader::read_escape() {
  const std::size_t open = at_++;
  const char c = at_ < in_.size() ? in_[at_++] : '\0';
  constexpr std::string_view k_letters = "\"\\/bfnrt";
  constexpr std::string_view k_meanings = "\"\\/\b\f\n\r\t";
  if (const std::size_t i = k_letters.find(c); c != '\0' && i != std::string_view::npos) {
    buffer_ += k_meanings[i];
    return true;
  }
  std::uint32_t unit = 0;
  if (c != 'u' || !read_hex4(unit)) {
    fail_at(open, "an escape that JSON does not know");
    return false;
  }
  if (unit >= 0xD800 && unit < 0xE000) {
    std::uint32_t low = 0;
    if (unit >= 0xDC00 || in_.substr(at_, 2) != "\\u") {
      fail_at(open, "half of a surrogate pair");
      return false;
    }
    at_ += 2;
    if (!read_hex4(low) || low < 0xDC00 || low >= 0xE000) {
      fail_at(open, "half of a surrogate pair");
      return false;
    }
    unit = 0x10000 + ((unit - 0xD800) << 10 | (low - 0xDC00));
  }
  append_utf8(buffer_, unit);
  return true;
}

bool skip_json_value(JsonReader& reader, const std::function<void()>& on_duplicate) {
  const JsonToken token = reader.token();
  if (token != JsonToken::object_begin && token != JsonToken::array_begin)
    return token != JsonToken::fault;
  struct Level {
    NameIndex keys;
    std::vector<std::string> names;
  };
  const std::size_t outside = reader.depth() - 1;
  std::vector<Level> levels(1); // at most as deep as the reader goes
  for (;;) {
    switch (reader.next()) {
    case JsonToken::fault:
      return false;
    case JsonToken::object_begin:
    case JsonToken::array_begin:
      levels.emplace_back();
      break;
    case JsonToken::object_end:
    case JsonToken::array_end:
      levels.pop_back();
      if (reader.depth() == outside) return true;
      break;
    case JsonToken::key: {
      Level& level = levels.back();
      const auto name_at = [&](std::uint32_t i) -> std::string_view { return level.names[i]; };
      if (level.keys.insert(reader.text(), static_cast<std::uint32_t>(level.names.size()), name_at))
        on_duplicate();
      else
        level.names.emplace_back(reader.text());
      break;
    }
    default:
      break;
    }
  }
}

std::optional<std::uint64_t> plain_u64(std::string_view literal) {
  if (literal.empty() || (literal.size() > 1 && literal[0] == '0')) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, ec] = std::from_chars(literal.data(), literal.data() + literal.size(), value);
  if (ec != std::errc{} || end != literal.data() + literal.size()) return std::nullopt;
  return value;
}

} // namespace modeld::validate
