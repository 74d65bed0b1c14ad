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
  alignas(64) float scale[16];         ///< of each sub-block
};

template <std::size_t Sub>
HWY_INLINE void expand(const Unpacked& in, float* out) {
  // A word at most, as it was stored: of two words a processor would wait until both are in memory.
  const hn::CappedTag<float, 8> d;
  const hn::RebindToSigned<decltype(d)> integers;
  const hn::Rebind<std::int8_t, decltype(d)> bytes;
  const auto* level = reinterpret_cast<const std::int8_t*>(in.level);
  for (std::size_t s = 0; s < k_super / Sub; ++s, level += Sub, out += Sub) {
    const auto scale = hn::Set(d, in.scale[s]);
    HWY_UNROLL(4)
    for (std::size_t i = 0; i < Sub; i += hn::Lanes(d)) {
      const auto v = hn::ConvertTo(d, hn::PromoteTo(integers, hn::LoadU(bytes, level + i)));
      hn::StoreU(hn::Mul(v, scale), d, out + i);
    }
  }
}

template <class Block, std::size_t Sub, const PointValues& (*Values)(),
          void (*Unpack)(const PointValues&, const Block&, Unpacked&)>
void dequantize(const std::byte* in, std::uint64_t rows, std::uint64_t row_elements, float* out) {
  const PointValues& values = Values();
  const auto* block = reinterpret_cast<const Block*>(in);
  Unpacked unpacked;
  for (std::uint64_t at = 0; at < rows * row_elements; at += k_super) {
    Unpack(values, *block++, unpacked);
    expand<Sub>(unpacked, out + at);
  }
}

template <class T>
HWY_INLINE T load(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Sixteen nibbles of `bytes` to floats; what there is of them.
template <std::size_t Bytes>
HWY_INLINE void nibbles(const std::array<std::uint8_t, Bytes>& bytes, float* to) {
  const hn::FixedTag<std::uint8_t, 16> d;
  alignas(16) std::uint8_t level[16] = {};
  std::memcpy(level, bytes.data(), Bytes);
  const auto v = hn::Load(d, level);
  hn::Store(hn::InterleaveLower(d, hn::And(v, hn::Set(d, 15)), hn::ShiftRight<4>(v)), d, level);
  for (std::size_t i = 0; i < 16; i += hn::Lanes(k_f)) {
    const IntV wide = hn::PromoteTo(k_i, hn::LoadU(hn::Rebind<std::uint8_t, Ints>(), level + i));
    hn::Store(hn::ConvertTo(k_f, wide), k_f, to + i);
  }
}

/// d * (level + 1/2) / 4, in this order.
HWY_INLINE void iq2_scales(const std::array<std::uint8_t, 8>& bytes, float d, float* scales) {
  nibbles(bytes, scales);
  for (std::size_t i = 0; i < 16; i += hn::Lanes(k_f)) {
    const FloatV middle = hn::Add(set(0.5F), hn::Load(k_f, scales + i));
    hn::Store(hn::Mul(hn::Mul(set(d), middle), set(0.25F)), k_f, scales + i);
  }
}

HWY_INLINE void unpack_iq2_xxs(const PointValues& values, const BlockIQ2XXS& y, Unpacked& to) {
  const float d = y.d.value();
  for (std::size_t s = 0; s < 8; ++s) {
    const auto indices = load<std::uint32_t>(&y.qs[8 * s]);
    const auto signs = load<std::uint32_t>(&y.qs[8 * s + 4]);
    HWY_UNROLL(4)
    for (std::size_t k = 0; k < 4; ++k) {
      to.level[4 * s + k] = with_signs(values[(indices >> (8 * k)) & 255U],
                                       k_even_sign_bytes[(signs >> (7 * k)) & 127U]);
    }
    to.scale[s] = d * (0.5F + static_cast<float>(signs >> 28)) * 0.25F;
  }
}

HWY_INLINE void unpack_iq2_xs(const PointValues& values, const BlockIQ2XS& y, Unpacked& to) {
  iq2_scales(y.scales, y.d.value(), to.scale);
  HWY_UNROLL(4)
  for (std::size_t k = 0; k < 32; ++k) {
    const auto word = load<std::uint16_t>(&y.qs[2 * k]);
    to.level[k] = with_signs(values[word & 511U], k_even_sign_bytes[word >> 9]);
  }
}

HWY_INLINE void unpack_iq2_s(const PointValues& values, const BlockIQ2S& y, Unpacked& to) {
  iq2_scales(y.scales, y.d.value(), to.scale);
  for (std::size_t s = 0; s < 8; ++s) {
    const unsigned high = static_cast<unsigned>(y.qh[s]) << 8;
    HWY_UNROLL(4)
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t index = y.qs[4 * s + k] | ((high >> (2 * k)) & 0x300U);
      to.level[4 * s + k] = with_signs(values[index], k_sign_bytes[y.signs[4 * s + k]]);
    }
  }
}

HWY_INLINE void unpack_iq3_xxs(const PointValues& values, const BlockIQ3XXS& y, Unpacked& to) {
  const float d = y.d.value();
  for (std::size_t s = 0; s < 8; ++s) {
    const auto signs = load<std::uint32_t>(&y.scales_and_signs[4 * s]);
    HWY_UNROLL(4)
    for (std::size_t k = 0; k < 4; ++k) {
      const std::uint8_t* const indices = &y.qs[8 * s + 2 * k];
      to.level[4 * s + k] = with_signs(values[indices[0]] | values[indices[1]] << 32,
                                       k_even_sign_bytes[(signs >> (7 * k)) & 127U]);
    }
    to.scale[s] = d * (0.5F + static_cast<float>(signs >> 28)) * 0.5F;
  }
}

HWY_INLINE void unpack_iq3_s(const PointValues& values, const BlockIQ3S& y, Unpacked& to) {
  nibbles(y.scales, to.scale);
  for (std::size_t i = 0; i < 8; i += hn::Lanes(k_f)) {
    const FloatV level = hn::Load(k_f, to.scale + i);
    const FloatV odd = hn::Add(hn::Add(level, level), set(1.0F));
    hn::Store(hn::Mul(set(y.d.value()), odd), k_f, to.scale + i);
  }
  for (std::size_t s = 0; s < 8; ++s) {
    const unsigned high = static_cast<unsigned>(y.qh[s]) << 8;
    HWY_UNROLL(4)
    for (std::size_t k = 0; k < 4; ++k) {
      const std::uint8_t* const indices = &y.qs[8 * s + 2 * k];
      const std::size_t first = indices[0] | ((high >> (2 * k)) & 0x100U);
      const std::size_t second = indices[1] | ((high >> (2 * k + 1)) & 0x100U);
      to.level[4 * s + k] =
          with_signs(values[first] | values[second] << 32, k_sign_bytes[y.signs[4 * s + k]]);
    }
  }
}

/// What turns 128 + 8 level into eight times a level of IQ1 with its shift: no borrow leaves a
/// byte.
HWY_INLINE std::uint64_t shifted(std::uint64_t bytes, std::uint64_t subtracted) {
  return (bytes - subtracted) ^ 0x8080808080808080U;
}

/// Seven to each byte, or nine.
HWY_INLINE std::uint64_t shift_of(bool minus) {
  return minus ? 0x0909090909090909U : 0x0707070707070707U;
}

HWY_INLINE void unpack_iq1_s(const PointValues& values, const BlockIQ1S& y, Unpacked& to) {
  const float d = y.d.value() * 0.125F;
  for (std::size_t s = 0; s < 8; ++s) {
    const unsigned word = load<std::uint16_t>(&y.qh[2 * s]);
    const std::uint64_t shift = shift_of((word & 0x8000U) != 0);
    HWY_UNROLL(4)
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t index = y.qs[4 * s + k] | ((word >> (3 * k)) & 7U) << 8;
      to.level[4 * s + k] = shifted(values[index], shift);
    }
    to.scale[s] = d * static_cast<float>(2 * ((word >> 12) & 7U) + 1);
  }
}

HWY_INLINE void unpack_iq1_m(const PointValues& values, const BlockIQ1M& y, Unpacked& to) {
  const auto words = load<std::uint64_t>(y.scales.data());
  const std::uint64_t half = (words >> 12 & 0xFU) | (words >> 24 & 0xF0U) | (words >> 36 & 0xF00U) |
                             (words >> 48 & 0xF000U);
  const float d = reference::f16_to_f32(static_cast<std::uint16_t>(half)) * 0.125F;
  for (std::size_t s = 0; s < 16; s += 4) {
    const auto word = static_cast<unsigned>(words >> (4 * s) & 0xFFFFU);
    HWY_UNROLL(4)
    for (std::size_t j = 0; j < 4; ++j) {
      const unsigned high = y.qh[s + j];
      const std::size_t first = y.qs[2 * (s + j)] | (high & 7U) << 8;
      const std::size_t second = y.qs[2 * (s + j) + 1] | (high >> 4 & 7U) << 8;
      to.level[2 * (s + j)] = shifted(values[first], shift_of((high & 0x08U) != 0));
      to.level[2 * (s + j) + 1] = shifted(values[second], shift_of((high & 0x80U) != 0));
      to.scale[s + j] = d * static_cast<float>(2 * ((word >> (3 * j)) & 7U) + 1);
    }
  }
}

template <class Block, std::size_t Sub, const PointValues& (*Values)(),
          void (*Unpack)(const PointValues&, const Block&, Unpacked&)>
constexpr Kernel kernel(TensorType type) {
  return {type, nullptr, dequantize<Block, Sub, Values, Unpack>};
}

KernelFamily grid_values_family() {
  using enum TensorType;
  static constexpr std::array k_kernels{
      kernel<BlockIQ2XXS, 32, PointValues::iq2_xxs, unpack_iq2_xxs>(iq2_xxs),
      kernel<BlockIQ2XS, 16, PointValues::iq2_xs, unpack_iq2_xs>(iq2_xs),
      kernel<BlockIQ2S, 16, PointValues::iq2_s, unpack_iq2_s>(iq2_s),
      kernel<BlockIQ3XXS, 32, PointValues::iq3_xxs, unpack_iq3_xxs>(iq3_xxs),
      kernel<BlockIQ3S, 32, PointValues::iq3_s, unpack_iq3_s>(iq3_s),
      kernel<BlockIQ1S, 32, PointValues::iq1, unpack_iq1_s>(iq1_s),
      kernel<BlockIQ1M, 16, PointValues::iq1, unpack_iq1_m>(iq1_m),
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
