// SPDX-License-Identifier: Apache-2.0
#include "quantize/kernels/target.hpp"

#include "quantize/kernels/table.hpp"

#include <hwy/targets.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

namespace modeld::quantize {
namespace {

struct TargetRow {
  KernelTarget target;
  std::string_view name;
  std::int64_t bit; ///< Highway's
};

// Best first.
constexpr std::array k_targets{
    TargetRow{KernelTarget::avx512, "avx512", HWY_AVX3},
    TargetRow{KernelTarget::avx2, "avx2", HWY_AVX2},
    TargetRow{KernelTarget::sve, "sve", HWY_SVE},
    TargetRow{KernelTarget::neon, "neon", HWY_NEON},
    TargetRow{KernelTarget::scalar, "scalar", 0},
};

const TargetRow& row(KernelTarget target) {
  return *std::find_if(k_targets.begin(), k_targets.end(),
                       [target](const TargetRow& r) { return r.target == target; });
}

// In the program (the compiler made it) and on this processor.
bool is_available(const TargetRow& candidate) {
  if (candidate.target == KernelTarget::scalar) return true;
  if ((hwy::SupportedTargets() & candidate.bit) == 0) return false;
  return kernel_families().front()(candidate.bit).compiled_for == candidate.bit;
}

std::vector<KernelTarget> find_available() {
  std::vector<KernelTarget> found;
  for (const TargetRow& candidate : k_targets) {
    if (is_available(candidate)) found.push_back(candidate.target);
  }
  return found;
}

constexpr std::uint32_t k_type_ids = 64; // above the highest id of TensorType
using CodecTable = std::array<RowCodec, k_type_ids>;

CodecTable make_table(KernelTarget target) {
  CodecTable table;
  for (const TensorTypeInfo& type : all_tensor_types()) {
    table.at(static_cast<std::uint32_t>(type.type)) = scalar_codec(type.type);
  }
  if (target == KernelTarget::scalar) return table;
  for (const FindFamily find : kernel_families()) {
    for (const Kernel& kernel : find(target_bit(target)).kernels) {
      RowCodec& entry = table.at(static_cast<std::uint32_t>(kernel.type));
      if (kernel.quantize != nullptr) entry.quantize = kernel.quantize;
      if (kernel.dequantize != nullptr) entry.dequantize = kernel.dequantize;
    }
  }
  return table;
}

} // namespace

std::span<const FindFamily> kernel_families() {
  static constexpr std::array k_families{
      block_values_kernels, few_bits_kernels, few_bits_values_kernels,
      float_kernels,        grid_kernels,     grid_values_kernels,
      iq1_kernels,          iq4_kernels,      legacy_kernels,
      min_scale_kernels,    q3_k_kernels,     q6_k_kernels,
      super_values_kernels};
  return k_families;
}

std::int64_t target_bit(KernelTarget target) {
  return row(target).bit;
}

std::string_view kernel_name(KernelTarget target) {
  return row(target).name;
}

std::span<const KernelTarget> available_kernels() {
  static const std::vector<KernelTarget> found = find_available();
  return found;
}

Result<KernelTarget> choose_kernel(std::string_view forced) {
  const auto available = available_kernels();
  if (forced.empty()) return available.front();
  std::string names;
  for (const KernelTarget target : available) {
    if (kernel_name(target) == forced) return target;
    names += (names.empty() ? "" : ", ") + std::string(kernel_name(target));
  }
  return fail(Errc::invalid_argument,
              "choosing the kernel '" + std::string(forced) + "': not one of " + names +
                  ", which this program has and this processor runs",
              "unset MODELD_KERNEL, or set it to a kernel that this processor runs");
}

const Result<KernelTarget>& kernel_in_use() {
  static const Result<KernelTarget> chosen = [] {
    const char* forced = std::getenv("MODELD_KERNEL");
    return choose_kernel(forced == nullptr ? "" : forced);
  }();
  return chosen;
}

const RowCodec& codec_for(KernelTarget target, TensorType type) {
  static const std::array<CodecTable, k_targets.size()> tables = [] {
    std::array<CodecTable, k_targets.size()> made;
    for (const KernelTarget available : available_kernels()) {
      made.at(static_cast<std::size_t>(available)) = make_table(available);
    }
    return made;
  }();
  return tables.at(static_cast<std::size_t>(target)).at(static_cast<std::uint32_t>(type));
}

} // namespace modeld::quantize
