// SPDX-License-Identifier: Apache-2.0

// From blocks of the IQ1, IQ2 and IQ3 types to floats. Each block is unpacked to signed bytes,
// eight at a time in a word, and one scale for each sub-block; then level * scale. A sign changes
// with the level and not with the product, which is the same.

#include "quantize/gguf/block_layout.hpp"
#include "quantize/kernels/point_values.hpp"
#include "quantize/kernels/table.hpp"

#include <array>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/kernels/grid_values.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "quantize/kernels/lanes-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

KernelFamily grid_values_family() {
  return {HWY_TARGET, {}};
}

#else

/// A block between its two stages.
struct Unpacked {
  alignas(64) std::uint64_t level[32]; ///< eight signed bytes each
  float scale[16];                     ///< of each sub-block
};

template <std::size_t Sub>
HWY_INLINE void expand(const Unpacked& in, float* out) {
  const hn::Rebind<std::int8_t, Floats> bytes;
  const auto* const level = reinterpret_cast<const std::int8_t*>(in.level);
  for (std::size_t i = 0; i < k_super; i += hn::Lanes(k_f)) {
    const FloatV v = hn::ConvertTo(k_f, hn::PromoteTo(k_i, hn::LoadU(bytes, level + i)));
    hn::StoreU(hn::Mul(v, set(in.scale[i / Sub])), k_f, out + i);
  }
}

template <class Block, std::size_t Sub, void (*Unpack)(const Block&, Unpacked&)>
void dequantize(const std::byte* in, std::uint64_t rows, std::uint64_t row_elements, float* out) {
  const auto* block = reinterpret_cast<const Block*>(in);
  Unpacked unpacked;
  for (std::uint64_t at = 0; at < rows * row_elements; at += k_super) {
    Unpack(*block++, unpacked);
    expand<Sub>(unpacked, out + at);
  }
}

template <class T>
HWY_INLINE T load(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

HWY_INLINE unsigned nibble(const std::uint8_t* bytes, std::size_t i) {
  return (static_cast<unsigned>(bytes[i / 2]) >> (4 * (i % 2))) & 15U;
}

HWY_INLINE void unpack_iq2_xxs(const BlockIQ2XXS& y, Unpacked& to) {
  const PointValues& values = PointValues::iq2_xxs();
  const float d = y.d.value();
  for (std::size_t s = 0; s < 8; ++s) {
    const auto indices = load<std::uint32_t>(&y.qs[8 * s]);
    const auto signs = load<std::uint32_t>(&y.qs[8 * s + 4]);
    for (std::size_t k = 0; k < 4; ++k) {
      to.level[4 * s + k] = with_signs(values[(indices >> (8 * k)) & 255U],
                                       k_even_sign_bytes[(signs >> (7 * k)) & 127U]);
    }
    to.scale[s] = d * (0.5F + static_cast<float>(signs >> 28)) * 0.25F;
  }
}

HWY_INLINE void unpack_iq2_xs(const BlockIQ2XS& y, Unpacked& to) {
  const PointValues& values = PointValues::iq2_xs();
  const float d = y.d.value();
  for (std::size_t k = 0; k < 32; ++k) {
    const auto word = load<std::uint16_t>(&y.qs[2 * k]);
    to.level[k] = with_signs(values[word & 511U], k_even_sign_bytes[word >> 9]);
  }
  for (std::size_t s = 0; s < 16; ++s)
    to.scale[s] = d * (0.5F + static_cast<float>(nibble(y.scales.data(), s))) * 0.25F;
}

HWY_INLINE void unpack_iq2_s(const BlockIQ2S& y, Unpacked& to) {
  const PointValues& values = PointValues::iq2_s();
  const float d = y.d.value();
  for (std::size_t k = 0; k < 32; ++k) {
    const unsigned high = (static_cast<unsigned>(y.qh[k / 4]) >> (2 * (k % 4))) & 3U;
    to.level[k] = with_signs(values[y.qs[k] | high << 8], k_sign_bytes[y.signs[k]]);
  }
  for (std::size_t s = 0; s < 16; ++s)
    to.scale[s] = d * (0.5F + static_cast<float>(nibble(y.scales.data(), s))) * 0.25F;
}

HWY_INLINE void unpack_iq3_xxs(const BlockIQ3XXS& y, Unpacked& to) {
  const PointValues& values = PointValues::iq3_xxs();
  const float d = y.d.value();
  for (std::size_t s = 0; s < 8; ++s) {
    const auto signs = load<std::uint32_t>(&y.scales_and_signs[4 * s]);
    for (std::size_t k = 0; k < 4; ++k) {
      const std::uint8_t* const indices = &y.qs[8 * s + 2 * k];
      to.level[4 * s + k] = with_signs(values[indices[0]] | values[indices[1]] << 32,
                                       k_even_sign_bytes[(signs >> (7 * k)) & 127U]);
    }
    to.scale[s] = d * (0.5F + static_cast<float>(signs >> 28)) * 0.5F;
  }
}

HWY_INLINE void unpack_iq3_s(const BlockIQ3S& y, Unpacked& to) {
  const PointValues& values = PointValues::iq3_s();
  const float d = y.d.value();
  for (std::size_t s = 0; s < 8; ++s) {
    const unsigned high = y.qh[s];
    for (std::size_t k = 0; k < 4; ++k) {
      const std::uint8_t* const indices = &y.qs[8 * s + 2 * k];
      const std::size_t first = indices[0] | ((high << (8 - 2 * k)) & 256U);
      const std::size_t second = indices[1] | ((high << (7 - 2 * k)) & 256U);
      to.level[4 * s + k] =
          with_signs(values[first] | values[second] << 32, k_sign_bytes[y.signs[4 * s + k]]);
    }
    to.scale[s] = d * static_cast<float>(1 + 2 * nibble(y.scales.data(), s));
  }
}

/// Eight times a level of IQ1 and its shift, from 128 + 8 level: no borrow leaves a byte.
HWY_INLINE std::uint64_t shifted(std::uint64_t bytes, bool minus) {
  constexpr std::uint64_t k_ones = 0x0101010101010101U;
  return (bytes - (minus ? 9 * k_ones : 7 * k_ones)) ^ (128 * k_ones);
}

HWY_INLINE void unpack_iq1_s(const BlockIQ1S& y, Unpacked& to) {
  const PointValues& values = PointValues::iq1();
  const float d = y.d.value() * 0.125F;
  for (std::size_t s = 0; s < 8; ++s) {
    const unsigned word = load<std::uint16_t>(&y.qh[2 * s]);
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t index = y.qs[4 * s + k] | ((word >> (3 * k)) & 7U) << 8;
      to.level[4 * s + k] = shifted(values[index], (word & 0x8000U) != 0);
    }
    to.scale[s] = d * static_cast<float>(2 * ((word >> 12) & 7U) + 1);
  }
}

HWY_INLINE void unpack_iq1_m(const BlockIQ1M& y, Unpacked& to) {
  const PointValues& values = PointValues::iq1();
  const auto words = load<std::uint64_t>(y.scales.data());
  const std::uint64_t half = (words >> 12 & 0xFU) | (words >> 24 & 0xF0U) | (words >> 36 & 0xF00U) |
                             (words >> 48 & 0xF000U);
  const float d = reference::f16_to_f32(static_cast<std::uint16_t>(half)) * 0.125F;
  for (std::size_t s = 0; s < 16; ++s) {
    const unsigned high = y.qh[s];
    const std::size_t first = y.qs[2 * s] | (high & 7U) << 8;
    const std::size_t second = y.qs[2 * s + 1] | (high >> 4 & 7U) << 8;
    to.level[2 * s] = shifted(values[first], (high & 0x08U) != 0);
    to.level[2 * s + 1] = shifted(values[second], (high & 0x80U) != 0);
    const auto level = static_cast<unsigned>(words >> (16 * (s / 4) + 3 * (s % 4))) & 7U;
    to.scale[s] = d * static_cast<float>(2 * level + 1);
  }
}

template <class Block, std::size_t Sub, void (*Unpack)(const Block&, Unpacked&)>
constexpr Kernel kernel(TensorType type) {
  return {type, nullptr, dequantize<Block, Sub, Unpack>};
}

KernelFamily grid_values_family() {
  using enum TensorType;
  static constexpr std::array k_kernels{
      kernel<BlockIQ2XXS, 32, unpack_iq2_xxs>(iq2_xxs),
      kernel<BlockIQ2XS, 16, unpack_iq2_xs>(iq2_xs),
      kernel<BlockIQ2S, 16, unpack_iq2_s>(iq2_s),
      kernel<BlockIQ3XXS, 32, unpack_iq3_xxs>(iq3_xxs),
      kernel<BlockIQ3S, 32, unpack_iq3_s>(iq3_s),
      kernel<BlockIQ1S, 32, unpack_iq1_s>(iq1_s),
      kernel<BlockIQ1M, 16, unpack_iq1_m>(iq1_m),
  };
  return {HWY_TARGET, k_kernels};
}

#endif

} // namespace
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace modeld::quantize {
MODELD_KERNEL_FAMILY(grid_values_kernels, grid_values_family);
} // namespace modeld::quantize
#endif
