// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace modeld::test {

/// Numbers that a name defines, the same on every machine; tests/golden/materialize.py states the
/// rule (FNV-1a of the name is the state of SplitMix64).
class NamedStream {
public:
  explicit NamedStream(std::string_view name);

  /// The i-th, counted from 1.
  std::uint64_t bits(std::uint64_t i) const;
  /// The sum of four 16-bit pieces, nearly normal around 0 and below 1/8: exact in a float.
  static double spread(std::uint64_t bits);

private:
  std::uint64_t state_;
};

} // namespace modeld::test
