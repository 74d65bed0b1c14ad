// SPDX-License-Identifier: Apache-2.0
#include "validate/block_data.hpp"

#include "validate/data_bits.hpp"
#include "validate/escape.hpp"
#include "validate/tensor_scan.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace modeld::validate {

void TensorScan::fault(std::string_view rule, Severity severity, std::uint64_t block,
                       std::uint64_t offset, std::string_view what) {
  ++faults_;
  if (faults_ > k_max_data_findings) return;
  const std::string slice =
      data_.slice_bytes == 0 ? "" : fmt::format(" (expert {})", offset / data_.slice_bytes);
  report_.add(rule, severity, data_.file_offset + offset,
              fmt::format("tensor {}, block {}{}: {}", quoted(data_.name), block, slice, what));
}

void TensorScan::run(std::size_t block_bytes, const ChunkTest& test, Progress* progress) {
  constexpr std::size_t k_chunk = std::size_t{16} << 20;
  const std::size_t step = std::max(block_bytes, k_chunk / block_bytes * block_bytes);
  bool uniform = !data_.bytes.empty();
  for (std::size_t at = 0; at < data_.bytes.size(); at += step) {
    if (progress != nullptr && progress->cancel) return;
    const auto chunk = data_.bytes.subspan(at, std::min(step, data_.bytes.size() - at));
    test(chunk, at);
    uniform = uniform && all_equal(chunk, data_.bytes[0]);
    if (progress != nullptr) progress->done += chunk.size();
  }
  if (faults_ > k_max_data_findings) {
    report_.note("BD-11", std::nullopt,
                 fmt::format("tensor {} has {} faults in all, the first {} are listed",
                             quoted(data_.name), faults_, k_max_data_findings));
  }
  if (uniform && data_.matrix && data_.bytes.size() > 1) {
    report_.warn("BD-09", data_.file_offset,
                 fmt::format("every byte of tensor {} is 0x{:02X}: placeholder weights?",
                             quoted(data_.name), std::to_integer<unsigned>(data_.bytes[0])));
    uniform_ = true;
  }
}

TensorData gguf_tensor_data(std::span<const std::byte> file, const GgufHeader& header,
                            const GgufTensorInfo& tensor) {
  return {tensor.name, header.data(file, tensor), header.data_start + tensor.offset,
          tensor.rows() > 1, tensor.ne[2] > 1 ? tensor.bytes / (tensor.ne[2] * tensor.ne[3]) : 0};
}

TensorData safetensors_tensor_data(std::span<const std::byte> file, const SafetensorsHeader& header,
                                   const SafetensorsTensor& tensor) {
  return {tensor.name, header.data(file, tensor), header.data_start + tensor.begin,
          tensor.shape.size() > 1, 0};
}

void scan_gguf_data(std::span<const std::byte> file, const GgufHeader& header, Report& report,
                    Progress* progress) {
  for (const GgufTensorInfo& tensor : header.tensors)
    scan_gguf_tensor(gguf_tensor_data(file, header, tensor), tensor.type,
                     header.encoding.big_endian, report, progress);
}

void scan_safetensors_data(std::span<const std::byte> file, const SafetensorsHeader& header,
                           Report& report, Progress* progress) {
  for (const SafetensorsTensor& tensor : header.tensors)
    scan_safetensors_tensor(safetensors_tensor_data(file, header, tensor), tensor.dtype, report,
                            progress);
}

} // namespace modeld::validate
