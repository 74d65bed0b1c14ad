// SPDX-License-Identifier: Apache-2.0
#include "quantize/row_samples.hpp"

#include <array>
#include <cmath>
#include <random>

namespace modeld::test {
namespace {

using Row = std::span<float>;
using Random = std::mt19937_64;

template <class Distribution>
void fill_with(Row row, std::uint64_t seed, Distribution distribution) {
  Random random(seed);
  for (float& v : row) {
    v = static_cast<float>(distribution(random));
  }
}

void normal(Row row, std::uint64_t seed) {
  fill_with(row, seed, std::normal_distribution<float>(0.0F, 0.02F));
}

void heavy(Row row, std::uint64_t seed) {
  fill_with(row, seed, std::student_t_distribution<float>(2.0F));
}

void uniform(Row row, std::uint64_t seed) {
  fill_with(row, seed, std::uniform_real_distribution<float>(-1.0F, 1.0F));
}

void constant(Row row, std::uint64_t seed) {
  const float value = std::ldexp(seed % 2 == 0 ? 1.37F : -1.37F, static_cast<int>(seed % 20) - 10);
  for (float& v : row) {
    v = value;
  }
}

void zero(Row row, std::uint64_t) {
  for (float& v : row) {
    v = 0.0F;
  }
}

void outlier(Row row, std::uint64_t seed) {
  normal(row, seed);
  row[seed % row.size()] = seed % 2 == 0 ? 37.0F : -37.0F;
}

void alternating(Row row, std::uint64_t seed) {
  fill_with(row, seed, std::uniform_real_distribution<float>(0.5F, 1.0F));
  for (std::size_t i = 1; i < row.size(); i += 2) {
    row[i] = seed % 2 == 0 ? -row[i - 1] : -row[i];
  }
}

/// Values exactly between levels, and equal magnitudes of both signs.
void ties(Row row, std::uint64_t seed) {
  Random random(seed);
  for (float& v : row) {
    v = (static_cast<float>(random() % 65) - 32.0F) / 2.0F;
  }
}

void denormal(Row row, std::uint64_t seed) {
  fill_with(row, seed, std::normal_distribution<float>(0.0F, 1e-40F));
}

void huge(Row row, std::uint64_t seed) {
  fill_with(row, seed, std::normal_distribution<float>(0.0F, 1e4F));
}

void tiny(Row row, std::uint64_t seed) {
  fill_with(row, seed, std::normal_distribution<float>(0.0F, 1e-9F));
}

void below_zero_eps(Row row, std::uint64_t seed) {
  fill_with(row, seed, std::normal_distribution<float>(0.0F, 1e-15F));
}

void signed_zeros(Row row, std::uint64_t seed) {
  Random random(seed);
  for (float& v : row) {
    v = random() % 2 == 0 ? 0.0F : -0.0F;
  }
}

void one_sided(Row row, std::uint64_t seed) {
  fill_with(row, seed, std::gamma_distribution<float>(1.0F, 0.1F));
  if (seed % 2 == 0) return;
  for (float& v : row) {
    v = -v;
  }
}

void sparse(Row row, std::uint64_t seed) {
  Random random(seed);
  std::normal_distribution<float> distribution(0.0F, 1.0F);
  for (float& v : row) {
    v = random() % 16 == 0 ? distribution(random) : 0.0F;
  }
}

/// Groups of 16 whose magnitudes differ by powers of two; some groups zero.
void mixed(Row row, std::uint64_t seed) {
  Random random(seed);
  std::normal_distribution<float> distribution(0.0F, 1.0F);
  float scale = 1.0F;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i % 16 == 0) {
      scale = random() % 8 == 0 ? 0.0F : std::ldexp(1.0F, static_cast<int>(random() % 24) - 16);
    }
    row[i] = distribution(random) * scale;
  }
}

constexpr std::array k_kinds{
    RowKind{"normal", normal},       RowKind{"heavy tails", heavy},
    RowKind{"uniform", uniform},     RowKind{"constant", constant},
    RowKind{"zero", zero},           RowKind{"one outlier", outlier},
    RowKind{"ties", ties},           RowKind{"alternating signs", alternating},
    RowKind{"denormal", denormal},   RowKind{"huge", huge},
    RowKind{"tiny", tiny},           RowKind{"below the zero threshold", below_zero_eps},
    RowKind{"one sided", one_sided}, RowKind{"signed zeros", signed_zeros},
    RowKind{"sparse", sparse},       RowKind{"mixed magnitudes", mixed},
};

} // namespace

std::span<const RowKind> row_kinds() {
  return k_kinds;
}

std::vector<float> importance_sample(std::size_t count, std::uint64_t seed) {
  Random random(seed * 977 + 5);
  std::gamma_distribution<float> distribution(0.5F, 2.0F);
  std::vector<float> weights(count);
  for (float& w : weights) {
    w = seed % 7 == 6 || (seed % 3 == 2 && random() % 4 == 0) ? 0.0F : distribution(random);
  }
  return weights;
}

} // namespace modeld::test
