// SPDX-License-Identifier: Apache-2.0
#include "quantize/kernels/grid_table.hpp"

#include <algorithm>

namespace modeld::quantize {

using reference::IqGrid;

GridTable::GridTable(const IqGrid& grid, unsigned bits)
    : grid_(grid), first_(std::size_t{1} << (bits * grid.group())),
      count_(std::size_t{1} << (bits * grid.group())) {
  for (std::uint32_t code = 0; code < first_.size(); ++code) {
    const auto neighbours = grid.neighbours(code);
    const std::size_t chunks = (neighbours.size() + k_chunk - 1) / k_chunk;
    first_[code] = static_cast<std::uint32_t>(points_.size() / k_chunk);
    count_[code] = static_cast<std::uint16_t>(neighbours.size());
    first_neighbour_.push_back(static_cast<std::uint32_t>(by_neighbour_.size() / grid.group()));
    for (const std::uint16_t point : neighbours) {
      const std::uint8_t* const levels = grid.levels(point);
      by_neighbour_.insert(by_neighbour_.end(), levels, levels + grid.group());
    }
    for (std::size_t n = 0; n < chunks * k_chunk; ++n) {
      points_.push_back(neighbours[std::min(n, neighbours.size() - 1)]);
    }
  }
  levels_.resize(points_.size() * grid.group());
  for (std::size_t n = 0; n < points_.size(); ++n) {
    const std::uint8_t* const levels = grid.levels(points_[n]);
    std::uint8_t* const chunk = &levels_[n / k_chunk * k_chunk * grid.group()];
    for (std::size_t i = 0; i < grid.group(); ++i) {
      chunk[i * k_chunk + n % k_chunk] = levels[i];
    }
  }
}

const GridTable& GridTable::iq2_xxs() {
  static const GridTable table(IqGrid::iq2_xxs(), 2);
  return table;
}

const GridTable& GridTable::iq2_xs() {
  static const GridTable table(IqGrid::iq2_xs(), 2);
  return table;
}

const GridTable& GridTable::iq2_s() {
  static const GridTable table(IqGrid::iq2_s(), 2);
  return table;
}

const GridTable& GridTable::iq3_xxs() {
  static const GridTable table(IqGrid::iq3_xxs(), 3);
  return table;
}

const GridTable& GridTable::iq3_s() {
  static const GridTable table(IqGrid::iq3_s(), 3);
  return table;
}

} // namespace modeld::quantize
