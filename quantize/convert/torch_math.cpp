// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/torch_math.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

// exp: x = n/32 ln 2 + r with 0 <= r < ln 2 / 32, and exp(x) = 2^floor(n/32) * 2^(j/32) * exp(r).
// 2^(j/32) is a rounded value and its relative remainder; exp(r) - 1 is a cubic that starts with r.
// What decides the last bit is the order: remainder + r first, then the rest by one fused
// operation, then one more with the rounded value. Found by comparing results with the framework's,
// over every finite value; constants beside those of arithmetic are the two coefficients.
//
// sin and cos: x less the nearest multiple of pi (of cos: and a half), then an odd polynomial of
// degree 9, all in double precision, rounded once. The four coefficients are where 25 million
// results leave room for: the polynomial is not the nearest one, and its error decides every
// twentieth last bit.
//
// The mean: SumKernel of the framework adds up rows of vectors level by level, so that no partial
// sum grows far beyond what is added to it.

namespace modeld::quantize {
namespace {

constexpr int k_steps = 32;

struct PowerTable {
  std::array<float, k_steps> power{};     ///< 2^(j/32)
  std::array<float, k_steps> remainder{}; ///< relative: 2^(j/32) / power - 1
};

PowerTable make_powers() {
  PowerTable table;
  for (int j = 0; j < k_steps; ++j) {
    const long double exact = std::exp2(static_cast<long double>(j) / k_steps);
    const auto at = static_cast<std::size_t>(j);
    table.power[at] = static_cast<float>(exact);
    table.remainder[at] = static_cast<float>(exact / table.power[at] - 1.0L);
  }
  return table;
}

/// From here on (2^126 and its inverse) a result may leave the range of normal values.
const float k_ordinary = std::bit_cast<float>(0x42AEAC4FU);
const float k_square = std::bit_cast<float>(0x3F0000F6U); // 0.5 and a little
const float k_cube = std::bit_cast<float>(0x3E2AABF3U);   // 1/6 and a little
const float k_log2_e = 1.44269504F;
const float k_ln2_high = 0.693147182F;
const float k_ln2_low = -1.90465421e-9F;

} // namespace

float torch_exp(float x) {
  // The framework leaves these to a routine that rounds to the nearest value; NaN lands here too.
  if (!(std::abs(x) <= k_ordinary)) return static_cast<float>(std::exp(static_cast<double>(x)));
  static const PowerTable k_table = make_powers();
  // The product is exact in double precision, so this rounds down once.
  const double steps = std::floor(static_cast<double>(x) * static_cast<double>(k_log2_e) * k_steps);
  const auto whole = static_cast<int>(steps);
  const auto n = static_cast<float>(steps / k_steps);
  const float r = std::fma(-n, k_ln2_low, std::fma(-n, k_ln2_high, x));
  const auto j = static_cast<std::size_t>(whole & (k_steps - 1));
  const float start = r + k_table.remainder[j];
  const float rest = std::fma(std::fma(r, k_cube, k_square), r * r, start);
  const float mantissa = std::fma(k_table.power[j], rest, k_table.power[j]);
  return std::ldexp(mantissa, (whole - static_cast<int>(j)) / k_steps);
}

namespace {

constexpr double k_pi_high = 3.141592653589793116;
constexpr double k_pi_low = 1.2246467991473532e-16;
constexpr double k_sine_3 = -0x1.55554bc836135p-3;
constexpr double k_sine_5 = 0x1.110ed38050215p-7;
constexpr double k_sine_7 = -0x1.9f6ffeec78abfp-13;
constexpr double k_sine_9 = 0x1.5dbdf10c8f90ap-19;

/// sin(x - turns * pi), with the sign that a whole number of half turns makes.
float sine_less(double x, double turns, bool negative) {
  const double r = std::fma(-turns, k_pi_low, std::fma(-turns, k_pi_high, x));
  const double z = r * r;
  const double sine = r + r * z * (k_sine_3 + z * (k_sine_5 + z * (k_sine_7 + z * k_sine_9)));
  return static_cast<float>(negative ? -sine : sine);
}

bool odd(double whole) {
  return std::fmod(whole, 2.0) != 0.0;
}

} // namespace

float torch_sin(float x) {
  const double turns = std::nearbyint(double{x} / k_pi_high);
  return sine_less(x, turns, odd(turns));
}

float torch_cos(float x) {
  const double turns = std::nearbyint(double{x} / k_pi_high + 0.5);
  return sine_less(x, turns - 0.5, odd(turns));
}

namespace {

constexpr std::size_t k_lanes = 8;
constexpr std::size_t k_rows = 4;
constexpr std::size_t k_width = k_lanes * k_rows;
constexpr int k_levels = 4;
/// Below this many elements the framework does not share a sum among threads.
constexpr std::uint64_t k_grain = 32768;
constexpr std::uint64_t k_threads = 2;

using Lanes = std::array<float, k_width>;

void add_to(Lanes& sum, const float* values) {
  for (std::size_t k = 0; k < k_width; ++k) {
    sum[k] += values[k];
  }
}

int ceil_log2(std::uint64_t value) {
  return value <= 2 ? 1 : static_cast<int>(std::bit_width(value - 1));
}

/// Sums `blocks` blocks of k_width values, given one after another.
class LevelSum {
public:
  explicit LevelSum(std::uint64_t blocks)
      : power_(std::max(4, ceil_log2(blocks) / k_levels)), blocks_(blocks) {}

  void add(const float* block) {
    add_to(levels_[0], block);
    ++done_;
    const std::uint64_t mask = (std::uint64_t{1} << power_) - 1;
    if ((done_ & mask) != 0) return;
    // A step is complete: it moves up, and takes along what is complete above it.
    for (int level = 1; level < k_levels; ++level) {
      auto& below = levels_[static_cast<std::size_t>(level) - 1];
      add_to(levels_[static_cast<std::size_t>(level)], below.data());
      below = {};
      if ((done_ & (mask << (level * power_))) != 0) break;
    }
  }

  Lanes total() const {
    Lanes sum = levels_[0];
    for (std::size_t level = 1; level < k_levels; ++level) {
      add_to(sum, levels_[level].data());
    }
    return sum;
  }

  std::uint64_t blocks() const { return blocks_; }

private:
  int power_;
  std::uint64_t blocks_;
  std::uint64_t done_ = 0;
  std::array<Lanes, k_levels> levels_{};
};

Result<void> read_magnitudes(const SourceTensor& tensor, std::uint64_t first, std::uint64_t count,
                             float* out) {
  MODELD_TRY(read_f32(tensor, first, count, out));
  std::transform(out, out + count, out, [](float x) { return std::abs(x); });
  return {};
}

/// Fewer than one vector: the same scheme with one lane.
float sum_few(const float* values, std::size_t count) {
  std::array<float, k_rows> sums{};
  const std::size_t whole = count / k_rows * k_rows;
  for (std::size_t i = 0; i < whole; ++i) {
    sums[i % k_rows] += values[i];
  }
  for (std::size_t i = whole; i < count; ++i) {
    sums[0] += values[i];
  }
  return 0.0F + (((sums[0] + sums[1]) + sums[2]) + sums[3]);
}

/// What follows the last whole block: vectors go to the first row, then rows and lanes add up.
float finish(const Lanes& total, const float* tail, std::size_t count) {
  Lanes sums = total;
  const std::size_t vectors = count / k_lanes;
  for (std::size_t i = 0; i < vectors * k_lanes; ++i) {
    sums[i % k_lanes] += tail[i];
  }
  for (std::size_t i = k_lanes; i < k_width; ++i) {
    sums[i % k_lanes] += sums[i];
  }
  float sum = 0;
  for (std::size_t i = vectors * k_lanes; i < count; ++i) {
    sum += tail[i];
  }
  for (std::size_t lane = 0; lane < k_lanes; ++lane) {
    sum += sums[lane];
  }
  return sum;
}

Result<float> sum_of_part(const SourceTensor& tensor, std::uint64_t first, std::uint64_t count) {
  std::array<float, 64 * k_width> values;
  LevelSum levels(count / k_width);
  std::uint64_t left = levels.blocks() * k_width;
  for (std::uint64_t at = first; left > 0;) {
    const std::uint64_t some = std::min<std::uint64_t>(values.size(), left);
    MODELD_TRY(read_magnitudes(tensor, at, some, values.data()));
    for (std::uint64_t i = 0; i < some; i += k_width) {
      levels.add(values.data() + i);
    }
    at += some;
    left -= some;
  }
  const std::uint64_t tail = count % k_width;
  MODELD_TRY(read_magnitudes(tensor, first + count - tail, tail, values.data()));
  if (count < k_lanes) return sum_few(values.data(), tail);
  return finish(levels.total(), values.data(), tail);
}

} // namespace

Result<float> torch_mean_magnitude(const SourceTensor& tensor) {
  const std::uint64_t count = tensor.elements();
  const std::uint64_t parts =
      std::clamp<std::uint64_t>((count + k_grain - 1) / k_grain, 1, k_threads);
  const std::uint64_t each = (count + parts - 1) / parts;
  float sum = 0;
  for (std::uint64_t first = 0; first < count; first += each) {
    MODELD_ASSIGN(const float part, sum_of_part(tensor, first, std::min(each, count - first)));
    sum += part;
  }
  return sum / static_cast<float>(count);
}

} // namespace modeld::quantize
