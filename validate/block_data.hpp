// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/progress.hpp"
#include "schema/tensor_type.hpp"
#include "validate/finding.hpp"
#include "validate/gguf.hpp"
#include "validate/safetensors.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// What tensor data itself must hold: scales and values that are numbers. Rules BD-01 to BD-11
// (validation.md 3). Everything is a test of bits: isnan means nothing to a compiler with fast
// math.

namespace modeld::validate {

/// Findings about one tensor stop here (BD-11).
inline constexpr std::size_t k_max_data_findings = 16;

/// One tensor's bytes and where they are.
struct TensorData {
  std::string_view name;
  std::span<const std::byte> bytes;
  std::uint64_t file_offset = 0;
  bool matrix = false; ///< of two or more dimensions: zero biases are usual, zero matrices are not
  std::uint64_t slice_bytes = 0; ///< of one expert in a stack of them; 0: no stack
};

TensorData gguf_tensor_data(std::span<const std::byte> file, const GgufHeader& header,
                            const GgufTensorInfo& tensor);
TensorData safetensors_tensor_data(std::span<const std::byte> file, const SafetensorsHeader& header,
                                   const SafetensorsTensor& tensor);

/// Scans at the speed of memory, in chunks of at most 16 MiB; counts bytes in progress->done and
/// stops early where progress->cancel is set. Thread-safe for different reports.
void scan_gguf_tensor(const TensorData& data, TensorType type, bool big_endian, Report& report,
                      Progress* progress = nullptr);
void scan_safetensors_tensor(const TensorData& data, SafetensorsDtype dtype, Report& report,
                             Progress* progress = nullptr);

/// All tensors of a whole mapped file whose structure was accepted, in their order.
void scan_gguf_data(std::span<const std::byte> file, const GgufHeader& header, Report& report,
                    Progress* progress = nullptr);
void scan_safetensors_data(std::span<const std::byte> file, const SafetensorsHeader& header,
                           Report& report, Progress* progress = nullptr);

} // namespace modeld::validate
