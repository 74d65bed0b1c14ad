// SPDX-License-Identifier: Apache-2.0
// Values of safetensors: the format allows every pattern, so these are warnings (BD-02, BD-03,
// BD-08).
#include "validate/data_bits.hpp"
#include "validate/tensor_scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace modeld::validate {
namespace {

using Bytes = std::span<const std::byte>;
using D = SafetensorsDtype;

constexpr std::uint64_t k_double_of_flt_max = 0x47EFFFFFE0000000ULL;

template <class Value>
TensorScan::ChunkTest float_test(TensorScan& scan, Value ones) {
  return [&scan, ones](Bytes chunk, std::uint64_t at) {
    Value mask = ones;
    if constexpr (std::endian::native == std::endian::big) mask = byte_swapped(mask);
    if (!any_all_ones<Value>(chunk, mask)) return;
    for (std::size_t i = 0; i < chunk.size(); i += sizeof(Value)) {
      const Value bits = load_le<Value>(chunk.data() + i);
      if ((bits & ones) != ones) continue;
      if (scan.sated()) {
        scan.count();
        continue;
      }
      const bool infinite = static_cast<Value>(bits << 1) == static_cast<Value>(ones << 1);
      scan.fault("BD-02", Severity::warning, (at + i) / sizeof(Value), at + i,
                 infinite ? "the value is infinite" : "the value is NaN");
    }
  };
}

TensorScan::ChunkTest double_test(TensorScan& scan) {
  constexpr std::uint64_t k_ones = 0x7FF0000000000000ULL;
  const auto finite = float_test<std::uint64_t>(scan, k_ones);
  return [&scan, finite](Bytes chunk, std::uint64_t at) {
    finite(chunk, at);
    for (std::size_t i = 0; i < chunk.size() && !scan.sated(); i += 8) {
      const std::uint64_t bits =
          load_le<std::uint64_t>(chunk.data() + i) & ~(std::uint64_t{1} << 63);
      if (bits > k_double_of_flt_max && bits < k_ones)
        scan.fault("BD-03", Severity::warning, (at + i) / 8, at + i,
                   "the value is larger than any float");
    }
  };
}

using ByteSet = std::array<bool, 256>;

/// The bytes that are no value of a one-byte type.
ByteSet odd_bytes(SafetensorsDtype dtype) {
  ByteSet odd{};
  for (unsigned byte = 0; byte < odd.size(); ++byte) {
    switch (dtype) {
    case D::boolean:
      odd[byte] = byte > 1;
      break;
    case D::f8_e8m0:
      odd[byte] = byte == 0xFF;
      break;
    case D::f8_e4m3:
      odd[byte] = (byte & 0x7F) == 0x7F;
      break;
    case D::f8_e5m2:
      odd[byte] = (byte & 0x7C) == 0x7C;
      break;
    case D::f8_e4m3fnuz:
    case D::f8_e5m2fnuz:
      odd[byte] = byte == 0x80;
      break;
    default:
      break;
    }
  }
  return odd;
}

TensorScan::ChunkTest byte_test(TensorScan& scan, SafetensorsDtype dtype) {
  return [&scan, odd = odd_bytes(dtype), dtype](Bytes chunk, std::uint64_t at) {
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      const auto byte = std::to_integer<unsigned>(chunk[i]);
      if (!odd[byte]) continue;
      if (scan.sated()) {
        scan.count();
        continue;
      }
      scan.fault("BD-08", Severity::warning, at + i, at + i,
                 dtype == D::boolean ? fmt::format("the boolean is {}, allowed are 0 and 1", byte)
                                     : fmt::format("the {} value 0x{:02X} is no finite number",
                                                   info(dtype).name, byte));
    }
  };
}

} // namespace

void scan_safetensors_tensor(const TensorData& data, SafetensorsDtype dtype, Report& report,
                             Progress* progress) {
  TensorScan scan(data, report);
  TensorScan::ChunkTest test = [](Bytes, std::uint64_t) {};
  switch (dtype) {
  case D::f32:
  case D::c64:
    test = float_test<std::uint32_t>(scan, 0x7F800000U);
    break;
  case D::f16:
    test = float_test<std::uint16_t>(scan, 0x7C00U);
    break;
  case D::bf16:
    test = float_test<std::uint16_t>(scan, 0x7F80U);
    break;
  case D::f64:
    test = double_test(scan);
    break;
  case D::boolean:
  case D::f8_e8m0:
  case D::f8_e4m3:
  case D::f8_e5m2:
  case D::f8_e4m3fnuz:
  case D::f8_e5m2fnuz:
    test = byte_test(scan, dtype);
    break;
  default:
    break;
  }
  scan.run(std::max<std::size_t>(1, info(dtype).bits / 8), test, progress);
}

} // namespace modeld::validate
