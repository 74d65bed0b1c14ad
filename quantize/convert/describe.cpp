// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/describe.hpp"

#include "quantize/convert/config.hpp"
#include "quantize/convert/dequant.hpp"
#include "quantize/convert/keys.hpp"
#include "quantize/convert/tensors.hpp"
#include "quantize/convert/weights.hpp"
#include "quantize/gguf/gguf_writer.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace json = boost::json;

namespace modeld::quantize {
namespace {

/// More layers than any runtime takes; some rules make a tensor for each.
constexpr std::int64_t k_most_blocks = 4096;

Result<ModelConfig> read_config(const FileSet& files, const ArchitectureSet& architectures,
                                Weights& weights) {
  json::object facts{
      {"no_mtp", false}, {"mtp_only", false}, {"dense_modules", false}, {"mistral_format", false}};
  facts["adapter"] = "";
  MODELD_ASSIGN(ModelConfig config,
                load_config(files, architectures, FamilyKind::model, std::move(facts)));
  MODELD_ASSIGN(weights, open_weights(files));
  json::array names;
  for (const NamedSource& source : weights.tensors) {
    names.emplace_back(source.name);
  }
  config.facts["tensors"] = std::move(names);
  MODELD_TRY(prepare_config(config, files));
  const std::int64_t blocks = as_integer(config.values.at("block_count")).value_or(0);
  if (blocks < 1 || blocks > k_most_blocks) {
    return fail(Errc::unsupported,
                fmt::format("describing '{}': config.json tells of {} layers, allowed are 1 to {}",
                            files.name(), blocks, k_most_blocks));
  }
  return config;
}

/// The keys of the architecture; the rest says nothing about tensors.
Result<std::vector<GgufKv>> metadata(ModelConfig& config, const FileSet& files,
                                     const OutputType& type) {
  std::vector<GgufKv> kv;
  set_kv(kv, {"general.architecture", config.family->arch});
  ConfigScope scope(config, &files);
  scope.set("file_type", json::value(std::int64_t{type.number}));
  MODELD_TRY(write_keys(config.family->keys, scope, {config.values, kv, true}));
  return kv;
}

/// Names in the checkpoint by names as rules see them.
std::map<std::string, std::string> stored_names(const Weights& weights) {
  std::map<std::string, std::string> out;
  for (const NamedSource& source : weights.tensors) {
    if (!source.stored.empty()) out.emplace(source.name, source.stored.front());
  }
  return out;
}

validate::CheckpointPlan::Fault::Kind kind_of(PlanFault::Kind kind) {
  using To = validate::CheckpointPlan::Fault::Kind;
  switch (kind) {
  case PlanFault::Kind::unknown:
    return To::unknown;
  case PlanFault::Kind::misfit:
    return To::misfit;
  case PlanFault::Kind::missing:
    return To::missing;
  case PlanFault::Kind::unable:
    return To::unable;
  }
  return To::unknown;
}

} // namespace

Result<validate::CheckpointPlan> describe_checkpoint(const FileSet& files) {
  MODELD_ASSIGN(const ArchitectureSet* architectures, ArchitectureSet::builtin());
  Weights weights;
  MODELD_ASSIGN(ModelConfig config, read_config(files, *architectures, weights));
  MODELD_TRY(rename_weights(weights, config, *architectures));
  MODELD_ASSIGN(const OutputType type, choose_file_type("auto", weights));
  validate::CheckpointPlan out;
  out.family = config.family->title;
  if (auto plain = dequantize_weights(weights, config, files, true); !plain) {
    // A part that is missing is the checkpoint's fault. Numbers that do not fit may be none: before
    // a pull the data is not there yet.
    const auto& details = plain.error().details;
    const bool missing = std::any_of(details.begin(), details.end(), [](const auto& detail) {
      return detail == std::pair<std::string, std::string>("misfit", "part");
    });
    if (!missing) return fail(std::move(plain.error()));
    using Fault = validate::CheckpointPlan::Fault;
    out.faults.push_back({Fault::Kind::packed, {}, std::move(plain.error().message)});
    return out;
  }
  std::vector<PlanFault> faults;
  PlanOptions options;
  options.overflow = Overflow::infinity;
  options.faults = &faults;
  MODELD_ASSIGN(TensorPlan plan, plan_tensors(weights, config, files, type, options));

  GgufModel model;
  model.tensors = std::move(plan.tensors);
  MODELD_ASSIGN(model.kv, metadata(config, files, type));
  MODELD_ASSIGN(GgufLayout layout, lay_out_gguf(model));
  out.header = std::move(layout.header);
  out.size = layout.file_size;
  for (TensorOrigin& origin : plan.origins) {
    out.sources.push_back(std::move(origin.sources));
  }
  const auto names = stored_names(weights);
  for (PlanFault& fault : faults) {
    const auto stored = names.find(fault.tensor);
    out.faults.push_back({kind_of(fault.kind),
                          stored == names.end() ? std::move(fault.tensor) : stored->second,
                          std::move(fault.message)});
  }
  return out;
}

} // namespace modeld::quantize
