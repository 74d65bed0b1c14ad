// SPDX-License-Identifier: Apache-2.0
#include "schema/digest.hpp"

#include <fmt/format.h>

namespace modeld {
namespace {

constexpr std::string_view k_digits = "0123456789abcdef";

int value_of(char digit) {
  const auto at = k_digits.find(digit);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

} // namespace

std::string to_hex(const std::byte* data, std::size_t size) {
  std::string text(size * 2, '0');
  for (std::size_t i = 0; i < size; ++i) {
    const auto byte = std::to_integer<unsigned>(data[i]);
    text[2 * i] = k_digits[byte >> 4];
    text[2 * i + 1] = k_digits[byte & 15];
  }
  return text;
}

template <class Tag, std::size_t Bytes>
std::string BasicDigest<Tag, Bytes>::hex() const {
  return to_hex(bytes.data(), Bytes);
}

template <class Tag, std::size_t Bytes>
Result<BasicDigest<Tag, Bytes>> BasicDigest<Tag, Bytes>::parse(std::string_view text) {
  if (text.size() != 2 * Bytes) {
    return fail(Errc::invalid_argument, fmt::format("reading a digest: {} characters, expected {}",
                                                    text.size(), 2 * Bytes));
  }
  BasicDigest digest;
  for (std::size_t i = 0; i < Bytes; ++i) {
    const int high = value_of(text[2 * i]);
    const int low = value_of(text[2 * i + 1]);
    if (high < 0 || low < 0) {
      return fail(Errc::invalid_argument,
                  fmt::format("reading a digest: character {} is not one of 0-9a-f",
                              2 * i + (high < 0 ? 0 : 1)));
    }
    digest.bytes[i] = static_cast<std::byte>(high << 4 | low);
  }
  return digest;
}

template struct BasicDigest<Sha256Tag, 32>;
template struct BasicDigest<GitOidTag, 20>;

} // namespace modeld
