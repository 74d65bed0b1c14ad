// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace modeld::quantize::reference {

/// The points that a group of elements may take in an IQ1, IQ2 or IQ3 type. A point is one level
/// for each of 8 elements (levels 0..2) or of 4 (levels 0..7); its index is what is stored. A code
/// packs the levels of a group, 2 or 3 bits each, the first element lowest.
///
/// Built on first use, lives for ever, and is the same for all threads.
class IqGrid {
public:
  static constexpr std::size_t k_max_group = 8;

  static const IqGrid& iq2_xxs(); ///< 256 points of 8
  static const IqGrid& iq2_xs();  ///< 512
  static const IqGrid& iq2_s();   ///< 1024
  static const IqGrid& iq1();     ///< 2048, for IQ1_S and IQ1_M
  static const IqGrid& iq3_xxs(); ///< 256 points of 4
  static const IqGrid& iq3_s();   ///< 512

  std::size_t group() const { return group_; }   ///< elements: 8 or 4
  std::size_t points() const { return points_; } ///< indices are below
  /// group() levels of a point.
  const std::uint8_t* levels(std::size_t index) const { return &levels_[index * group_]; }

  std::uint32_t code(const std::uint8_t* levels) const;
  /// The point with these levels, or -1.
  int find(std::uint32_t code) const { return index_[code]; }
  /// For a code without a point: the points at its nearest distances (squared, over odd numbers
  /// 2 level + 1), nearer first, of equal ones the lower index first. How many distances count
  /// is part of the type: 1 for IQ2_S, 2 for IQ2_XXS, IQ2_XS, IQ3_XXS, 3 for IQ3_S and IQ1.
  std::span<const std::uint16_t> neighbours(std::uint32_t code) const;

private:
  struct Shape;
  explicit IqGrid(const Shape& shape);
  void add_neighbours(std::uint32_t code, std::size_t distances);

  std::size_t group_;
  unsigned bits_; ///< of a level in a code
  std::size_t points_ = 0;
  std::vector<std::uint8_t> levels_;
  std::vector<std::int16_t> index_;  ///< by code
  std::vector<std::uint32_t> first_; ///< by code: where its neighbours begin
  std::vector<std::uint16_t> count_; ///< by code
  std::vector<std::uint16_t> neighbours_;
};

} // namespace modeld::quantize::reference
