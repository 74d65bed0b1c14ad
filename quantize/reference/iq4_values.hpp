// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace modeld::quantize::reference {

/// The 16 values of IQ4_NL and IQ4_XS (ggml's kvalues_iq4nl), ascending.
inline constexpr std::array<float, 16> k_iq4_values{-127, -104, -83, -65, -49, -35, -22, -10,
                                                    1,    13,   25,  38,  53,  69,  89,  113};

/// The level whose value is nearest to x; of two equally near ones the higher.
inline std::uint8_t nearest_iq4_level(float x) {
  if (x <= k_iq4_values.front()) return 0;
  if (x >= k_iq4_values.back()) return 15;
  std::size_t low = 0;
  std::size_t high = 15;
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (x < k_iq4_values[middle] ? high : low) = middle;
  }
  return static_cast<std::uint8_t>(x - k_iq4_values[high - 1] < k_iq4_values[high] - x ? high - 1
                                                                                       : high);
}

} // namespace modeld::quantize::reference
