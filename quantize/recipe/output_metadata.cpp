// SPDX-License-Identifier: Apache-2.0
#include "quantize/recipe/output_metadata.hpp"

#include "quantize/recipe/file_type.hpp"
#include "schema/recipe.hpp"

#include <map>

namespace modeld::quantize {
namespace {

constexpr std::uint32_t k_quantization_version = 2; // ggml's GGML_QNT_VERSION

/// Writes a key behind all others, as the reference's writer does.
void put_last(GgufModel& model, std::string_view key, GgufValue value) {
  model.erase(key);
  model.kv.push_back({std::string(key), std::move(value)});
}

} // namespace

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

void write_metadata(GgufModel& model, const GgufModel& source, const MetadataFacts& facts) {
  model.kv = source.kv;
  put_last(model, "general.quantization_version", k_quantization_version);
  put_last(model, "general.file_type", facts.file_type);
  for (const std::string_view key : {"split.no", "split.count", "split.tensors.count"}) {
    model.erase(key);
  }
  for (const GgufKv& kv : facts.overrides) {
    put_last(model, kv.key, kv.value);
  }
  if (facts.importance != nullptr) {
    constexpr std::size_t k_text = 127; // what the reference has room for
    const Importance& importance = *facts.importance;
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
  if (facts.layers_left) {
    const auto& architecture = std::get<std::string>(*source.find("general.architecture"));
    put_last(model, architecture + ".block_count", *facts.layers_left);
  }
}

void write_split_keys(std::vector<GgufModel>& parts, std::size_t tensors) {
  if (parts.size() < 2) return;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    put_last(parts[i], "split.no", static_cast<std::uint16_t>(i));
    put_last(parts[i], "split.count", static_cast<std::uint16_t>(parts.size()));
    put_last(parts[i], "split.tensors.count", static_cast<std::int32_t>(tensors));
  }
}

} // namespace modeld::quantize
