// SPDX-License-Identifier: Apache-2.0
#include "quantize/recipe/quantize_model.hpp"

#include "quantize/kernels/row_codec.hpp"
#include "quantize/recipe/layer_pruning.hpp"
#include "quantize/recipe/model_facts.hpp"
#include "quantize/recipe/quantized_source.hpp"
#include "quantize/recipe/type_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace modeld::quantize {
namespace {

constexpr std::uint32_t k_quantization_version = 2; // ggml's GGML_QNT_VERSION

/// Writes a key behind all others, as the reference's writer does.
void put_last(GgufModel& model, std::string_view key, GgufValue value) {
  model.erase(key);
  model.kv.push_back({std::string(key), std::move(value)});
}

/// The file type that the reference assumes where a file does not say: by the tensor type that
/// first reaches the highest count, in the quantizer's order.
std::uint32_t guess_file_type(const GgufModel& model, const std::vector<std::size_t>& order) {
  std::map<TensorType, int> counts;
  int most = 0;
  TensorType type = TensorType::f32;
  for (const std::size_t i : order) {
    const int count = ++counts[model.tensors[i].type];
    if (count > most) {
      most = count;
      type = model.tensors[i].type;
    }
  }
  FileType guess = FileType::f32;
  if (type == TensorType::q3_k) {
    guess = FileType::q3_k_m;
  } else if (type == TensorType::q4_k) {
    guess = FileType::q4_k_m;
  } else if (type == TensorType::q5_k) {
    guess = FileType::q5_k_m;
  } else if (type == TensorType::nvfp4) {
    guess = FileType::nvfp4;
  } else if (type != TensorType::mxfp4) { // MXFP4 counts as unknown there
    if (const TargetInfo* target = find_target(info(type).name)) {
      guess = static_cast<FileType>(target->file_type);
    }
  }
  return static_cast<std::uint32_t>(guess) | k_file_type_guessed;
}

/// One tensor on its way to the output.
struct Item {
  std::size_t index; ///< in the source
  std::string name;  ///< in the output
  TensorDecision decision;
  std::shared_ptr<const std::vector<float>> importance;
};

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
  Result<void> attach_importance();
  Result<void> attach_importance(Item& item, std::vector<std::string>& wrong);
  Result<void> check_importance_values() const;
  void note_unused_importance();
  void write_metadata(GgufModel& model) const;
  void write_split_keys(std::vector<GgufModel>& parts) const;
  GgufTensor output_tensor(const Item& item) const;
  std::uint16_t part_of(const Item& item) const;

  const GgufTensor& from(const Item& item) const { return source_.tensors[item.index]; }
  bool converts(const Item& item) const { return item.decision.from != item.decision.to; }
  bool dry() const { return plan_ == PlanOnly::yes; }

  const GgufModel& source_;
  const QuantizeRequest& request_;
  PlanOnly plan_;
  LayerPruning pruning_;
  TypeOptions options_;
  std::uint32_t file_type_ = 0;
  std::vector<std::size_t> order_; ///< of the source's tensors
  std::vector<Item> items_;
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
    std::stable_sort(items_.begin(), items_.end(), [this](const Item& a, const Item& b) {
      return part_of(a) != part_of(b) ? part_of(a) < part_of(b) : a.index < b.index;
    });
  }
}

std::uint16_t Planner::part_of(const Item& item) const {
  return request_.parts.empty() || !request_.recipe.keep_split ? std::uint16_t{0}
                                                               : request_.parts[item.index];
}

Result<void> Planner::choose_types() {
  MODELD_ASSIGN(const ModelFacts facts, model_facts(source_, request_.overrides));
  std::vector<std::string> names;
  for (const Item& item : items_) {
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
  for (Item& item : items_) {
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
    const bool matches = std::any_of(items_.begin(), items_.end(), [&](const Item& item) {
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
  for (const Item& item : items_) {
    if (!converts(item)) continue;
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

Result<void> Planner::check_importance_values() const {
  for (const auto& [name, weights] : request_.importance->entries) {
    const auto bad = std::find_if(weights.begin(), weights.end(),
                                  [](float w) { return !std::isfinite(w) || w < 0; });
    if (bad != weights.end()) {
      return fail(Errc::malformed,
                  fmt::format("importance matrix '{}': entry '{}' has the value {} at {}; allowed "
                              "are finite numbers from 0",
                              request_.importance->file, name, *bad, bad - weights.begin()),
                  "make the importance matrix again: it is broken");
    }
  }
  return {};
}

Result<void> Planner::attach_importance(Item& item, std::vector<std::string>& wrong) {
  if (!request_.importance) return {};
  const GgufTensor& tensor = from(item);
  const auto entry = request_.importance->entries.find(tensor.name);
  if (entry == request_.importance->entries.end()) return {};
  const std::uint64_t experts = tensor.ne.size() > 2 ? tensor.ne[2] : 1;
  if (entry->second.size() == tensor.row_elements() * experts) {
    item.importance = {request_.importance, &entry->second};
    item.decision.weighted = true;
    const auto zero = zero_weighted_blocks(item.decision.to, entry->second);
    if (!zero.empty() && !request_.recipe.force) {
      warnings_.push_back(fmt::format("importance matrix: {} blocks of '{}' have no weight above "
                                      "zero and are quantized without",
                                      zero.size(), item.name));
    }
    return {};
  }
  const std::string text = fmt::format("'{}' has {} weights for {} x {} columns", tensor.name,
                                       entry->second.size(), experts, tensor.row_elements());
  if (is_token_embedding(item.name)) {
    warnings_.push_back("importance matrix ignored for an embedding: " + text);
  } else {
    wrong.push_back(text);
  }
  return {};
}

Result<void> Planner::attach_importance() {
  if (request_.importance) {
    MODELD_TRY(check_importance_values());
  }
  std::vector<std::string> wrong;
  std::vector<std::string> missing;
  for (Item& item : items_) {
    const TensorDecision& d = item.decision;
    if (converts(item)) {
      MODELD_TRY(attach_importance(item, wrong));
    }
    const bool allowed = !request_.only_copy && is_quantizable(from(item));
    bool needs = allowed && needs_importance(d.name, d.to, options_.file_type);
    // Without any matrix the reference refuses even where the tensor would only be copied.
    if (options_.has_importance) needs = needs && converts(item);
    if (converts(item) && codec(d.to).importance_use == ImportanceUse::required) needs = true;
    if (needs && !item.importance) {
      item.decision.unguided_low = true;
      missing.push_back(fmt::format("'{}' ({})", d.name, info(d.to).name));
    }
  }
  if (!wrong.empty() && !dry()) {
    return fail(Errc::invalid_argument,
                fmt::format("importance matrix '{}' does not fit the model: {}",
                            request_.importance->file, fmt::join(wrong, ", ")),
                "the matrix was made for another model or by another program; --exclude-weights "
                "leaves entries out");
  }
  if (!missing.empty() && !dry()) {
    return fail(Errc::invalid_argument,
                fmt::format("quantizing: no importance weights for {}, and so few bits make no "
                            "usable model without",
                            fmt::join(missing, ", ")),
                "give --imatrix with a matrix that has these tensors, or a type with more bits");
  }
  note_unused_importance();
  return {};
}

void Planner::note_unused_importance() {
  if (!request_.importance) return;
  std::size_t unknown = 0;
  for (const auto& entry : request_.importance->entries) {
    const bool known =
        std::any_of(source_.tensors.begin(), source_.tensors.end(),
                    [&](const GgufTensor& tensor) { return tensor.name == entry.first; });
    unknown += known ? 0 : 1;
  }
  if (unknown > 0) {
    warnings_.push_back(fmt::format("importance matrix '{}': {} of {} entries name no tensor of "
                                    "this model",
                                    request_.importance->file, unknown,
                                    request_.importance->entries.size()));
  }
}

void Planner::write_metadata(GgufModel& model) const {
  model.kv = source_.kv;
  put_last(model, "general.quantization_version", k_quantization_version);
  put_last(model, "general.file_type", file_type_);
  for (const std::string_view key : {"split.no", "split.count", "split.tensors.count"}) {
    model.erase(key);
  }
  for (const GgufKv& kv : request_.overrides) {
    put_last(model, kv.key, kv.value);
  }
  if (options_.has_importance) {
    constexpr std::size_t k_text = 127; // what the reference has room for
    const Importance& importance = *request_.importance;
    put_last(model, "quantize.imatrix.file", importance.file.substr(0, k_text));
    if (!importance.datasets.empty()) {
      put_last(model, "quantize.imatrix.dataset", importance.datasets.front().substr(0, k_text));
    }
    put_last(model, "quantize.imatrix.entries_count",
             static_cast<std::uint32_t>(importance.entries.size()));
    if (importance.chunks > 0) {
      put_last(model, "quantize.imatrix.chunks_count",
               static_cast<std::uint32_t>(importance.chunks));
    }
  }
  if (pruning_.active()) {
    const auto& architecture = std::get<std::string>(*source_.find("general.architecture"));
    put_last(model, architecture + ".block_count",
             static_cast<std::uint32_t>(pruning_.layers_left()));
  }
}

void Planner::write_split_keys(std::vector<GgufModel>& parts) const {
  if (parts.size() < 2) return;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    put_last(parts[i], "split.no", static_cast<std::uint16_t>(i));
    put_last(parts[i], "split.count", static_cast<std::uint16_t>(parts.size()));
    put_last(parts[i], "split.tensors.count", static_cast<std::int32_t>(items_.size()));
  }
}

GgufTensor Planner::output_tensor(const Item& item) const {
  GgufTensor tensor = from(item);
  tensor.name = item.name;
  tensor.ne.resize(dimensions(tensor));
  GgufTensor named = from(item);
  named.name = item.name;
  if (converts(item)) {
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
  MODELD_TRY(attach_importance());

  QuantizedModel result;
  std::size_t count = 1;
  for (const Item& item : items_) {
    count = std::max(count, std::size_t{part_of(item)} + 1);
  }
  result.parts.resize(count);
  result.parts.front().alignment = source_.alignment; // the others have no key that would say so
  write_metadata(result.parts.front());
  write_split_keys(result.parts);
  for (const Item& item : items_) {
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
