// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/adapter.hpp"
#include "quantize/convert/config.hpp"
#include "quantize/convert/convert.hpp"
#include "quantize/convert/keys.hpp"
#include "quantize/convert/tensors.hpp"
#include "quantize/convert/weights.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace json = boost::json;

namespace modeld::quantize {
namespace {

Result<ModelConfig> base_config(const FileSet& base, const Weights& weights,
                                const ArchitectureSet& architectures) {
  json::object facts{{"no_mtp", false}, {"mtp_only", false}, {"adapter", ""}};
  MODELD_ASSIGN(ModelConfig config,
                load_config(base, architectures, FamilyKind::model, std::move(facts)));
  json::array names;
  for (const NamedSource& source : weights.tensors) {
    names.emplace_back(source.name);
  }
  config.facts["tensors"] = std::move(names);
  MODELD_TRY(prepare_config(config, base));
  return config;
}

/// The reference leaves them out without a word, so the adapter would do less than it was trained
/// for.
Result<void> refuse_dropped(const Weights& weights, const ModelConfig& config) {
  if (weights.dropped.empty()) return {};
  Error error{Errc::unsupported,
              fmt::format("converting an adapter: {} of its changes have no place in a '{}' model: "
                          "{}",
                          weights.dropped.size(), config.family->arch,
                          fmt::join(weights.dropped, ", ")),
              "--force leaves them out, as the reference does",
              {},
              0};
  for (const std::string& name : weights.dropped) {
    error.details.emplace_back("tensor", name);
  }
  return fail(std::move(error));
}

Result<OutputType> output_type(const std::string& outtype, const Weights& weights) {
  MODELD_ASSIGN(const OutputType type, choose_file_type(outtype, weights));
  if (type.tensors == TensorType::tq1_0 || type.tensors == TensorType::tq2_0) {
    return fail(Errc::invalid_argument,
                fmt::format("reading outtype '{}': of an adapter f32, f16, bf16, q8_0 and auto are "
                            "known",
                            outtype));
  }
  return type;
}

void write_keys_of(const AdapterConfig& adapter, const MetadataResult& metadata,
                   const std::string& arch, std::vector<GgufKv>& kv) {
  set_kv(kv, {"general.architecture", arch});
  set_kv(kv, {"general.type", "adapter"});
  set_kv(kv, {"adapter.type", "lora"});
  for (const GgufKv& entry : metadata.kv) {
    set_kv(kv, entry);
  }
  set_kv(kv, {"adapter.lora.alpha", adapter.alpha});
  if (!adapter.invocation_tokens.empty()) {
    set_kv(kv, {"adapter.alora.invocation_tokens", GgufArray(adapter.invocation_tokens)});
  }
  set_kv(kv, {"general.quantization_version", k_quantization_version});
}

} // namespace

Result<ConvertResult> convert_adapter(const FileSet& adapter, const FileSet& base,
                                      const AdapterOptions& options) {
  MODELD_ASSIGN(const ArchitectureSet* architectures, ArchitectureSet::builtin());
  return convert_adapter(adapter, base, options, *architectures);
}

Result<ConvertResult> convert_adapter(const FileSet& adapter, const FileSet& base,
                                      const AdapterOptions& options,
                                      const ArchitectureSet& architectures) {
  MODELD_ASSIGN(const AdapterConfig settings, read_adapter_config(adapter, options.force));
  MODELD_ASSIGN(Weights weights, open_adapter(adapter));
  MODELD_ASSIGN(const ModelConfig config, base_config(base, weights, architectures));
  MODELD_TRY(rename_weights(weights, config, architectures));
  if (!options.force) MODELD_TRY(refuse_dropped(weights, config));
  MODELD_ASSIGN(const OutputType type, output_type(options.outtype, weights));
  PlanOptions planning;
  planning.adapter = true;
  planning.overflow = options.force ? Overflow::infinity : Overflow::refuse;
  MODELD_ASSIGN(TensorPlan plan, plan_tensors(weights, config, base, type, planning));

  ConvertResult out;
  MetadataRequest request;
  request.parameters = plan.parameters;
  request.ignore_card = options.ignore_card;
  MODELD_ASSIGN(out.metadata, read_metadata(adapter, request));
  write_keys_of(settings, out.metadata, config.family->arch, out.model.kv);
  out.model.tensors = std::move(plan.tensors);
  out.model.big_endian = options.big_endian;
  out.file_type = type.name;
  out.family = config.family->title;
  out.named_for = NamedFor::adapter;
  out.warnings = out.metadata.warnings;
  out.left_out = std::move(weights.dropped);
  return out;
}

} // namespace modeld::quantize
