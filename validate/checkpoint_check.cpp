// SPDX-License-Identifier: Apache-2.0
// A checkpoint against its configuration by the rules of its family: RC-20 to RC-22, RC-26, RC-29.
#include "validate/checkpoint_plan.hpp"
#include "validate/escape.hpp"
#include "validate/model_tensors.hpp"
#include "validate/repository.hpp"
#include "validate/repository_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace modeld::validate {
namespace {

/// The rule that a tensor's shape falls under.
std::string_view rule_of(std::string_view output) {
  const std::string name = LocalName::of(output).name;
  const auto starts = [&name](std::string_view with) { return name.starts_with(with); };
  if (starts("attn_q.") || starts("attn_q_") || starts("attn_qkv")) return "RC-20";
  if (starts("attn_k") || starts("attn_v")) return "RC-21";
  if (name.find("_exps") != std::string::npos || starts("ffn_gate_inp") || starts("exp_probs"))
    return "RC-26";
  return "RC-22";
}

class PlanCheck {
public:
  PlanCheck(const CheckpointPlan& plan, const GgufHeader& header, Report& report)
      : plan_(plan), model_(header), report_(report) {
    for (std::size_t i = 0; i < header.tensors.size() && i < plan.sources.size(); ++i)
      sources_.emplace(header.tensors[i].name, &plan.sources[i]);
  }

  /// By the table of architectures.
  void compare() {
    const auto table = ModelTensors::of(model_.architecture());
    if (!table) return;
    // Where the rules do not take all tensors, what seems to be missing may be one of those.
    if (!is_partial(plan_))
      for (const std::string& name : find_lacking(model_, *table))
        report_lacking(name);
    for (const TensorMisfit& misfit : find_misfits(model_, *table))
      report_misfit(misfit);
  }

  void report_faults() {
    for (const CheckpointPlan::Fault& fault : plan_.faults) {
      if (report_.full()) return;
      switch (fault.kind) {
      case CheckpointPlan::Fault::Kind::unknown:
        report_.note("RC-29", std::nullopt,
                     fmt::format("tensor {} is none that models of the family {} have",
                                 quoted(fault.tensor), plan_.family));
        break;
      case CheckpointPlan::Fault::Kind::unable:
        break;
      case CheckpointPlan::Fault::Kind::missing:
        report_.error("RC-26", std::nullopt,
                      fmt::format("tensor {} is missing, the others that it belongs to are there",
                                  quoted(fault.tensor)),
                      "a shard is missing or incomplete; pull the repository again");
        break;
      case CheckpointPlan::Fault::Kind::packed:
        report_.error("RC-30", std::nullopt, escape_text(fault.message),
                      "a shard is missing or incomplete; pull the repository again");
        break;
      case CheckpointPlan::Fault::Kind::misfit:
        report_.error(rule_of_source(fault.tensor), std::nullopt,
                      fmt::format("{} does not fit the configuration: {}", quoted(fault.tensor),
                                  escape_text(fault.message)));
        misfits_.push_back(fault.tensor);
        break;
      }
    }
  }

private:
  /// By the part of the name that is alike in all families.
  static std::string_view rule_of_source(std::string_view name) {
    const auto has = [name](std::string_view part) {
      return name.find(part) != std::string_view::npos;
    };
    if (has("expert")) return "RC-26";
    if (has("q_proj") || has("q_b_proj") || has("qkv") || has("query") || has("c_attn") ||
        has(".wq") || has("q_norm"))
      return "RC-20";
    if (has("k_proj") || has("v_proj") || has("kv_") || has(".wk") || has(".wv") || has("k_norm"))
      return "RC-21";
    return "RC-22";
  }

  /// The checkpoint's name for an output that is not there, by that of another block.
  std::string source_name(std::string_view output) const {
    const LocalName wanted = LocalName::of(output);
    if (!wanted.block) return {};
    for (const auto& [name, sources] : sources_) {
      const LocalName other = LocalName::of(name);
      if (!other.block || other.name != wanted.name || sources->size() != 1) continue;
      const std::string from = "." + std::to_string(*other.block) + ".";
      std::string text = sources->front();
      const std::size_t at = text.find(from);
      if (at == std::string::npos || text.find(from, at + 1) != std::string::npos) continue;
      return text.replace(at, from.size(), "." + std::to_string(*wanted.block) + ".");
    }
    return {};
  }

  void report_lacking(const std::string& name) {
    if (report_.full() || misfit_stands_for(name)) return;
    const std::string stored = source_name(name);
    report_.error(
        "RC-29", std::nullopt,
        fmt::format("tensor {} is missing, models of the family {} have it",
                    stored.empty() ? fmt::format("'{}' (its name in GGUF)", name) : quoted(stored),
                    plan_.family),
        "a shard is missing or incomplete; pull the repository again");
  }

  /// What did not fit came to no output.
  bool misfit_stands_for(const std::string& name) const {
    const bool experts =
        std::any_of(plan_.faults.begin(), plan_.faults.end(), [](const auto& fault) {
          return fault.kind == CheckpointPlan::Fault::Kind::missing;
        });
    if (experts && name.find("_exps.") != std::string::npos) return true;
    const std::string stored = source_name(name);
    return std::find(misfits_.begin(), misfits_.end(), stored) != misfits_.end() ||
           (stored.empty() && !misfits_.empty());
  }

  void report_misfit(const TensorMisfit& misfit) {
    // The embedding is compared by RC-10 to RC-12, the output with it by RC-13.
    const std::string_view name = misfit.tensor->name;
    if (report_.full() || name == "token_embd.weight" || name == "output.weight") return;
    std::vector<std::optional<std::uint64_t>> shape(misfit.tensor->ne.begin(),
                                                    misfit.tensor->ne.end());
    shape.resize(std::max<std::size_t>(misfit.tensor->n_dims, misfit.expected.size()), 1);
    std::vector<std::optional<std::uint64_t>> expected = misfit.expected;
    expected.resize(shape.size(), 1);
    std::reverse(shape.begin(), shape.end());
    std::reverse(expected.begin(), expected.end());
    report_.error(rule_of(name), std::nullopt,
                  fmt::format("{} is {}, the configuration makes it {} (by {})", said(name),
                              shape_text(shape), shape_text(expected), misfit.because));
  }

  /// "'model.layers.0.mlp.up_proj.weight'", or the output and what it is made of.
  std::string said(std::string_view output) const {
    const auto at = sources_.find(output);
    if (at == sources_.end() || at->second->empty()) return quoted(output);
    const std::vector<std::string>& sources = *at->second;
    if (sources.size() == 1) return quoted(sources.front());
    return fmt::format("{} and {} more, together", quoted(sources.front()), sources.size() - 1);
  }

  const CheckpointPlan& plan_;
  GgufModelView model_;
  Report& report_;
  std::map<std::string_view, const std::vector<std::string>*> sources_;
  std::vector<std::string> misfits_; ///< names in the checkpoint
};

} // namespace

bool is_partial(const CheckpointPlan& plan) {
  return std::any_of(plan.faults.begin(), plan.faults.end(), [](const CheckpointPlan::Fault& one) {
    return one.kind == CheckpointPlan::Fault::Kind::unknown ||
           one.kind == CheckpointPlan::Fault::Kind::unable;
  });
}

bool plan_lacks_output(const CheckpointPlan& plan) {
  constexpr std::string_view k_output = "output.weight";
  const auto header = check_gguf(plan.header, plan.size, "", Profile::compat);
  if (!header.accepted() || is_partial(plan)) return false;
  const auto table = ModelTensors::of(GgufModelView(*header.value).architecture());
  return table && table->dims(k_output, false) && header.value->find_tensor(k_output) == nullptr;
}

void check_checkpoint_plan(const CheckpointPlan& plan, Report& report) {
  report.set_path("config.json");
  const auto header = check_gguf(plan.header, plan.size, "", Profile::compat);
  // What is wrong with the plan itself is no matter of the checkpoint.
  const GgufHeader none;
  PlanCheck check(plan, header.accepted() ? *header.value : none, report);
  check.report_faults();
  if (header.accepted()) check.compare();
}

} // namespace modeld::validate
