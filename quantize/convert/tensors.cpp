// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/tensors.hpp"

#include "quantize/convert/low_rank.hpp"
#include "quantize/convert/ops.hpp"
#include "quantize/convert/transform_view.hpp"
#include "schema/recipe.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace json = boost::json;

namespace modeld::quantize {
namespace {

/// Small tensors that every runtime reads as single precision (the reference's list).
constexpr std::array k_single{
    "blk.{bid}.ffn_gate_inp.weight",
    "blk.{bid}.ffn_gate_inp_shexp.weight",
    "position_embd.weight",
    "token_types.weight",
    "blk.{bid}.ssm_conv1d.weight",
    "blk.{bid}.shortconv.conv.weight",
    "blk.{bid}.time_mix_first.weight",
    "blk.{bid}.time_mix_w1.weight",
    "blk.{bid}.time_mix_w2.weight",
    "blk.{bid}.time_mix_decay_w1.weight",
    "blk.{bid}.time_mix_decay_w2.weight",
    "blk.{bid}.time_mix_lerp_fused.weight",
    "posnet.{bid}.norm1.weight",
    "posnet.{bid}.norm2.weight",
    "v.position_embd.weight",
    "a.position_embd.weight",
    "blk.{bid}.altup_correct_coef.weight",
    "blk.{bid}.altup_predict_coef.weight",
    "blk.{bid}.ssm_conv1d_q.weight",
    "blk.{bid}.ssm_conv1d_k.weight",
    "blk.{bid}.ssm_conv1d_v.weight",
    "blk.{bid}.indexer.proj.weight",
};

/// Kept in F16 where everything else becomes ternary.
constexpr std::array k_not_ternary{
    "token_embd.weight",
    "per_layer_token_embd.weight",
    "output.weight",
    "blk.{bid}.altup_router.weight",
    "blk.{bid}.laurel_l.weight",
    "blk.{bid}.laurel_r.weight",
};

template <std::size_t N>
bool is_one_of(const std::array<const char*, N>& patterns, const std::string& name) {
  static const std::vector<NamePattern> parsed = [&patterns] {
    std::vector<NamePattern> out;
    for (const char* pattern : patterns) {
      out.push_back(*NamePattern::parse(pattern));
    }
    return out;
  }();
  return std::any_of(parsed.begin(), parsed.end(),
                     [&](const NamePattern& p) { return p.match(name).has_value(); });
}

bool has_weight_suffix(std::string_view name) {
  return name.ends_with(".weight") || name.ends_with(".lora_a") || name.ends_with(".lora_b");
}

/// Convolutions that cut an image into patches: the runtimes' kernels take them in F32, or in F16
/// where the whole file is.
bool cuts_patches(std::string_view name) {
  return name.find(".patch_embd.weight") != std::string_view::npos ||
         name.find(".patch_merger.weight") != std::string_view::npos;
}

/// A row of no whole blocks falls back to F16.
TensorType fitting(TensorType type, const Shape& shape) {
  const std::uint64_t row = shape.empty() ? 1 : shape.back();
  return row % info(type).block == 0 ? type : TensorType::f16;
}

TensorType choose_type(const std::string& name, const Shape& shape, const std::string& wanted,
                       const OutputType& file) {
  if (shape.size() <= 1 || name.ends_with("_norm.weight")) return TensorType::f32;
  if (wanted == "f32") return TensorType::f32;
  if (wanted == "f16") return TensorType::f16;
  if (cuts_patches(name)) {
    return file.tensors == TensorType::f16 ? TensorType::f16 : TensorType::f32;
  }
  if (wanted != "file" && (is_one_of(k_single, name) || !has_weight_suffix(name))) {
    return TensorType::f32;
  }
  const bool ternary = file.tensors == TensorType::tq1_0 || file.tensors == TensorType::tq2_0;
  if (ternary && is_one_of(k_not_ternary, name)) return TensorType::f16;
  return fitting(file.tensors, shape);
}

/// The parts of a group for one block.
struct Collected {
  std::map<std::pair<std::size_t, std::uint32_t>, SourcePtr> parts; ///< by rule and expert
  std::map<std::size_t, std::string> suffixes;                      ///< by rule
  NameNumbers numbers;
};

/// A name that a rule takes.
struct Match {
  std::size_t rule = 0;
  NameNumbers numbers;
  std::string suffix;
};

/// NVFP4 experts of one kind and block, until all are there.
struct PackedExperts {
  Match match;
  std::map<std::uint32_t, const NamedSource*> parts; ///< by expert
};

class Planner {
public:
  Planner(const ModelConfig& config, const FileSet& files, const OutputType& file_type,
          const PlanOptions& options)
      : config_(config), files_(files), family_(*config.family), file_type_(file_type),
        options_(options), blocks_(as_integer(config.values.at("block_count")).value_or(0)) {}

  Result<TensorPlan> run(const Weights& weights) {
    std::vector<std::string> unmapped;
    bool generated = options_.adapter; // an adapter changes tensors, it adds none
    for (const NamedSource& source : weights.tensors) {
      if (!source.front && !std::exchange(generated, true)) MODELD_TRY(end_of_front());
      MODELD_ASSIGN(const auto match, find_rule(source.name));
      if (!match) {
        unmapped.push_back(source.name);
        continue;
      }
      MODELD_TRY(take(source, *match));
    }
    if (!generated) MODELD_TRY(end_of_front());
    if (!unmapped.empty()) return refuse_unmapped(unmapped);
    MODELD_TRY(check_groups());
    count_parameters();
    return std::move(plan_);
  }

private:
  ConfigScope scope_for(const NameNumbers& numbers) const {
    ConfigScope scope(config_, &files_);
    if (numbers.bid) scope.set("bid", json::value(std::int64_t{*numbers.bid}));
    if (numbers.xid) scope.set("xid", json::value(std::int64_t{*numbers.xid}));
    return scope;
  }

  Result<bool> holds(const std::optional<Expr>& when, const NameNumbers& numbers) const {
    if (!when) return true;
    const ConfigScope scope = scope_for(numbers);
    MODELD_ASSIGN(const json::value value, when->evaluate(scope));
    return truthy(value);
  }

  Result<std::optional<Match>> find_rule(const std::string& name) const {
    for (const std::string_view suffix : {"", ".weight", ".bias"}) {
      if (!name.ends_with(suffix)) continue;
      const std::string stem = name.substr(0, name.size() - suffix.size());
      for (std::size_t r = 0; r < family_.tensors.size(); ++r) {
        const TensorRule& rule = family_.tensors[r];
        for (const NamePattern& from : rule.from) {
          const auto numbers = from.match(stem);
          if (!numbers) continue;
          // The reference's name tables end with the last block.
          if (numbers->bid && std::int64_t{*numbers->bid} >= blocks_) continue;
          MODELD_ASSIGN(const bool applies, holds(rule.when, *numbers));
          if (applies) return std::optional(Match{r, *numbers, std::string(suffix)});
        }
      }
    }
    return std::optional<Match>();
  }

  Result<void> end_of_front() {
    for (const PackedExperts& rest : std::exchange(packed_, {})) {
      MODELD_TRY(emit_experts(rest));
    }
    return add_generated();
  }

  Result<void> add_generated() {
    for (const GeneratedRule& rule : family_.generated) {
      const std::int64_t count = rule.to.has_bid() ? blocks_ : 1;
      for (std::int64_t bid = 0; bid < count; ++bid) {
        NameNumbers numbers;
        if (rule.to.has_bid()) numbers.bid = static_cast<std::uint32_t>(bid);
        MODELD_ASSIGN(const bool applies, holds(rule.when, numbers));
        if (!applies) continue;
        MODELD_ASSIGN(SourcePtr made, generate(rule.by, scope_for(numbers), files_));
        MODELD_TRY(add(rule.to.fill(numbers), std::move(made), ""));
      }
    }
    return {};
  }

  Result<void> take(const NamedSource& source, const Match& match) {
    const TensorRule& rule = family_.tensors[match.rule];
    was_fp8_ = source.was_fp8;
    if (source.tensor->packed() && (source.scale2 || source.input_scale || rule.group)) {
      return take_packed(source, match);
    }
    if (!rule.unless_equal.empty()) {
      const auto other = sources_.find(rule.unless_equal);
      if (other != sources_.end()) {
        MODELD_ASSIGN(const bool same, equal_tensors(*other->second, *source.tensor));
        if (same) return {};
      }
    }
    if (rule.blocks) return emit_blocks(rule, source, match);
    if (!rule.group) return emit(rule, source.name, source.tensor, match.numbers, match.suffix);
    Collected& all = collected_[{*rule.group, match.numbers.bid.value_or(0)}];
    all.numbers = match.numbers;
    all.numbers.xid.reset();
    all.parts[{match.rule, match.numbers.xid.value_or(0)}] = source.tensor;
    all.suffixes[match.rule] = match.suffix;
    return finish_group(*rule.group, all);
  }

  /// One tensor that several blocks share becomes one for each.
  Result<void> emit_blocks(const TensorRule& rule, const NamedSource& source, const Match& match) {
    const ConfigScope scope = scope_for(match.numbers);
    MODELD_ASSIGN(const json::value blocks, rule.blocks->evaluate(scope));
    if (!blocks.is_array()) return bad_blocks(rule, blocks);
    for (const json::value& block : blocks.get_array()) {
      const auto bid = as_integer(block);
      if (!bid || *bid < 0 || *bid >= blocks_) return bad_blocks(rule, blocks);
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
  Result<void> take_packed(const NamedSource& source, const Match& match) {
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

  Result<void> emit_packed(const Match& match, const SourcePtr& blocks,
                           const std::vector<const NamedSource*>& parts) {
    const TensorRule& rule = family_.tensors[match.rule];
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
    return add(std::move(name), owned_tensor(shape, std::move(values)), "f32");
  }

  /// Those that hold for the block.
  Result<std::vector<std::size_t>> rules_of(std::size_t group, const NameNumbers& numbers) const {
    std::vector<std::size_t> out;
    for (std::size_t r = 0; r < family_.tensors.size(); ++r) {
      if (family_.tensors[r].group != group) continue;
      MODELD_ASSIGN(const bool applies, holds(family_.tensors[r].when, numbers));
      if (applies) out.push_back(r);
    }
    return out;
  }

  Result<std::uint64_t> group_count(std::size_t group, const NameNumbers& numbers) const {
    const GroupRule& rule = family_.groups[group];
    if (!rule.count) return 1;
    const ConfigScope scope = scope_for(numbers);
    MODELD_ASSIGN(const json::value value, rule.count->evaluate(scope));
    const auto count = as_integer(value);
    if (!count || *count <= 0) {
      return fail(Errc::malformed, fmt::format("stacking experts: '{}' gives {}, expected a number",
                                               rule.count->text(), json::serialize(value)));
    }
    return static_cast<std::uint64_t>(*count);
  }

  Result<void> finish_group(std::size_t group, Collected& all) {
    MODELD_ASSIGN(const std::uint64_t count, group_count(group, all.numbers));
    MODELD_ASSIGN(const std::vector<std::size_t> rules, rules_of(group, all.numbers));
    if (all.parts.size() < count * rules.size()) return {};
    std::vector<SourcePtr> stacked;
    for (const std::size_t r : rules) {
      std::vector<SourcePtr> parts;
      for (std::uint32_t xid = 0; xid < count; ++xid) {
        const auto at = all.parts.find({r, xid});
        if (at == all.parts.end()) return missing_part(r, all.numbers, xid);
        parts.push_back(at->second);
      }
      SourcePtr whole = parts[0];
      if (family_.groups[group].count) {
        MODELD_ASSIGN(whole, stack_parts(parts));
      }
      stacked.push_back(std::move(whole));
    }
    const GroupRule& shape = family_.groups[group];
    if (shape.join || shape.stack) {
      MODELD_ASSIGN(SourcePtr joined,
                    shape.stack ? stack_parts(stacked) : concat_parts(stacked, *shape.join));
      MODELD_TRY(finish(rules[0], all, std::move(joined)));
      all.parts.clear();
      return {};
    }
    for (std::size_t i = 0; i < rules.size(); ++i) {
      MODELD_TRY(finish(rules[i], all, std::move(stacked[i])));
    }
    all.parts.clear();
    return {};
  }

  Result<void> finish(std::size_t r, Collected& all, SourcePtr tensor) {
    const TensorRule& rule = family_.tensors[r];
    return emit(rule, rule.from[0].text(), std::move(tensor), all.numbers, all.suffixes[r]);
  }

  tl::unexpected<Error> missing_part(std::size_t r, NameNumbers numbers, std::uint32_t xid) const {
    numbers.xid = xid;
    return fail(Errc::malformed, fmt::format("stacking experts: tensor '{}' is missing",
                                             family_.tensors[r].from[0].fill(numbers)));
  }

  Result<void> check_groups() const {
    for (const auto& [key, all] : collected_) {
      if (all.parts.empty()) continue;
      MODELD_ASSIGN(const std::uint64_t count, group_count(key.first, all.numbers));
      MODELD_ASSIGN(const auto rules, rules_of(key.first, all.numbers));
      for (const std::size_t r : rules) {
        for (std::uint32_t xid = 0; xid < count; ++xid) {
          if (!all.parts.contains({r, xid})) return missing_part(r, all.numbers, xid);
        }
      }
    }
    return {};
  }

  Result<void> emit(const TensorRule& rule, const std::string& source, const SourcePtr& tensor,
                    const NameNumbers& numbers, const std::string& suffix) {
    for (const TensorOutput& out : rule.outputs) {
      MODELD_ASSIGN(const bool applies, holds(out.when, numbers));
      if (!applies) continue;
      ConfigScope scope = scope_for(numbers);
      scope.set("suffix", json::value(suffix));
      auto changed = run_ops(tensor, out.ops, scope);
      if (!changed) {
        return fail(std::move(changed.error()).context(fmt::format("converting '{}'", source)));
      }
      MODELD_ASSIGN(const NameNumbers place, renumbered(out, numbers, scope));
      MODELD_TRY(
          add(out.to.fill(place) + out.suffix.value_or(suffix), *std::move(changed), out.type));
    }
    return {};
  }

  /// Gate and up experts of a block wait for each other, and become one tensor.
  Result<bool> fused(const std::string& name, const SourcePtr& tensor, const std::string& wanted) {
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
    if (first == nullptr || second == nullptr) return true;
    const std::array parts{std::exchange(first, nullptr), std::exchange(second, nullptr)};
    MODELD_ASSIGN(SourcePtr joined, concat(parts, 1));
    MODELD_TRY(add(block + ".ffn_gate_up_exps.weight", std::move(joined), wanted));
    return true;
  }

  Result<NameNumbers> renumbered(const TensorOutput& out, NameNumbers numbers,
                                 const ConfigScope& scope) const {
    if (!out.number) return numbers;
    MODELD_ASSIGN(const json::value number, out.number->evaluate(scope));
    const auto whole = as_integer(number);
    if (!whole || *whole < 0 || *whole >= blocks_) {
      return fail(Errc::malformed,
                  fmt::format("naming '{}': '{}' gives {}, expected a block's "
                              "number below {}",
                              out.to.text(), out.number->text(), json::serialize(number), blocks_));
    }
    numbers.bid = static_cast<std::uint32_t>(*whole);
    return numbers;
  }

  Result<void> add(std::string name, SourcePtr tensor, const std::string& wanted) {
    MODELD_ASSIGN(const bool waits, fused(name, tensor, wanted));
    if (waits) return {};
    if (options_.adapter) return add_change(std::move(name), tensor);
    return add_plain(std::move(name), std::move(tensor), wanted);
  }

  Result<void> add_plain(std::string name, SourcePtr tensor, const std::string& wanted) {
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
    return {};
  }

  /// What an adapter does to a tensor: two factors, or a norm as it is.
  Result<void> add_change(std::string name, const SourcePtr& tensor) {
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

  /// As the reference counts: experts once for each tensor that stacks them.
  void count_parameters() {
    std::uint64_t expert_sum = 0;
    std::uint64_t expert_tensors = 0;
    ParameterCount& count = plan_.parameters;
    std::uint64_t columns = 0; // of the factor A that came last
    for (const GgufTensor& tensor : plan_.tensors) {
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

  const ModelConfig& config_;
  const FileSet& files_;
  const Architecture& family_;
  const OutputType& file_type_;
  const PlanOptions& options_;
  std::int64_t blocks_;
  TensorPlan plan_;
  std::set<std::string> names_;
  std::map<std::string, SourcePtr> sources_; ///< by output name
  std::map<std::pair<std::size_t, std::uint32_t>, Collected> collected_;
  std::vector<PackedExperts> packed_; ///< in the order of their first parts
  std::map<std::string, std::pair<SourcePtr, SourcePtr>> gate_up_; ///< by block
  bool was_fp8_ = false; ///< of the source tensor that was taken last
};

} // namespace

Result<OutputType> choose_file_type(std::string_view outtype, const Weights& weights) {
  std::string name(outtype);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (name == "AUTO") {
    name = "F16";
    for (const NamedSource& source : weights.tensors) {
      if (source.tensor->shape().size() < 2) continue;
      if (source.tensor->type() == ElementType::bf16) name = "BF16";
      if (name == "BF16" || source.tensor->type() == ElementType::f16) break;
    }
  }
  for (const std::string_view known : {"F32", "F16", "BF16", "Q8_0", "TQ1_0", "TQ2_0"}) {
    if (name != known) continue;
    const TargetInfo* target = find_target(known);
    return OutputType{target->default_type, target->file_type, target->name};
  }
  return fail(Errc::invalid_argument,
              fmt::format("reading outtype '{}': known are auto, f32, f16, bf16, q8_0, tq1_0, "
                          "tq2_0",
                          outtype));
}

Result<TensorPlan> plan_tensors(const Weights& weights, const ModelConfig& config,
                                const FileSet& files, const OutputType& file_type,
                                const PlanOptions& options) {
  return Planner(config, files, file_type, options).run(weights);
}

} // namespace modeld::quantize
