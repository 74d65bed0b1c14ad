// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::validate {

enum class JsonToken : std::uint8_t {
  object_begin,
  object_end,
  array_begin,
  array_end,
  key,
  string,
  number,
  boolean,
  null,
  end,   ///< of the text, behind the one value
  fault, ///< no JSON; stays
};

/// "an object", "a string": for messages.
std::string_view describe(JsonToken token);

/// Reads strict RFC 8259 JSON token by token: one value, nothing behind it but white space. No
/// recursion, no allocation but the buffer of the longest string with an escape. The text must be
/// valid UTF-8 (utf8_valid_prefix) and outlive the reader. Not for sharing between threads.
class JsonReader {
public:
  enum class NonFinite : std::uint8_t { refuse, accept };

  explicit JsonReader(std::string_view text, std::size_t max_depth = 64,
                      NonFinite non_finite = NonFinite::refuse);

  JsonToken next();

  JsonToken token() const { return token_; }
  /// Of a key or a string its characters, escapes resolved; of a number its literal. Valid until
  /// the next call of next().
  std::string_view text() const { return value_; }
  bool boolean() const { return boolean_; }
  /// Where the token starts, and the first byte behind it.
  std::size_t offset() const { return start_; }
  std::size_t end_offset() const { return at_; }
  /// Open objects and arrays, this token's own included.
  std::size_t depth() const { return stack_.size(); }
  /// After fault: what is wrong at offset(), and whether it is only the depth.
  const std::string& fault() const { return fault_; }
  bool too_deep() const { return too_deep_; }

private:
  enum class State : std::uint8_t { value, first_value, first_key, after_value, done };

  JsonToken emit(JsonToken token) { return token_ = token; }
  JsonToken fail_at(std::size_t offset, std::string message);
  void skip_space();
  JsonToken open(bool object);
  JsonToken close();
  JsonToken read_value();
  JsonToken read_key();
  JsonToken read_number();
  JsonToken read_word();
  bool read_string();
  bool read_escape();
  bool read_hex4(std::uint32_t& unit);
  void value_done() { state_ = stack_.empty() ? State::done : State::after_value; }

  std::string_view in_;
  std::size_t max_depth_;
  NonFinite non_finite_;
  std::size_t at_ = 0;
  std::size_t start_ = 0;
  State state_ = State::value;
  JsonToken token_ = JsonToken::null;
  bool boolean_ = false;
  bool too_deep_ = false;
  std::vector<bool> stack_; ///< true: an object
  std::string_view value_;
  std::string buffer_;
  std::string fault_;
};

/// Passes over the value that the reader's current token begins, and calls `on_duplicate` at each
/// member name that stands twice in its object. False at a fault.
bool skip_json_value(JsonReader& reader, const std::function<void()>& on_duplicate);

/// A plain whole number, as the formats here want it: digits only, no sign, fraction, exponent or
/// leading zero, below 2^64.
std::optional<std::uint64_t> plain_u64(std::string_view literal);

} // namespace modeld::validate
