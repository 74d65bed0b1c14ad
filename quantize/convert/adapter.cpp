// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/adapter.hpp"

#include "quantize/convert/facts.hpp"
#include "quantize/convert/low_rank.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace json = boost::json;

namespace modeld::quantize {
namespace {

constexpr std::string_view k_config = "adapter_config.json";
constexpr std::string_view k_weights = "adapter_model.safetensors";

bool on(const json::object& config, std::string_view name) {
  const json::value* value = config.if_contains(name);
  return value != nullptr && truthy(*value);
}

tl::unexpected<Error> refused(std::string_view why, std::string hint) {
  return fail(Errc::unsupported, fmt::format("reading '{}': {}", k_config, why), std::move(hint));
}

/// Settings that a file of low-rank factors and one alpha cannot express.
Result<void> check_method(const json::object& config, bool force) {
  if (const json::value* type = config.if_contains("peft_type"); type != nullptr) {
    if (!type->is_string() || type->get_string() != "LORA") {
      return refused(fmt::format("peft_type is {}, expected \"LORA\"", json::serialize(*type)),
                     "merge the adapter into its base model with its own tools");
    }
  }
  if (on(config, "use_dora")) {
    return refused("use_dora is set: GGUF holds no magnitudes of weights",
                   "merge the adapter into its base model with its own tools");
  }
  const std::string wrong = "the reference writes a file whose changes have another strength; "
                            "--force writes it all the same";
  if (!force && on(config, "use_rslora")) {
    return refused("use_rslora is set: runtimes scale by alpha / rank, not by alpha / sqrt(rank)",
                   wrong);
  }
  if (!force && on(config, "alpha_pattern")) {
    return refused("alpha_pattern gives some modules an alpha of their own: GGUF holds one", wrong);
  }
  if (!force && on(config, "fan_in_fan_out")) {
    return refused("fan_in_fan_out is set: the factors would come out transposed", wrong);
  }
  return {};
}

void erase_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
}

/// The weight that a tensor of an adapter belongs to.
std::string weight_name(std::string name) {
  erase_all(name, "base_model.model.", "");
  for (const std::string_view part :
       {".lora_A.weight", ".lora_B.weight", ".lora_embedding_A", ".lora_embedding_B"}) {
    erase_all(name, part, ".weight");
  }
  return name;
}

enum class Part { a, b, norm, base, other };

Part part_of(std::string_view name) {
  const auto holds = [name](std::string_view text) { return name.find(text) != name.npos; };
  if (holds(".lora_A.weight") || holds(".lora_embedding_A")) return Part::a;
  if (holds(".lora_B.weight") || holds(".lora_embedding_B")) return Part::b;
  if (holds(".base_layer.weight")) return Part::base;
  if (holds("_layernorm") || holds(".norm")) return Part::norm;
  return Part::other;
}

tl::unexpected<Error> refuse_others(const std::vector<std::string>& names) {
  std::string why = "an adapter in GGUF holds low-rank factors and norms only";
  for (const std::string& name : names) {
    if (name.find("lora_magnitude_vector") != std::string::npos) {
      why = "this is a DoRA adapter: GGUF holds no magnitudes of weights";
    } else if (name.find("embed_tokens") != std::string::npos ||
               name.find("lm_head") != std::string::npos) {
      why = "whole embeddings stand in it, as where tokens were added in training";
    }
  }
  Error error{Errc::unsupported,
              fmt::format("reading '{}': {} tensors are no part of a LoRA: {}", k_weights,
                          names.size(), fmt::join(names, ", ")),
              why + "; merge the adapter into its base model with its own tools",
              {},
              0};
  for (const std::string& name : names) {
    error.details.emplace_back("tensor", name);
  }
  return fail(std::move(error));
}

struct Factors {
  std::string weight;
  SourcePtr a;
  SourcePtr b;
};

} // namespace

Result<AdapterConfig> read_adapter_config(const FileSet& files, bool force) {
  if (!files.contains(k_config)) {
    return fail(Errc::not_found,
                fmt::format("converting '{}': there is no {}", files.name(), k_config),
                "give the folder that PEFT saved the adapter to");
  }
  MODELD_ASSIGN(const json::object config, read_json_file(files, k_config));
  MODELD_TRY(check_method(config, force));
  AdapterConfig out;
  const json::value* alpha = config.if_contains("lora_alpha");
  const auto strength = alpha == nullptr ? std::nullopt : as_number(*alpha);
  if (!strength || !std::isfinite(static_cast<float>(*strength))) {
    return fail(Errc::malformed,
                fmt::format("reading '{}': lora_alpha is {}, expected a number", k_config,
                            alpha == nullptr ? "missing" : json::serialize(*alpha)));
  }
  out.alpha = static_cast<float>(*strength);
  if (const json::value* base = config.if_contains("base_model_name_or_path");
      base != nullptr && base->is_string()) {
    out.base_model = std::string(base->get_string());
  }
  const json::value* tokens = config.if_contains("alora_invocation_tokens");
  if (tokens != nullptr && tokens->is_array()) {
    for (const json::value& token : tokens->get_array()) {
      const auto id = as_integer(token);
      if (!id || *id < 0 || *id > std::numeric_limits<std::uint32_t>::max()) {
        return fail(Errc::malformed,
                    fmt::format("reading '{}': alora_invocation_tokens holds {}, expected numbers "
                                "of tokens",
                                k_config, json::serialize(token)));
      }
      out.invocation_tokens.push_back(static_cast<std::uint32_t>(*id));
    }
  }
  if (out.invocation_tokens.empty() && on(config, "invocation_string")) {
    return refused("invocation_string is given as text only",
                   "add alora_invocation_tokens with the numbers of its tokens, without the first");
  }
  return out;
}

Result<Weights> open_adapter(const FileSet& files) {
  if (!files.contains(k_weights)) {
    const bool pickle = files.contains("adapter_model.bin");
    return fail(pickle ? Errc::unsupported : Errc::not_found,
                fmt::format("converting '{}': there is no {}{}", files.name(), k_weights,
                            pickle ? ", only a pickle (adapter_model.bin)" : ""),
                pickle ? "a pickle can run code when it is read; save the adapter as safetensors"
                       : "give the folder that PEFT saved the adapter to");
  }
  MODELD_ASSIGN(std::vector<NamedSource> sources, open_weight_file(files, std::string(k_weights)));
  Weights weights;
  std::vector<Factors> pairs;
  std::map<std::string, std::size_t> places;
  std::vector<std::string> others;
  for (NamedSource& source : sources) {
    const Part part = part_of(source.name);
    if (part == Part::base) continue;
    if (part == Part::other) {
      others.push_back(source.name);
      continue;
    }
    if (source.tensor == nullptr) {
      return fail(Errc::unsupported,
                  fmt::format("reading tensor '{}': element type {} cannot be converted",
                              source.name, source.unreadable));
    }
    std::string weight = weight_name(source.name);
    if (part == Part::norm) {
      source.name = std::move(weight);
      weights.tensors.push_back(std::move(source));
      continue;
    }
    const auto [place, fresh] = places.emplace(weight, pairs.size());
    if (fresh) pairs.push_back({std::move(weight), nullptr, nullptr});
    Factors& pair = pairs[place->second];
    (part == Part::a ? pair.a : pair.b) = source.tensor;
  }
  if (!others.empty()) return refuse_others(others);
  for (Factors& pair : pairs) {
    if (pair.a == nullptr || pair.b == nullptr) {
      return fail(Errc::malformed,
                  fmt::format("reading '{}': of the change of '{}' only factor {} is there",
                              k_weights, pair.weight, pair.a == nullptr ? "B" : "A"),
                  "save or download the adapter again: its file is incomplete");
    }
    auto change = low_rank(std::move(pair.a), std::move(pair.b));
    if (!change) {
      return fail(std::move(change.error())
                      .context(fmt::format("reading the change of '{}'", pair.weight)));
    }
    NamedSource source;
    source.name = std::move(pair.weight);
    source.tensor = *std::move(change);
    weights.tensors.push_back(std::move(source));
  }
  if (pairs.empty()) {
    return fail(Errc::malformed,
                fmt::format("reading '{}': there are no low-rank factors in it", k_weights));
  }
  return weights;
}

} // namespace modeld::quantize
