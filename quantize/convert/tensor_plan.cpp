// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/tensor_plan.hpp"

#include "quantize/convert/low_rank.hpp"
#include "quantize/convert/transform_view.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace modeld::quantize {
namespace {

/// As the reference counts: experts once for each tensor that stacks them.
void count_parameters(TensorPlan& plan) {
  std::uint64_t expert_sum = 0;
  std::uint64_t expert_tensors = 0;
  ParameterCount& count = plan.parameters;
  std::uint64_t columns = 0; // of the factor A that came last
  for (const GgufTensor& tensor : plan.tensors) {
    if (tensor.name.ends_with(".lora_a")) {
      columns = tensor.ne[0];
      continue;
    }
    std::uint64_t size = 1;
    for (const std::uint64_t n : tensor.ne) {
      size *= n;
    }
    if (tensor.name.ends_with(".lora_b")) size = size / tensor.ne[0] * columns;
    count.total += static_cast<std::int64_t>(size);
    const bool experts = tensor.name.find("_exps.") != std::string::npos && tensor.ne.size() >= 3;
    if (!experts) {
      count.shared += static_cast<std::int64_t>(size);
      continue;
    }
    const bool bias = tensor.name.find(".bias") != std::string::npos;
    const std::uint64_t number = tensor.ne[bias ? 1 : 2];
    count.expert += static_cast<std::int64_t>(number == 0 ? 0 : size / number);
    expert_sum += number;
    ++expert_tensors;
  }
  count.expert_count = expert_tensors == 0 ? 0 : expert_sum / expert_tensors;
  if (columns != 0) count.total = -count.total;
}

} // namespace

SourcePtr TensorPlanner::find(const std::string& name) const {
  const auto at = sources_.find(name);
  return at == sources_.end() ? nullptr : at->second;
}

TensorPlan TensorPlanner::finish() && {
  count_parameters(plan_);
  return std::move(plan_);
}

Result<void> TensorPlanner::add(std::string name, SourcePtr tensor, const std::string& wanted) {
  MODELD_ASSIGN(const bool waits, fused(name, tensor, wanted));
  if (waits) return {};
  if (options_.adapter) return add_change(std::move(name), tensor);
  return add_plain(std::move(name), std::move(tensor), wanted);
}

Result<void> TensorPlanner::add_plain(std::string name, SourcePtr tensor,
                                      const std::string& wanted) {
  if (!names_.insert(name).second) {
    return fail(Errc::conflict, fmt::format("converting: two source tensors become '{}'", name));
  }
  TensorType type = choose_type(name, tensor->shape(), wanted, file_type_);
  const bool norm = tensor->shape().size() <= 1 || name.ends_with("_norm.weight");
  if (options_.fp8_as_q8 && was_fp8_ && !norm) type = fitting(TensorType::q8_0, tensor->shape());
  sources_.emplace(name, tensor);
  MODELD_ASSIGN(GgufTensor out,
                encode_tensor(std::move(name), std::move(tensor), type, options_.overflow));
  plan_.tensors.push_back(std::move(out));
  plan_.origins.push_back(origin_);
  return {};
}

/// What an adapter does to a tensor: two factors, or a norm as it is.
Result<void> TensorPlanner::add_change(std::string name, const SourcePtr& tensor) {
  const LowRank* pair = as_low_rank(*tensor);
  if (pair == nullptr) {
    if (name.find("_norm") == std::string::npos || tensor->shape().size() != 1) {
      return fail(Errc::unsupported,
                  fmt::format("converting '{}': an adapter may hold whole norms, and low-rank "
                              "changes of everything else",
                              name));
    }
    return add_plain(std::move(name), tensor, "");
  }
  SourcePtr a = pair->a();
  // Runtimes look rows of it up.
  if (name.find("token_embd.weight") != std::string::npos) {
    MODELD_ASSIGN(a, transpose(a, -1, -2));
  }
  MODELD_TRY(add_plain(name + ".lora_a", std::move(a), ""));
  return add_plain(name + ".lora_b", pair->b(), "");
}

/// Gate and up experts of a block wait for each other, and become one tensor.
Result<bool> TensorPlanner::fused(const std::string& name, const SourcePtr& tensor,
                                  const std::string& wanted) {
  constexpr std::string_view k_gate = ".ffn_gate_exps.weight";
  constexpr std::string_view k_up = ".ffn_up_exps.weight";
  const bool gate = name.ends_with(k_gate);
  const bool experts = gate || name.ends_with(k_up);
  if (!options_.fuse_gate_up || !experts || tensor->packed()) return false;
  if (family_.knows("separate_gate_up_exps")) return false;
  if (!family_.knows("fuse_gate_up_exps")) {
    return fail(Errc::unsupported,
                fmt::format("converting '{}': a '{}' file has no tensor for fused gate and up "
                            "experts",
                            name, family_.arch),
                "leave --fuse-gate-up-exps out");
  }
  const std::string block = name.substr(0, name.size() - (gate ? k_gate : k_up).size());
  auto& [first, second] = gate_up_[block];
  (gate ? first : second) = tensor;
  if (first == nullptr || second == nullptr) {
    waiting_[block] = origin_.sources;
    return true;
  }
  const std::vector<std::string>& earlier = waiting_[block];
  origin_.sources.insert(origin_.sources.begin(), earlier.begin(), earlier.end());
  const std::array parts{std::exchange(first, nullptr), std::exchange(second, nullptr)};
  MODELD_ASSIGN(SourcePtr joined, concat(parts, 1));
  MODELD_TRY(add(block + ".ffn_gate_up_exps.weight", std::move(joined), wanted));
  return true;
}

} // namespace modeld::quantize
