// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/block_data.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace modeld::validate {

/// One tensor's scan: chunks of whole blocks through a test, faults counted and cut. Private to
/// this folder.
class TensorScan {
public:
  /// Gets whole blocks and their offset in the tensor.
  using ChunkTest = std::function<void(std::span<const std::byte>, std::uint64_t)>;

  TensorScan(const TensorData& data, Report& report) : data_(data), report_(report) {}

  void run(std::size_t block_bytes, const ChunkTest& test, Progress* progress);
  void fault(std::string_view rule, Severity severity, std::uint64_t block, std::uint64_t offset,
             std::string_view what);
  /// After run: every byte was the same, and that has been reported.
  bool uniform() const { return uniform_; }
  /// Enough was found: more is only counted.
  bool sated() const { return faults_ >= k_max_data_findings; }
  /// One more fault, only for the total.
  void count() { ++faults_; }
  Report& report() { return report_; }

private:
  const TensorData& data_;
  Report& report_;
  std::uint64_t faults_ = 0;
  bool uniform_ = false;
};

} // namespace modeld::validate
