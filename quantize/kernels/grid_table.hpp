// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/reference/iq_grid.hpp"

#include <cstdint>
#include <vector>

namespace modeld::quantize {

/// The neighbours of an IqGrid's codes as vectors want them: in chunks of sixteen, each element's
/// levels of the sixteen next to each other. The last neighbour fills the last chunk, so that the
/// first of equally near ones stays the first.
///
/// Built on first use, lives for ever, and is the same for all threads.
class GridTable {
public:
  static constexpr std::size_t k_chunk = 16;

  static const GridTable& iq2_xxs();
  static const GridTable& iq2_xs();
  static const GridTable& iq2_s();
  static const GridTable& iq3_xxs();
  static const GridTable& iq3_s();

  const reference::IqGrid& grid() const { return grid_; }
  /// 0 for a code on the grid.
  std::size_t neighbours(std::uint32_t code) const { return count_[code]; }
  std::size_t chunks(std::uint32_t code) const { return (count_[code] + k_chunk - 1) / k_chunk; }
  /// group() levels of each neighbour, one after another.
  const std::uint8_t* levels_by_neighbour(std::uint32_t code) const {
    return &by_neighbour_[first_neighbour_[code] * grid_.group()];
  }
  /// Level of element i of neighbour n of the chunk at [i * k_chunk + n].
  const std::uint8_t* levels(std::uint32_t code, std::size_t chunk) const {
    return &levels_[(first_[code] + chunk) * k_chunk * grid_.group()];
  }
  /// Points by neighbour, k_chunk for each chunk.
  const std::uint16_t* points(std::uint32_t code) const { return &points_[first_[code] * k_chunk]; }

private:
  GridTable(const reference::IqGrid& grid, unsigned bits);

  const reference::IqGrid& grid_;
  std::vector<std::uint32_t> first_; ///< chunk, by code
  std::vector<std::uint16_t> count_; ///< neighbours, by code
  std::vector<std::uint8_t> levels_;
  // Without the filling: searches come here at random, and less memory means fewer misses.
  std::vector<std::uint8_t> by_neighbour_;
  std::vector<std::uint32_t> first_neighbour_; ///< by code
  std::vector<std::uint16_t> points_;
};

} // namespace modeld::quantize
