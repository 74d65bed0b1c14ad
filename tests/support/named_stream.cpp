// SPDX-License-Identifier: Apache-2.0
#include "tests/support/named_stream.hpp"

namespace modeld::test {

NamedStream::NamedStream(std::string_view name) : state_(0xCBF29CE484222325) {
  for (const char c : name) {
    state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  }
}

std::uint64_t NamedStream::bits(std::uint64_t i) const {
  std::uint64_t s = state_ + i * 0x9E3779B97F4A7C15;
  s = (s ^ (s >> 30)) * 0xBF58476D1CE4E5B9;
  s = (s ^ (s >> 27)) * 0x94D049BB133111EB;
  return s ^ (s >> 31);
}

double NamedStream::spread(std::uint64_t bits) {
  std::int64_t sum = -131070;
  for (const unsigned shift : {0U, 16U, 32U, 48U}) {
    sum += static_cast<std::int64_t>((bits >> shift) & 0xFFFF);
  }
  return static_cast<double>(sum) * 0x1p-20;
}

} // namespace modeld::test
