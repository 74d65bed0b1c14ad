// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/reference/iq_grid.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace modeld::quantize {

/// The neighbours of an IqGrid's codes as vectors want them: each point as its code, 16 bits, so
/// that a search reads one row of memory and unpacks levels in lanes. Searches come here at random:
/// the smaller, the fewer misses.
///
/// Built on first use, lives for ever, and is the same for all threads.
class NeighbourTable {
public:
  /// A list's codes are followed by copies of the last one up to a multiple of this.
  static constexpr std::size_t k_chunk = 16;

  static const NeighbourTable& iq2_xxs();
  static const NeighbourTable& iq2_xs();
  static const NeighbourTable& iq2_s();
  static const NeighbourTable& iq1();
  static const NeighbourTable& iq3_xxs();
  static const NeighbourTable& iq3_s();

  struct List {
    const std::uint16_t* codes; ///< in the order of IqGrid::neighbours
    std::size_t count;          ///< 0 for a code on the grid
  };

  const reference::IqGrid& grid() const { return grid_; }
  List neighbours(std::uint32_t code) const {
    const std::uint32_t entry = entries_[low_[code & 255U] + std::size_t{high_[code >> 8]}];
    return {&codes_[std::size_t{entry >> k_count_bits} * k_chunk], entry & k_count_mask};
  }

private:
  static constexpr unsigned k_count_bits = 10; ///< the longest list has 292
  static constexpr std::uint32_t k_count_mask = (1U << k_count_bits) - 1U;

  NeighbourTable(const reference::IqGrid& grid, unsigned bits, unsigned levels);
  void add_list(std::uint32_t code);

  const reference::IqGrid& grid_;
  // The rank of a code among those whose levels are all possible is the sum of two look-ups: of
  // groups of eight that is a tenth of all codes.
  std::array<std::uint16_t, 256> low_{};
  std::array<std::uint16_t, 256> high_{};
  std::vector<std::uint32_t> entries_; ///< by rank: first chunk and number of neighbours
  std::vector<std::uint16_t> codes_;
};

} // namespace modeld::quantize
