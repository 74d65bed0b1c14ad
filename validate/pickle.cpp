// SPDX-License-Identifier: Apache-2.0
#include "validate/pickle.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace modeld::validate {
namespace {

/// How an opcode's argument is delimited.
enum class Argument : std::uint8_t {
  unknown, ///< no opcode at all
  none,
  bytes1,
  bytes2,
  bytes4,
  bytes8,
  counted1, ///< one byte of length, then so many
  counted4,
  counted8,
  line,
  number_line, ///< a line of digits, '.', signs, 'L', 'e'
  two_lines,   ///< two lines of names
};

struct Opcode {
  unsigned char code;
  Argument argument;
  std::string_view acts = {}; ///< its name where it imports, calls or builds
};

using A = Argument;
// Opcodes of protocols 0 to 5.
constexpr std::array k_opcodes{
    Opcode{'(', A::none},
    Opcode{'.', A::none},
    Opcode{'0', A::none},
    Opcode{'1', A::none},
    Opcode{'2', A::none},
    Opcode{'F', A::number_line},
    Opcode{'I', A::number_line},
    Opcode{'J', A::bytes4},
    Opcode{'K', A::bytes1},
    Opcode{'L', A::number_line},
    Opcode{'M', A::bytes2},
    Opcode{'N', A::none},
    Opcode{'P', A::line, "PERSID"},
    Opcode{'Q', A::none, "BINPERSID"},
    Opcode{'R', A::none, "REDUCE"},
    Opcode{'S', A::line},
    Opcode{'T', A::counted4},
    Opcode{'U', A::counted1},
    Opcode{'V', A::line},
    Opcode{'X', A::counted4},
    Opcode{'a', A::none},
    Opcode{'b', A::none, "BUILD"},
    Opcode{'c', A::two_lines, "GLOBAL"},
    Opcode{'d', A::none},
    Opcode{'}', A::none},
    Opcode{'e', A::none},
    Opcode{'g', A::number_line},
    Opcode{'h', A::bytes1},
    Opcode{'i', A::two_lines, "INST"},
    Opcode{'j', A::bytes4},
    Opcode{'l', A::none},
    Opcode{']', A::none},
    Opcode{'o', A::none, "OBJ"},
    Opcode{'p', A::number_line},
    Opcode{'q', A::bytes1},
    Opcode{'r', A::bytes4},
    Opcode{'s', A::none},
    Opcode{'t', A::none},
    Opcode{')', A::none},
    Opcode{'u', A::none},
    Opcode{'G', A::bytes8},
    Opcode{0x80, A::bytes1},
    Opcode{0x81, A::none, "NEWOBJ"},
    Opcode{0x82, A::bytes1, "EXT1"},
    Opcode{0x83, A::bytes2, "EXT2"},
    Opcode{0x84, A::bytes4, "EXT4"},
    Opcode{0x85, A::none},
    Opcode{0x86, A::none},
    Opcode{0x87, A::none},
    Opcode{0x88, A::none},
    Opcode{0x89, A::none},
    Opcode{0x8A, A::counted1},
    Opcode{0x8B, A::counted4},
    Opcode{'B', A::counted4},
    Opcode{'C', A::counted1},
    Opcode{0x8C, A::counted1},
    Opcode{0x8D, A::counted8},
    Opcode{0x8E, A::counted8},
    Opcode{0x8F, A::none},
    Opcode{0x90, A::none},
    Opcode{0x91, A::none},
    Opcode{0x92, A::none, "NEWOBJ_EX"},
    Opcode{0x93, A::none, "STACK_GLOBAL"},
    Opcode{0x94, A::none},
    Opcode{0x95, A::bytes8},
    Opcode{0x96, A::counted8},
    Opcode{0x97, A::none},
    Opcode{0x98, A::none},
};

constexpr std::array<Opcode, 256> make_table() {
  std::array<Opcode, 256> table{};
  for (const Opcode& opcode : k_opcodes)
    table[opcode.code] = opcode;
  return table;
}
constexpr std::array<Opcode, 256> k_table = make_table();

bool is_name(std::string_view text) {
  for (const char c : text)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
          c == '.'))
      return false;
  return !text.empty();
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789+-.eEL") == std::string_view::npos;
}

/// Moves behind one argument; false where it leaves the text or is no such argument.
bool skip(std::string_view text, std::size_t& at, Argument argument) {
  const auto fixed = [&](std::uint64_t count) {
    if (count > text.size() - at) return false;
    at += static_cast<std::size_t>(count);
    return true;
  };
  const auto counted = [&](std::size_t width) {
    if (width > text.size() - at) return false;
    std::uint64_t count = 0;
    for (std::size_t i = width; i-- > 0;)
      count = count << 8 | static_cast<unsigned char>(text[at + i]);
    at += width;
    return fixed(count);
  };
  const auto line = [&](auto&& good) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos || !good(text.substr(at, end - at))) return false;
    at = end + 1;
    return true;
  };
  switch (argument) {
  case A::unknown:
    return false;
  case A::none:
    return true;
  case A::bytes1:
    return fixed(1);
  case A::bytes2:
    return fixed(2);
  case A::bytes4:
    return fixed(4);
  case A::bytes8:
    return fixed(8);
  case A::counted1:
    return counted(1);
  case A::counted4:
    return counted(4);
  case A::counted8:
    return counted(8);
  case A::line:
    return line([](std::string_view) { return true; });
  case A::number_line:
    return line(is_number);
  case A::two_lines:
    return line(is_name) && line(is_name);
  }
  return false;
}

} // namespace

std::optional<std::string> pickle_opcode_that_acts(std::span<const std::byte> bytes) {
  const std::string_view text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  std::string_view acts;
  for (std::size_t at = 0; at < text.size();) {
    const char code = text[at++];
    const Opcode& opcode = k_table[static_cast<unsigned char>(code)];
    if (!skip(text, at, opcode.argument)) return std::nullopt;
    if (acts.empty()) acts = opcode.acts;
    if (code == '.') return acts.empty() ? std::nullopt : std::optional(std::string(acts));
  }
  return std::nullopt;
}

} // namespace modeld::validate
