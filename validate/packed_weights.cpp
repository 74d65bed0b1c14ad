// SPDX-License-Identifier: Apache-2.0
// Weights that are stored quantized need their scales: RC-30, RC-31. And RC-40, special ids.
#include "validate/escape.hpp"
#include "validate/repository.hpp"
#include "validate/repository_facts.hpp"

#include <fmt/format.h>

#include <array>
#include <string>

namespace modeld::validate {
namespace {

/// A packed part, and the companions of which at least one of each group must lie beside it.
struct Packing {
  std::string_view part; ///< ending of the packed tensor's name
  std::array<std::array<std::string_view, 3>, 3> companions;
};

constexpr std::array k_packings{
    Packing{".qweight", {{{".qzeros", "", ""}, {".scales", "", ""}, {}}}},
    // NVFP4 has a scale for the whole tensor and the shape of its blocks, 2:4 sparse weights have
    // names of their own for both.
    Packing{".weight_packed",
            {{{".weight_scale", ".weight_global_scale", ".scale_packed"},
              {".weight_shape", ".weight_global_scale", ".meta"},
              {}}}},
    Packing{"_blocks", {{{"_scales", "", ""}, {}, {}}}},
};

bool has_any(const TensorTable& tensors, const std::string& base,
             const std::array<std::string_view, 3>& group) {
  for (const std::string_view ending : group)
    if (!ending.empty() && tensors.contains(base + std::string(ending))) return true;
  return group[0].empty();
}

void check_packing(const RepositoryFacts& facts, const Packing& packing,
                   const SafetensorsTensor& tensor, Report& report) {
  if (!tensor.name.ends_with(packing.part)) return;
  const std::string base = tensor.name.substr(0, tensor.name.size() - packing.part.size());
  for (const auto& group : packing.companions) {
    if (has_any(facts.tensors, base, group) || report.full()) continue;
    report.error("RC-30", std::nullopt,
                 fmt::format("packed tensor {} has no '{}'", quoted(tensor.name),
                             base.empty() ? group[0] : quoted(base + std::string(group[0]))),
                 "without its scale the tensor means nothing; a shard is missing or incomplete");
  }
}

bool is_fp8(SafetensorsDtype dtype) {
  using D = SafetensorsDtype;
  return dtype == D::f8_e4m3 || dtype == D::f8_e5m2 || dtype == D::f8_e4m3fnuz ||
         dtype == D::f8_e5m2fnuz;
}

void check_fp8(const RepositoryFacts& facts, const SafetensorsTensor& tensor, Report& report) {
  constexpr std::string_view k_weight = ".weight";
  if (!is_fp8(tensor.dtype) || !tensor.name.ends_with(k_weight) || tensor.shape.size() < 2) return;
  const std::string base = tensor.name.substr(0, tensor.name.size() - k_weight.size());
  for (const char* scale : {".weight_scale", ".weight_scale_inv", ".scale", ".weight_scale_2"})
    if (facts.tensors.contains(base + scale)) return;
  if (!report.full())
    report.error("RC-30", std::nullopt,
                 fmt::format("FP8 tensor {} has neither weight_scale nor weight_scale_inv",
                             quoted(tensor.name)),
                 "without its scale the tensor means nothing; a shard is missing or incomplete");
}

/// Of 4-bit weights: a scale for each block, the codes' values, and how the whole was packed.
void check_bitsandbytes(const RepositoryFacts& facts, const SafetensorsTensor& tensor,
                        Report& report) {
  constexpr std::string_view k_map = ".quant_map";
  constexpr std::string_view k_absmax = ".absmax";
  const bool map = tensor.name.ends_with(k_map);
  if ((!map && !tensor.name.ends_with(k_absmax)) || report.full()) return;
  const std::string base =
      tensor.name.substr(0, tensor.name.size() - (map ? k_map.size() : k_absmax.size()));
  if (base.ends_with(".nested") || base.ends_with("_nested")) return;
  const std::string other = base + std::string(map ? k_absmax : k_map);
  if (!facts.tensors.contains(other))
    report.error(
        "RC-30", std::nullopt,
        fmt::format("packed tensor {} has no '{}'", quoted(base), map ? "absmax" : "quant_map"),
        "without it the tensor means nothing; a shard is missing or incomplete");
}

void check_id(const RepositoryFacts& facts, JsonValue holder, std::string_view key, bool needed,
              Report& report) {
  const auto rows = facts.embedding_rows();
  if (!rows) return;
  const auto check = [&](JsonValue id) {
    if (!id.exists() || id.is_null()) return;
    const auto number = id.as_u64();
    if (number && *number < *rows) return;
    if (!needed && id.is_number() && id.text() == "-1") return; // "no padding"
    report.add("RC-40", needed ? Severity::error : Severity::warning, id.offset(),
               fmt::format("{} is {}, the embedding has {} rows", key,
                           id.is_number() || id.is_string() ? escape_text(id.text(), 40)
                                                            : describe(id.kind()),
                           *rows));
  };
  const JsonValue value = holder[key];
  if (value.is_array())
    for (const JsonValue id : value)
      check(id);
  else
    check(value);
}

} // namespace

void check_packed_weights(const RepositoryFacts& facts, Report& report) {
  report.set_path("config.json");
  if (!facts.config.root().exists()) return;
  if (!facts.quantized) {
    for (const TensorTable::Row& row : facts.tensors.rows()) {
      const std::string_view name = row.tensor->name;
      if (!name.ends_with(".qweight") && !name.ends_with(".weight_packed") &&
          !name.ends_with(".quant_map"))
        continue;
      report.warn(
          "RC-31", std::nullopt,
          fmt::format("tensor {} is packed, and there is no quantization_config", quoted(name)));
      break;
    }
    return;
  }
  for (const TensorTable::Row& row : facts.tensors.rows()) {
    for (const Packing& packing : k_packings)
      check_packing(facts, packing, *row.tensor, report);
    check_fp8(facts, *row.tensor, report);
    check_bitsandbytes(facts, *row.tensor, report);
  }
}

void check_special_ids(const RepositoryFacts& facts, Report& report) {
  report.set_path("config.json");
  // Generation goes by generation_config.json where there is one; config.json is the fallback.
  const bool generation = facts.generation.root().is_object();
  for (const std::string_view key : {"bos_token_id", "eos_token_id"})
    check_id(facts, facts.text, key, true, report);
  check_id(facts, facts.text, "pad_token_id", false, report);
  if (!generation) return;
  report.set_path("generation_config.json");
  for (const std::string_view key : {"bos_token_id", "eos_token_id"})
    check_id(facts, facts.generation.root(), key, true, report);
  check_id(facts, facts.generation.root(), "pad_token_id", false, report);
}

} // namespace modeld::validate
