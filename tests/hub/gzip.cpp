// SPDX-License-Identifier: Apache-2.0
#include "tests/hub/gzip.hpp"

#include <algorithm>
#include <cstdint>

namespace modeld::test {
namespace {

constexpr std::size_t k_block = 65'535; // RFC 1951, 3.2.4: the length has 16 bits

std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0xEDB88320u : 0u);
    }
  }
  return ~crc;
}

void append_le(std::string& out, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    out.push_back(static_cast<char>((value >> (8 * i)) & 0xFFu));
  }
}

} // namespace

std::string gzip_stored(std::string_view bytes) {
  std::string out("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", 10);
  std::string_view rest = bytes;
  do {
    const std::string_view block = rest.substr(0, k_block);
    rest.remove_prefix(block.size());
    out.push_back(rest.empty() ? '\x01' : '\x00');
    const auto size = static_cast<std::uint32_t>(block.size());
    append_le(out, size, 2);
    append_le(out, ~size & 0xFFFFu, 2);
    out += block;
  } while (!rest.empty());
  append_le(out, crc32(bytes), 4);
  append_le(out, static_cast<std::uint32_t>(bytes.size()), 4);
  return out;
}

} // namespace modeld::test
