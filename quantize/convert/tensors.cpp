// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/tensors.hpp"

#include "quantize/convert/ops.hpp"
#include "quantize/convert/rule_match.hpp"
#include "quantize/convert/tensor_groups.hpp"
#include "quantize/convert/transform_view.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace json = boost::json;

namespace modeld::quantize {
namespace {

/// NVFP4 experts of one kind and block, until all are there.
struct PackedExperts {
  RuleMatch match;
  std::map<std::uint32_t, const NamedSource*> parts; ///< by expert
};

class Planner {
public:
  Planner(const ModelConfig& config, const FileSet& files, const OutputType& file_type,
          const PlanOptions& options)
      : config_(config), files_(files), family_(*config.family), options_(options),
        matcher_(config, files), groups_(matcher_), plan_(family_, file_type, options) {}

  Result<TensorPlan> run(const Weights& weights) {
    std::vector<std::string> unmapped;
    bool generated = options_.adapter; // an adapter changes tensors, it adds none
    for (const NamedSource& source : weights.tensors) {
      if (!source.front && !std::exchange(generated, true)) MODELD_TRY(end_of_front());
      MODELD_ASSIGN(const auto match, matcher_.find(source.name));
      if (!match) {
        unmapped.push_back(source.name);
        if (options_.faults != nullptr) note(PlanFault::Kind::unknown, source.name, "");
        continue;
      }
      sources_ = source.stored;
      if (auto taken = take(source, *match); !taken) {
        if (options_.faults == nullptr) return fail(std::move(taken.error()));
        note(is_misfit(taken.error()) ? PlanFault::Kind::misfit : PlanFault::Kind::unable,
             source.name, std::move(taken.error().message));
      }
    }
    if (!generated) MODELD_TRY(end_of_front());
    if (!unmapped.empty() && options_.faults == nullptr) return refuse_unmapped(unmapped);
    MODELD_TRY(groups_.check(options_.faults));
    TensorPlan plan = std::move(plan_).finish();
    list_left_out(weights, plan);
    return plan;
  }

private:
  void note(PlanFault::Kind kind, std::string tensor, std::string message) {
    options_.faults->push_back({kind, std::move(tensor), std::move(message)});
  }

  static bool is_misfit(const Error& error) {
    return std::any_of(error.details.begin(), error.details.end(),
                       [](const auto& detail) { return detail.first == "misfit"; });
  }

  /// Rules may take a tensor and make nothing of it.
  static void list_left_out(const Weights& weights, TensorPlan& plan) {
    std::set<std::string_view> used;
    for (const TensorOrigin& origin : plan.origins) {
      used.insert(origin.sources.begin(), origin.sources.end());
    }
    for (const NamedSource& source : weights.tensors) {
      for (const std::string& name : source.stored) {
        if (!used.contains(name)) plan.left_out.push_back(name);
      }
    }
  }

  /// As it stands in the family's file.
  static std::string text_of(const std::vector<OpRule>& ops) {
    std::string text;
    for (const OpRule& op : ops) {
      if (!text.empty()) text += ", ";
      text += op.name;
      std::string arguments;
      for (const Expr& argument : op.arguments) {
        arguments += (arguments.empty() ? "" : ", ") + argument.text();
      }
      if (!arguments.empty()) text += "(" + arguments + ")";
    }
    return text;
  }

  Result<void> end_of_front() {
    for (const PackedExperts& rest : std::exchange(packed_, {})) {
      MODELD_TRY(emit_experts(rest));
    }
    return add_generated();
  }

  Result<void> add_generated() {
    for (const GeneratedRule& rule : family_.generated) {
      const std::int64_t count = rule.to.has_bid() ? matcher_.blocks() : 1;
      for (std::int64_t bid = 0; bid < count; ++bid) {
        NameNumbers numbers;
        if (rule.to.has_bid()) numbers.bid = static_cast<std::uint32_t>(bid);
        MODELD_ASSIGN(const bool applies, matcher_.holds(rule.when, numbers));
        if (!applies) continue;
        plan_.set_origin({{}, text_of({rule.by})});
        auto generated = generate(rule.by, matcher_.scope_for(numbers), files_);
        if (!generated && options_.faults != nullptr) continue;
        MODELD_ASSIGN(SourcePtr made, std::move(generated));
        MODELD_TRY(plan_.add(rule.to.fill(numbers), std::move(made), ""));
      }
    }
    return {};
  }

  Result<void> take(const NamedSource& source, const RuleMatch& match) {
    const TensorRule& rule = family_.tensors[match.rule];
    plan_.set_was_fp8(source.was_fp8);
    if (source.tensor->packed() && (source.scale2 || source.input_scale || rule.group)) {
      return take_packed(source, match);
    }
    if (const SourcePtr other = plan_.find(rule.unless_equal); other != nullptr) {
      if (options_.faults != nullptr) return {};
      MODELD_ASSIGN(const bool same, equal_tensors(*other, *source.tensor));
      if (same) return {};
    }
    if (rule.blocks) return emit_blocks(rule, source, match);
    if (!rule.group) return emit(rule, source.name, source.tensor, match.numbers, match.suffix);
    MODELD_ASSIGN(const auto whole, groups_.add(match, source));
    for (const WholeTensor& one : whole) {
      const TensorRule& of = family_.tensors[one.rule];
      sources_ = one.stored;
      MODELD_TRY(emit(of, of.from[0].text(), one.tensor, one.numbers, one.suffix));
    }
    return {};
  }

  /// One tensor that several blocks share becomes one for each.
  Result<void> emit_blocks(const TensorRule& rule, const NamedSource& source,
                           const RuleMatch& match) {
    const ConfigScope scope = matcher_.scope_for(match.numbers);
    MODELD_ASSIGN(const json::value blocks, rule.blocks->evaluate(scope));
    if (!blocks.is_array()) return bad_blocks(rule, blocks);
    for (const json::value& block : blocks.get_array()) {
      const auto bid = as_integer(block);
      if (!bid || *bid < 0 || *bid >= matcher_.blocks()) return bad_blocks(rule, blocks);
      NameNumbers numbers = match.numbers;
      numbers.bid = static_cast<std::uint32_t>(*bid);
      MODELD_TRY(emit(rule, source.name, source.tensor, numbers, match.suffix));
    }
    return {};
  }

  static tl::unexpected<Error> bad_blocks(const TensorRule& rule, const json::value& blocks) {
    return fail(Errc::malformed,
                fmt::format("converting '{}': '{}' gives {}, expected numbers of blocks",
                            rule.from[0].text(), rule.blocks->text(), json::serialize(blocks)));
  }

  /// NVFP4 blocks go out with their scales; experts as soon as those of one kind are all there.
  Result<void> take_packed(const NamedSource& source, const RuleMatch& match) {
    if (!family_.tensors[match.rule].group) {
      return emit_packed(match, source.tensor, {&source});
    }
    const auto found = std::find_if(packed_.begin(), packed_.end(), [&](const PackedExperts& p) {
      return p.match.rule == match.rule && p.match.numbers.bid == match.numbers.bid;
    });
    PackedExperts& all =
        found == packed_.end() ? packed_.emplace_back(PackedExperts{match, {}}) : *found;
    all.parts[match.numbers.xid.value_or(0)] = &source;
    MODELD_ASSIGN(const std::size_t count, packed_count());
    if (count == 0 || all.parts.size() < count) return {};
    const PackedExperts ready = all;
    std::erase_if(packed_, [&](const PackedExperts& p) { return &p == &all; });
    return emit_experts(ready);
  }

  /// How many experts the reference waits for; none: it takes what there is at the end.
  Result<std::size_t> packed_count() const {
    for (const std::string_view name : {"num_local_experts", "num_experts"}) {
      const json::value* count = config_.values.if_contains(name);
      if (count == nullptr) continue;
      const auto number = as_integer(*count);
      return number && *number > 0 ? static_cast<std::size_t>(*number) : std::size_t{0};
    }
    return std::size_t{0};
  }

  Result<void> emit_experts(const PackedExperts& all) {
    std::vector<SourcePtr> tensors;
    std::vector<const NamedSource*> parts;
    for (const auto& [xid, part] : all.parts) {
      parts.push_back(part);
      tensors.push_back(part->tensor);
    }
    MODELD_ASSIGN(SourcePtr blocks, stack(tensors));
    return emit_packed(all.match, std::move(blocks), parts);
  }

  Result<void> emit_packed(const RuleMatch& match, const SourcePtr& blocks,
                           const std::vector<const NamedSource*>& parts) {
    const TensorRule& rule = family_.tensors[match.rule];
    sources_.clear();
    for (const NamedSource* part : parts) {
      sources_.insert(sources_.end(), part->stored.begin(), part->stored.end());
    }
    MODELD_TRY(emit(rule, parts[0]->name, blocks, match.numbers, match.suffix));
    const std::string stem = rule.outputs[0].to.fill(match.numbers);
    std::vector<SourcePtr> scales;
    std::vector<SourcePtr> inputs;
    for (const NamedSource* part : parts) {
      scales.push_back(part->scale2);
      inputs.push_back(part->input_scale);
    }
    MODELD_TRY(add_scales(stem + ".scale", scales, rule.group.has_value()));
    return add_scales(stem + ".input_scale", inputs, rule.group.has_value());
  }

  /// One factor for each part; nothing where all of them are 1.
  Result<void> add_scales(std::string name, const std::vector<SourcePtr>& parts, bool sums) {
    constexpr float k_trivial = 1e-6F;
    std::vector<float> values;
    for (const SourcePtr& part : parts) {
      std::vector<float> here(part == nullptr ? 1 : part->elements(), 1.0F);
      if (part != nullptr) MODELD_TRY(read_f32(*part, 0, here.size(), here.data()));
      if (sums) here = {std::accumulate(here.begin(), here.end(), 0.0F)};
      values.insert(values.end(), here.begin(), here.end());
    }
    const bool trivial = (sums || values.size() <= 1) &&
                         std::all_of(values.begin(), values.end(),
                                     [](float v) { return std::abs(v - 1.0F) < k_trivial; });
    if (trivial) return {};
    const Shape shape{values.size()};
    return plan_.add(std::move(name), owned_tensor(shape, std::move(values)), "f32");
  }

  Result<void> emit(const TensorRule& rule, const std::string& source, const SourcePtr& tensor,
                    const NameNumbers& numbers, const std::string& suffix) {
    for (const TensorOutput& out : rule.outputs) {
      MODELD_ASSIGN(const bool applies, matcher_.holds(out.when, numbers));
      if (!applies) continue;
      ConfigScope scope = matcher_.scope_for(numbers);
      scope.set("suffix", json::value(suffix));
      plan_.set_origin({sources_, text_of(out.ops)});
      auto changed = run_ops(tensor, out.ops, scope);
      if (!changed) {
        return fail(std::move(changed.error()).context(fmt::format("converting '{}'", source)));
      }
      MODELD_ASSIGN(const NameNumbers place, renumbered(out, numbers, scope));
      MODELD_TRY(plan_.add(out.to.fill(place) + out.suffix.value_or(suffix), *std::move(changed),
                           out.type));
    }
    return {};
  }

  Result<NameNumbers> renumbered(const TensorOutput& out, NameNumbers numbers,
                                 const ConfigScope& scope) const {
    if (!out.number) return numbers;
    MODELD_ASSIGN(const json::value number, out.number->evaluate(scope));
    const auto whole = as_integer(number);
    if (!whole || *whole < 0 || *whole >= matcher_.blocks()) {
      return fail(Errc::malformed, fmt::format("naming '{}': '{}' gives {}, expected a block's "
                                               "number below {}",
                                               out.to.text(), out.number->text(),
                                               json::serialize(number), matcher_.blocks()));
    }
    numbers.bid = static_cast<std::uint32_t>(*whole);
    return numbers;
  }

  tl::unexpected<Error> refuse_unmapped(const std::vector<std::string>& names) const {
    Error error{
        Errc::unsupported,
        fmt::format("converting: {} tensors of the checkpoint have no place in a '{}' file: "
                    "{}",
                    names.size(), family_.arch, fmt::join(names, ", ")),
        "the checkpoint is of another family than config.json says, or of a newer form",
        {},
        0};
    for (const std::string& name : names) {
      error.details.emplace_back("tensor", name);
    }
    return fail(std::move(error));
  }

  const ModelConfig& config_;
  const FileSet& files_;
  const Architecture& family_;
  const PlanOptions& options_;
  RuleMatcher matcher_;
  TensorGroups groups_;
  TensorPlanner plan_;
  std::vector<PackedExperts> packed_; ///< in the order of their first parts
  std::vector<std::string> sources_;  ///< the checkpoint's own names of what is being emitted
};

} // namespace

Result<TensorPlan> plan_tensors(const Weights& weights, const ModelConfig& config,
                                const FileSet& files, const OutputType& file_type,
                                const PlanOptions& options) {
  return Planner(config, files, file_type, options).run(weights);
}

} // namespace modeld::quantize
