// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace modeld::test {

/// A kind of row that a quantizer must get right: the shapes of real weights, and the bad days.
struct RowKind {
  std::string_view name;
  void (*fill)(std::span<float> row, std::uint64_t seed);
};

/// normal, heavy tails, uniform, constant, zero, one outlier, alternating signs, ties, denormals,
/// huge, tiny, signed zeros, one-sided, sparse, mixed magnitudes. All finite.
std::span<const RowKind> row_kinds();

/// Importance weights >= 0: ordinary ones; for every third seed some zero, for every seventh all.
std::vector<float> importance_sample(std::size_t count, std::uint64_t seed);

} // namespace modeld::test
