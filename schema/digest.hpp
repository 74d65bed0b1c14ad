// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <array>
#include <compare>
#include <cstddef>
#include <string>
#include <string_view>

namespace modeld {

/// A digest of fixed length with its one text form: lower-case hexadecimal. The tag keeps a git
/// object id from being compared with a SHA-256.
template <class Tag, std::size_t Bytes>
struct BasicDigest {
  static constexpr std::size_t k_size = Bytes;
  std::array<std::byte, Bytes> bytes{};

  auto operator<=>(const BasicDigest&) const = default;

  /// 2 * k_size lower-case digits.
  std::string hex() const;
  /// Exactly 2 * k_size lower-case digits, else invalid_argument.
  static Result<BasicDigest> parse(std::string_view text);
};

struct Sha256Tag {};
struct GitOidTag {};

/// SHA-256 of a blob's bytes: its name in the store.
using Sha256Digest = BasicDigest<Sha256Tag, 32>;
/// Git object id (SHA-1) of a file, or of a commit.
using GitOid = BasicDigest<GitOidTag, 20>;

extern template struct BasicDigest<Sha256Tag, 32>;
extern template struct BasicDigest<GitOidTag, 20>;

/// Lower-case hexadecimal of any bytes.
std::string to_hex(const std::byte* data, std::size_t size);

} // namespace modeld
