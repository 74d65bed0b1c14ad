// SPDX-License-Identifier: Apache-2.0
#include "quantize/kernels/point_values.hpp"

#include <array>

namespace modeld::quantize {
namespace {

using reference::IqGrid;

constexpr std::array<std::uint8_t, 3> k_iq2{8, 25, 43};
constexpr std::array<std::uint8_t, 8> k_iq3_xxs{4, 12, 20, 28, 36, 44, 52, 62};
constexpr std::array<std::uint8_t, 8> k_iq3_s{1, 3, 5, 7, 9, 11, 13, 15};
constexpr std::array<std::uint8_t, 3> k_iq1{128, 136, 144};

} // namespace

PointValues::PointValues(const IqGrid& grid, std::span<const std::uint8_t> values)
    : words_(grid.points()) {
  for (std::size_t index = 0; index < grid.points(); ++index) {
    for (std::size_t i = 0; i < grid.group(); ++i) {
      words_[index] |= std::uint64_t{values[grid.levels(index)[i]]} << (8 * i);
    }
  }
}

const PointValues& PointValues::iq2_xxs() {
  static const PointValues values(IqGrid::iq2_xxs(), k_iq2);
  return values;
}

const PointValues& PointValues::iq2_xs() {
  static const PointValues values(IqGrid::iq2_xs(), k_iq2);
  return values;
}

const PointValues& PointValues::iq2_s() {
  static const PointValues values(IqGrid::iq2_s(), k_iq2);
  return values;
}

const PointValues& PointValues::iq1() {
  static const PointValues values(IqGrid::iq1(), k_iq1);
  return values;
}

const PointValues& PointValues::iq3_xxs() {
  static const PointValues values(IqGrid::iq3_xxs(), k_iq3_xxs);
  return values;
}

const PointValues& PointValues::iq3_s() {
  static const PointValues values(IqGrid::iq3_s(), k_iq3_s);
  return values;
}

} // namespace modeld::quantize
