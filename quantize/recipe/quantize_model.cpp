// SPDX-License-Identifier: Apache-2.0
#include "quantize/recipe/quantize_model.hpp"

#include "quantize/kernels/row_codec.hpp"
#include "quantize/recipe/importance_use.hpp"
#include "quantize/recipe/layer_pruning.hpp"
#include "quantize/recipe/model_facts.hpp"
#include "quantize/recipe/output_metadata.hpp"
#include "quantize/recipe/quantized_source.hpp"
#include "quantize/recipe/type_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace modeld::quantize {
namespace {

/// The work of one call; lives no longer.
class Planner {
public:
  Planner(const GgufModel& source, const QuantizeRequest& request, PlanOnly plan)
      : source_(source), request_(request), plan_(plan), pruning_(request.prune_layers) {}

  Result<QuantizedModel> run();

private:
  Result<void> check_request() const;
  Result<void> set_options();
  void list_items();
  Result<void> choose_types();
  Result<void> check_rules();
  Result<void> check_conversions() const;
  MetadataFacts metadata_facts() const;
  GgufTensor output_tensor(const PlannedTensor& item) const;
  std::uint16_t part_of(const PlannedTensor& item) const;

  const GgufTensor& from(const PlannedTensor& item) const { return source_.tensors[item.index]; }
  bool dry() const { return plan_ == PlanOnly::yes; }

  const GgufModel& source_;
  const QuantizeRequest& request_;
  PlanOnly plan_;
  LayerPruning pruning_;
  TypeOptions options_;
  std::uint32_t file_type_ = 0;
  std::vector<std::size_t> order_; ///< of the source's tensors
  std::vector<PlannedTensor> items_;
  std::vector<std::string> warnings_;
};

Result<void> Planner::check_request() const {
  for (const GgufKv& kv : request_.overrides) {
    if (kv.key.starts_with("split.") || kv.key == "general.alignment") {
      return fail(Errc::invalid_argument,
                  fmt::format("quantizing: metadata '{}' cannot be overridden: it describes how "
                              "the file itself is laid out",
                              kv.key));
    }
  }
  if (!request_.parts.empty() && request_.parts.size() != source_.tensors.size()) {
    return fail(Errc::internal, "quantizing: parts do not match the tensors");
  }
  return {};
}

Result<void> Planner::set_options() {
  options_.output_type = request_.recipe.output_type;
  options_.embedding_type = request_.recipe.embedding_type;
  options_.pure = request_.recipe.pure;
  options_.leave_output = request_.recipe.leave_output_tensor;
  options_.has_importance = request_.importance && !request_.importance->entries.empty();
  MODELD_ASSIGN(options_.rules, compile_rules(request_.recipe.tensor_types));
  if (request_.only_copy) return {};
  const TargetInfo* target = find_target(request_.recipe.target);
  if (target == nullptr) {
    return fail(Errc::invalid_argument,
                fmt::format("quantizing: no such type '{}'; known are {}", request_.recipe.target,
                            fmt::join(all_target_names(), " ")));
  }
  file_type_ = target->file_type;
  options_.file_type = static_cast<FileType>(target->file_type);
  options_.default_type = target->default_type;
  return {};
}

void Planner::list_items() {
  order_.resize(source_.tensors.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::stable_sort(order_.begin(), order_.end(), [this](std::size_t a, std::size_t b) {
    return quantizer_order(source_.tensors[a].name, source_.tensors[b].name);
  });
  for (const std::size_t index : order_) {
    if (auto name = pruning_.rename(source_.tensors[index].name)) {
      items_.push_back({index, std::move(*name), {}, nullptr});
    }
  }
  if (request_.recipe.keep_split) {
    std::stable_sort(
        items_.begin(), items_.end(), [this](const PlannedTensor& a, const PlannedTensor& b) {
          return part_of(a) != part_of(b) ? part_of(a) < part_of(b) : a.index < b.index;
        });
  }
}

std::uint16_t Planner::part_of(const PlannedTensor& item) const {
  return request_.parts.empty() || !request_.recipe.keep_split ? std::uint16_t{0}
                                                               : request_.parts[item.index];
}

Result<void> Planner::choose_types() {
  MODELD_ASSIGN(const ModelFacts facts, model_facts(source_, request_.overrides));
  std::vector<std::string> names;
  for (const PlannedTensor& item : items_) {
    names.push_back(item.name);
  }
  const bool tied = std::find(names.begin(), names.end(), "output.weight") == names.end();
  if (tied && options_.output_type && options_.embedding_type &&
      *options_.output_type != *options_.embedding_type && !request_.recipe.force) {
    return fail(Errc::invalid_argument,
                fmt::format("quantizing: token_embd.weight is the output as well, and cannot be "
                            "both {} (output tensor type) and {} (token embedding type)",
                            info(*options_.output_type).name, info(*options_.embedding_type).name),
                "give one of --output-tensor-type and --token-embedding-type");
  }
  TypeChooser chooser(facts, options_, names);
  for (PlannedTensor& item : items_) {
    GgufTensor tensor = from(item);
    tensor.name = item.name;
    tensor.source = nullptr;
    TypeChoice choice{tensor.type, tensor.type};
    if (!request_.only_copy) {
      MODELD_ASSIGN(choice, chooser.choose(tensor));
    }
    item.decision = {item.name, tensor.type, choice.type,    choice.wanted,
                     false,     false,       tensor.bytes(), 0};
    tensor.type = choice.type;
    item.decision.bytes_to = tensor.bytes();
  }
  return {};
}

/// B02: a rule that matches nothing is a mistake in the rule.
Result<void> Planner::check_rules() {
  const bool used = !request_.only_copy && info(options_.default_type).quantized;
  for (const TypeRule& rule : options_.rules) {
    if (!used) {
      warnings_.push_back(fmt::format("tensor type rule '{}' has no effect: {} gives every tensor "
                                      "the same type",
                                      rule.pattern,
                                      request_.only_copy ? "COPY" : request_.recipe.target));
      continue;
    }
    const bool matches = std::any_of(items_.begin(), items_.end(), [&](const PlannedTensor& item) {
      return std::regex_search(item.name, rule.expression);
    });
    if (!matches && !request_.recipe.force) {
      return fail(Errc::invalid_argument,
                  fmt::format("quantizing: tensor type rule '{}={}' matches no tensor",
                              rule.pattern, info(rule.type).name),
                  "modelctl inspect lists the names of a file's tensors");
    }
  }
  return {};
}

Result<void> Planner::check_conversions() const {
  std::string requantized;
  for (const PlannedTensor& item : items_) {
    if (!item.converts()) continue;
    const TensorDecision& d = item.decision;
    if (codec(d.to).quantize == nullptr) {
      return fail(Errc::unsupported, fmt::format("quantizing tensor '{}': {} cannot be written",
                                                 d.name, info(d.to).name));
    }
    if (codec(d.from).dequantize == nullptr) {
      return fail(Errc::unsupported, fmt::format("quantizing tensor '{}': {} holds no weights that "
                                                 "could be converted",
                                                 d.name, info(d.from).name));
    }
    if (info(d.from).quantized && requantized.empty()) {
      requantized = fmt::format("'{}' is {}", d.name, info(d.from).name);
    }
  }
  if (!requantized.empty() && !request_.allow_requantize && !dry()) {
    return fail(Errc::invalid_argument,
                fmt::format("quantizing: the source is quantized already: tensor {}", requantized),
                "quantize from the original, or give --allow-requantize and accept the loss");
  }
  return {};
}

MetadataFacts Planner::metadata_facts() const {
  MetadataFacts facts;
  facts.file_type = file_type_;
  if (options_.has_importance) facts.importance = request_.importance.get();
  facts.overrides = request_.overrides;
  if (pruning_.active()) facts.layers_left = static_cast<std::uint32_t>(pruning_.layers_left());
  return facts;
}

GgufTensor Planner::output_tensor(const PlannedTensor& item) const {
  GgufTensor tensor = from(item);
  tensor.name = item.name;
  tensor.ne.resize(dimensions(tensor));
  GgufTensor named = from(item);
  named.name = item.name;
  if (item.converts()) {
    tensor.source =
        quantized_source(named, item.decision.to, item.importance,
                         request_.recipe.force ? OnBadResult::reference : OnBadResult::refuse);
  } else {
    tensor.source = checked_source(named);
  }
  tensor.type = item.decision.to;
  return tensor;
}

Result<QuantizedModel> Planner::run() {
  MODELD_TRY(check_request());
  MODELD_TRY(set_options());
  list_items();
  if (request_.only_copy) {
    const GgufValue* stated = source_.find("general.file_type");
    const auto* number = stated != nullptr ? std::get_if<std::uint32_t>(stated) : nullptr;
    file_type_ = number != nullptr ? *number : guess_file_type(source_, order_);
  }
  MODELD_TRY(choose_types());
  MODELD_TRY(check_rules());
  MODELD_TRY(check_conversions());
  MODELD_TRY(attach_importance(source_, request_, options_, plan_, items_, warnings_));

  QuantizedModel result;
  std::size_t count = 1;
  for (const PlannedTensor& item : items_) {
    count = std::max(count, std::size_t{part_of(item)} + 1);
  }
  result.parts.resize(count);
  result.parts.front().alignment = source_.alignment; // the others have no key that would say so
  write_metadata(result.parts.front(), source_, metadata_facts());
  write_split_keys(result.parts, items_.size());
  for (const PlannedTensor& item : items_) {
    result.parts[part_of(item)].tensors.push_back(output_tensor(item));
    result.decisions.push_back(item.decision);
  }
  result.warnings = std::move(warnings_);
  return result;
}

} // namespace

Result<QuantizedModel> quantize_model(const GgufModel& source, const QuantizeRequest& request,
                                      PlanOnly plan) {
  return Planner(source, request, plan).run();
}

} // namespace modeld::quantize
