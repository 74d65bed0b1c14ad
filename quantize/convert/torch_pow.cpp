// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/torch_pow.hpp"

#include <cmath>

// The vector library is SLEEF (its pow within 1 ulp): exp(y * log(x)) in sums of two floats. Order
// of operations and coefficients are the library's; every multiply-add of it is a fused one.

namespace modeld::quantize {
namespace {

/// high + low, |low| at most half an ulp of high.
struct Pair {
  float high;
  float low;
};

/// Exact for any two.
Pair sum_of(float a, float b) {
  const float sum = a + b;
  const float part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

Pair add_any(Pair a, float b) {
  const Pair sum = sum_of(a.high, b);
  return {sum.high, sum.low + a.low};
}

Pair add_any(Pair a, Pair b) {
  const Pair sum = sum_of(a.high, b.high);
  return {sum.high, sum.low + (a.low + b.low)};
}

/// For |a| >= |b|.
Pair add_smaller(Pair a, Pair b) {
  const float sum = a.high + b.high;
  return {sum, (((a.high - sum) + b.high) + a.low) + b.low};
}

Pair times(Pair a, float b) {
  const float product = a.high * b;
  return {product, std::fma(a.low, b, std::fma(a.high, b, -product))};
}

Pair times(Pair a, Pair b) {
  const float product = a.high * b.high;
  return {product,
          std::fma(a.high, b.low, std::fma(a.low, b.high, std::fma(a.high, b.high, -product)))};
}

Pair square(Pair a) {
  const float product = a.high * a.high;
  return {product, std::fma(a.high + a.high, a.low, std::fma(a.high, a.high, -product))};
}

Pair divided(Pair a, Pair b) {
  const float inverse = 1.0F / b.high;
  const float quotient = a.high * inverse;
  const float rest = std::fma(inverse, a.high, -quotient);
  const float miss = std::fma(-b.low, inverse, std::fma(-b.high, inverse, 1.0F));
  return {quotient, std::fma(quotient, miss, std::fma(a.low, inverse, rest))};
}

/// Of a positive normal value.
Pair logarithm(float x) {
  // x = m * 2^e with 0.75 <= m < 1.5.
  const int exponent = std::ilogb(x * (1.0F / 0.75F));
  const float m = std::ldexp(x, -exponent);
  const Pair s = divided(sum_of(-1.0F, m), sum_of(1.0F, m));
  const Pair s2 = square(s);
  float t = 0.240320354700088500976562F;
  t = std::fma(t, s2.high, 0.285112679004669189453125F);
  t = std::fma(t, s2.high, 0.400007992982864379882812F);
  constexpr Pair k_third{0.66666662693023681640625F, 3.69183861259614332084311e-09F};
  constexpr Pair k_ln2{0.69314718246459960938F, -1.904654323148236017e-09F};
  const Pair head =
      add_smaller(times(k_ln2, static_cast<float>(exponent)), {s.high * 2.0F, s.low * 2.0F});
  return add_smaller(head, times(times(s2, s), add_any(times(s2, t), k_third)));
}

float exponential(Pair d) {
  constexpr float k_log2_e = 1.44269504F;
  constexpr float k_ln2_high = 0.693145751953125F;
  constexpr float k_ln2_low = 1.428606765330187045e-06F;
  const float q = std::nearbyint((d.high + d.low) * k_log2_e);
  Pair s = add_any(d, q * -k_ln2_high);
  s = add_any(s, q * -k_ln2_low);
  const float sum = s.high + s.low;
  s = {sum, (s.high - sum) + s.low};
  float u = 0.00136324646882712841033936F;
  u = std::fma(u, s.high, 0.00836596917361021041870117F);
  u = std::fma(u, s.high, 0.0416710823774337768554688F);
  u = std::fma(u, s.high, 0.166665524244308471679688F);
  u = std::fma(u, s.high, 0.499999850988388061523438F);
  const Pair t = add_smaller(s, times(square(s), u));
  const float head = 1.0F + t.high;
  const float mantissa = head + (((1.0F - head) + t.high) + t.low);
  return d.high < -104.0F ? 0.0F : std::ldexp(mantissa, static_cast<int>(q));
}

float vector_power(float x, float y) {
  return y == 0.0F || x == 1.0F ? 1.0F : exponential(times(logarithm(x), y));
}

} // namespace

std::vector<float> torch_rotary_powers(float base, int dim) {
  const int count = (dim + 1) / 2;
  constexpr int k_group = 32;
  std::vector<float> out;
  for (int i = 0; i < count; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(dim);
    const bool in_group = i < count / k_group * k_group;
    out.push_back(in_group ? vector_power(base, exponent) : std::pow(base, exponent));
  }
  return out;
}

} // namespace modeld::quantize
