// SPDX-License-Identifier: Apache-2.0
// Tests first whether a chunk has any fault at all, and looks for the place only where it has.
#include "validate/block_scales.hpp"
#include "validate/data_bits.hpp"
#include "validate/escape.hpp"
#include "validate/tensor_scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace modeld::validate {
namespace {

/// The exponent of the largest double that a float still holds.
constexpr std::uint64_t k_double_of_flt_max = 0x47EFFFFFE0000000ULL;

using T = TensorType;

/// Of the official converter's byte swapping; the rest of a big-endian file cannot be judged.
constexpr std::array k_swappable{T::f32,  T::f16,  T::bf16,  T::q1_0,  T::q4_0, T::q8_0,
                                 T::q4_k, T::q6_k, T::tq2_0, T::mxfp4, T::nvfp4};

std::string describe_half(std::string_view field, std::uint16_t bits) {
  return fmt::format("{} is {} (0x{:04X})", field, (bits & 0x3FF) == 0 ? "infinite" : "NaN", bits);
}

class GgufScan {
public:
  GgufScan(const TensorData& data, TensorType type, bool big_endian, Report& report)
      : data_(data), type_(type), block_(info(type).bytes), big_endian_(big_endian),
        scan_(data, report) {}

  void run(Progress* progress);

private:
  using Bytes = std::span<const std::byte>;

  std::uint16_t half(const std::byte* at) const {
    const auto bits = load_le<std::uint16_t>(at);
    return big_endian_ ? byte_swapped(bits) : bits;
  }
  template <class Value>
  Value ordered(Value mask) const { // the mask as it stands in memory
    return big_endian_ != (std::endian::native == std::endian::big) ? byte_swapped(mask) : mask;
  }
  void bad(std::uint64_t offset, std::string_view what) {
    scan_.fault("BD-01", Severity::error, offset / block_, offset, what);
  }

  template <class Value>
  void values(Bytes chunk, std::uint64_t at, Value ones);
  void doubles(Bytes chunk, std::uint64_t at);
  void halves(Bytes chunk, std::uint64_t at, const HalfFields& fields);
  void q8_k(Bytes chunk, std::uint64_t at);
  void iq1_m(Bytes chunk, std::uint64_t at);
  void mxfp4(Bytes chunk, std::uint64_t at);
  void nvfp4(Bytes chunk, std::uint64_t at);
  void ternary_codes(Bytes chunk, std::uint64_t at, std::size_t from, std::size_t count);
  TensorScan::ChunkTest test();

  const TensorData& data_;
  TensorType type_;
  std::size_t block_;
  bool big_endian_;
  TensorScan scan_;
  bool has_scales_ = false;
  std::uint32_t scale_bits_ = 0; ///< of all scales, without sign
  bool code_three_ = false;
};

template <class Value>
void GgufScan::values(Bytes chunk, std::uint64_t at, Value ones) {
  if (!any_all_ones<Value>(chunk, ordered(ones))) return;
  for (std::size_t i = 0; i < chunk.size(); i += sizeof(Value)) {
    Value bits = load_le<Value>(chunk.data() + i);
    if (big_endian_) bits = byte_swapped(bits);
    if ((bits & ones) != ones) continue;
    if (scan_.sated()) {
      scan_.count();
      continue;
    }
    const bool infinite = static_cast<Value>(bits << 1) == static_cast<Value>(ones << 1);
    scan_.fault("BD-02", Severity::error, (at + i) / sizeof(Value), at + i,
                infinite ? "the value is infinite" : "the value is NaN");
  }
}

void GgufScan::doubles(Bytes chunk, std::uint64_t at) {
  values<std::uint64_t>(chunk, at, k_double_ones);
  for (std::size_t i = 0; i < chunk.size() && !scan_.sated(); i += 8) {
    std::uint64_t bits = load_le<std::uint64_t>(chunk.data() + i);
    if (big_endian_) bits = byte_swapped(bits);
    bits &= ~(std::uint64_t{1} << 63);
    if (bits > k_double_of_flt_max && bits < k_double_ones)
      scan_.fault("BD-03", Severity::warning, (at + i) / 8, at + i,
                  "the value is larger than any float");
  }
}

void GgufScan::halves(Bytes chunk, std::uint64_t at, const HalfFields& fields) {
  bool any = false;
  for (std::size_t f = 0; f < fields.count; ++f) {
    std::uint32_t bits_of_all = 0;
    const std::byte* field = chunk.data() + fields.fields[f].offset;
    for (std::size_t i = 0; i < chunk.size(); i += block_) {
      const std::uint16_t bits = half(field + i);
      any |= is_bad_half(bits);
      bits_of_all |= bits & 0x7FFFU;
    }
    scale_bits_ |= bits_of_all;
  }
  has_scales_ = true;
  if (type_ == T::tq2_0) ternary_codes(chunk, at, 0, 64);
  if (type_ == T::q2_0) ternary_codes(chunk, at, 2, 16);
  if (!any) return;
  for (std::size_t i = 0; i < chunk.size(); i += block_) {
    for (std::size_t f = 0; f < fields.count; ++f) {
      const HalfField& field = fields.fields[f];
      const std::uint16_t bits = half(chunk.data() + i + field.offset);
      if (!is_bad_half(bits)) continue;
      if (scan_.sated()) {
        scan_.count();
        continue;
      }
      scan_.fault("BD-01", Severity::error, (at + i) / block_, at + i + field.offset,
                  describe_half(field.name, bits));
    }
  }
}

void GgufScan::q8_k(Bytes chunk, std::uint64_t at) {
  for (std::size_t i = 0; i < chunk.size(); i += block_) {
    std::uint32_t bits = load_le<std::uint32_t>(chunk.data() + i);
    if (big_endian_) bits = byte_swapped(bits);
    if ((bits & k_float_ones) == k_float_ones) bad(at + i, "d is not a finite number");
  }
}

void GgufScan::iq1_m(Bytes chunk, std::uint64_t at) {
  has_scales_ = true;
  for (std::size_t i = 0; i < chunk.size(); i += block_) {
    const std::uint16_t bits = iq1_m_scale(chunk.data() + i);
    scale_bits_ |= bits & 0x7FFFU;
    if (is_bad_half(bits)) bad(at + i, describe_half("the scale", bits));
  }
}

void GgufScan::mxfp4(Bytes chunk, std::uint64_t at) {
  for (std::size_t i = 0; i < chunk.size(); i += block_)
    if (chunk[i] == std::byte{0xFF}) bad(at + i, "the exponent e is 0xFF, which is NaN");
}

void GgufScan::nvfp4(Bytes chunk, std::uint64_t at) {
  for (std::size_t i = 0; i < chunk.size(); i += block_) {
    for (std::size_t j = 0; j < 4; ++j) {
      const auto scale = std::to_integer<unsigned>(chunk[i + j]);
      if (scale < 0x7F) continue;
      scan_.fault(
          "BD-06", Severity::warning, (at + i) / block_, at + i + j,
          fmt::format("scale {} is 0x{:02X}, decoders take 0x7F for 0 and ignore bit 7", j, scale));
    }
  }
}

void GgufScan::ternary_codes(Bytes chunk, std::uint64_t at, std::size_t from, std::size_t count) {
  if (code_three_) return;
  for (std::size_t i = 0; i < chunk.size(); i += block_) {
    std::uint64_t both = 0; // a code is 3 where both of its bits are set
    for (std::size_t j = 0; j < count; j += 8) {
      const auto codes = load_le<std::uint64_t>(chunk.data() + i + from + j);
      both |= codes & codes >> 1 & 0x5555555555555555ULL;
    }
    if (both == 0) continue;
    code_three_ = true;
    scan_.report().note(
        "BD-07", data_.file_offset + at + i,
        fmt::format("tensor {} holds the code 3, which no encoder writes", quoted(data_.name)));
    return;
  }
}

TensorScan::ChunkTest GgufScan::test() {
  if (const HalfFields* fields = half_fields(type_))
    return [this, fields](Bytes chunk, std::uint64_t at) { halves(chunk, at, *fields); };
  switch (type_) {
  case T::f32:
    return [this](Bytes c, std::uint64_t at) { values<std::uint32_t>(c, at, k_float_ones); };
  case T::f16:
    return [this](Bytes c, std::uint64_t at) { values<std::uint16_t>(c, at, k_half_ones); };
  case T::bf16:
    return [this](Bytes c, std::uint64_t at) { values<std::uint16_t>(c, at, k_bf16_ones); };
  case T::f64:
    return [this](Bytes c, std::uint64_t at) { doubles(c, at); };
  case T::q8_k:
    return [this](Bytes c, std::uint64_t at) { q8_k(c, at); };
  case T::iq1_m:
    return [this](Bytes c, std::uint64_t at) { iq1_m(c, at); };
  case T::mxfp4:
    return [this](Bytes c, std::uint64_t at) { mxfp4(c, at); };
  case T::nvfp4:
    return [this](Bytes c, std::uint64_t at) { nvfp4(c, at); };
  default:
    return [](Bytes, std::uint64_t) {}; // integers: every value is good
  }
}

void GgufScan::run(Progress* progress) {
  const bool integer = type_ >= T::i8 && type_ <= T::i64;
  if (big_endian_ && !integer && type_ != T::f64 &&
      std::find(k_swappable.begin(), k_swappable.end(), type_) == k_swappable.end()) {
    scan_.report().warn(
        "BD-05", data_.file_offset,
        fmt::format("tensor {} of type {} lies in a big-endian file, its byte order "
                    "cannot be verified",
                    quoted(data_.name), info(type_).name));
    if (progress != nullptr) progress->done += data_.bytes.size();
    return;
  }
  scan_.run(block_, test(), progress);
  if (has_scales_ && scale_bits_ == 0 && !scan_.uniform() && data_.matrix) {
    scan_.report().warn(
        "BD-09", data_.file_offset,
        fmt::format("every scale of tensor {} is zero: placeholder weights?", quoted(data_.name)));
  }
}

} // namespace

void scan_gguf_tensor(const TensorData& data, TensorType type, bool big_endian, Report& report,
                      Progress* progress) {
  GgufScan(data, type, big_endian, report).run(progress);
}

} // namespace modeld::validate
