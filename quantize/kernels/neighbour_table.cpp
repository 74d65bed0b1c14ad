// SPDX-License-Identifier: Apache-2.0
#include "quantize/kernels/neighbour_table.hpp"

#include <cassert>

namespace modeld::quantize {

using reference::IqGrid;

NeighbourTable::NeighbourTable(const IqGrid& grid, unsigned bits, unsigned levels) : grid_(grid) {
  const std::uint32_t mask = (1U << bits) - 1U;
  // A level may straddle the bytes of a code, so it gives what its bits in each byte are worth.
  const auto rank_of = [&](std::uint32_t code) {
    std::uint32_t rank = 0;
    std::uint32_t unit = 1;
    for (std::size_t i = 0; i < grid.group(); ++i, unit *= levels) {
      rank += ((code >> (bits * i)) & mask) * unit;
    }
    return static_cast<std::uint16_t>(rank);
  };
  const std::uint32_t codes = std::uint32_t{1} << (bits * grid.group());
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    low_[byte] = rank_of(byte);
    if (byte << 8 < codes) high_[byte] = rank_of(byte << 8);
  }
  std::uint32_t possible = 1;
  for (std::size_t i = 0; i < grid.group(); ++i) {
    possible *= levels;
  }
  entries_.resize(possible);
  for (std::uint32_t code = 0; code < codes; ++code) {
    if (!grid.neighbours(code).empty()) add_list(code);
  }
  codes_.resize(codes_.size() + k_chunk); // so that an empty list has an address, too
}

void NeighbourTable::add_list(std::uint32_t code) {
  const auto neighbours = grid_.neighbours(code);
  const auto first = static_cast<std::uint32_t>(codes_.size() / k_chunk);
  assert(neighbours.size() <= k_count_mask && first <= UINT32_MAX >> k_count_bits);
  entries_[low_[code & 255U] + std::size_t{high_[code >> 8]}] =
      first << k_count_bits | static_cast<std::uint32_t>(neighbours.size());
  for (const std::uint16_t point : neighbours) {
    codes_.push_back(static_cast<std::uint16_t>(grid_.code(grid_.levels(point))));
  }
  while (codes_.size() % k_chunk != 0) {
    codes_.push_back(codes_.back());
  }
}

const NeighbourTable& NeighbourTable::iq2_xxs() {
  static const NeighbourTable table(IqGrid::iq2_xxs(), 2, 3);
  return table;
}

const NeighbourTable& NeighbourTable::iq2_xs() {
  static const NeighbourTable table(IqGrid::iq2_xs(), 2, 3);
  return table;
}

const NeighbourTable& NeighbourTable::iq2_s() {
  static const NeighbourTable table(IqGrid::iq2_s(), 2, 3);
  return table;
}

const NeighbourTable& NeighbourTable::iq1() {
  static const NeighbourTable table(IqGrid::iq1(), 2, 3);
  return table;
}

const NeighbourTable& NeighbourTable::iq3_xxs() {
  static const NeighbourTable table(IqGrid::iq3_xxs(), 3, 8);
  return table;
}

const NeighbourTable& NeighbourTable::iq3_s() {
  static const NeighbourTable table(IqGrid::iq3_s(), 3, 8);
  return table;
}

} // namespace modeld::quantize
