// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit.hpp"

#include "quantize/convert/convert.hpp"
#include "validate/escape.hpp"
#include "validate/gguf.hpp"
#include "validate/repository.hpp"
#include "validate/shard_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace modeld::daemon {
namespace {

using validate::SafetensorsTensor;

Audit::File account_of(const FileSet& files, const std::string& path,
                       const validate::SafetensorsHeader& header, Audit& audit) {
  Audit::File file;
  file.path = path;
  file.header = header.data_start;
  if (const auto bytes = files.bytes(path)) {
    file.size = bytes->size();
    std::uint64_t at = header.data_start;
    while (at > 8 && (*bytes)[static_cast<std::size_t>(at - 1)] == std::byte{' '})
      --at;
    file.padding = header.data_start - at;
  }
  for (const SafetensorsTensor& tensor : header.tensors) {
    Audit::OfType& of = audit.types[std::string(validate::info(tensor.dtype).name)];
    ++of.tensors;
    of.elements += tensor.elements();
    of.bytes += tensor.bytes();
    file.data += tensor.bytes();
    ++file.tensors;
  }
  return file;
}

/// Contradictions between configuration and tensors; the rules are those of `check`.
void compare_with_config(const FileSet& files, Audit& audit) {
  for (const auto& checked : validate::check_repository(files, {})) {
    for (const validate::Finding& finding : checked.report.findings()) {
      if (finding.severity != validate::Severity::error) continue;
      audit.faults.push_back(fmt::format("{} {}: {}", finding.rule, checked.path, finding.message));
    }
  }
}

std::optional<bool> is_tied(const validate::WeightSet& weights) {
  bool embedding = false;
  for (const auto& header : weights.headers) {
    for (const SafetensorsTensor& tensor : header.tensors) {
      if (tensor.name.ends_with("lm_head.weight") || tensor.name == "output.weight" ||
          tensor.name.ends_with("embed_out.weight"))
        return false;
      embedding |=
          tensor.name.find("embed") != std::string::npos || tensor.name.ends_with("wte.weight");
    }
  }
  return embedding ? std::optional(true) : std::nullopt;
}

/// The converter's name for the type that most of a GGUF file is in, as its metadata say.
std::string outtype_of(const validate::GgufHeader& header) {
  const auto* value = header.find("general.file_type");
  const auto type = value == nullptr ? std::nullopt : value->as_u64();
  return type == 0 ? "f32" : type == 1 ? "f16" : type == 32 ? "bf16" : "auto";
}

/// Makes a tensor's bytes again and compares them with the file's.
Result<bool> same_values(const quantize::GgufTensor& planned, std::span<const std::byte> stored,
                         Progress& progress) {
  constexpr std::uint64_t k_slab = std::uint64_t{4} << 20;
  const std::uint64_t row = planned.row_bytes();
  const std::uint64_t rows_at_once =
      std::max<std::uint64_t>(1, k_slab / std::max<std::uint64_t>(1, row));
  std::vector<std::byte> slab;
  for (std::uint64_t first = 0; first < planned.rows(); first += rows_at_once) {
    if (progress.cancel) return fail(Errc::cancelled, "auditing: interrupted");
    const std::uint64_t count = std::min(rows_at_once, planned.rows() - first);
    slab.resize(static_cast<std::size_t>(count * row));
    MODELD_TRY(planned.source->read_rows(first, count, slab));
    const auto part = stored.subspan(static_cast<std::size_t>(first * row), slab.size());
    progress.done += slab.size();
    if (std::memcmp(slab.data(), part.data(), slab.size()) != 0) return false;
  }
  return true;
}

bool is_plain(TensorType type) {
  return type == TensorType::f32 || type == TensorType::f16 || type == TensorType::bf16;
}

Result<Audit::Output> compare_output(const quantize::GgufModel& plan,
                                     const validate::GgufHeader& header,
                                     std::span<const std::byte> gguf, Progress& progress) {
  Audit::Output output;
  output.tensors = header.tensors.size();
  progress.total = gguf.size();
  for (const quantize::GgufTensor& planned : plan.tensors) {
    const validate::GgufTensorInfo* stored = header.find_tensor(planned.name);
    if (stored == nullptr) {
      output.missing.push_back(planned.name);
      continue;
    }
    const bool same_shape =
        std::equal(planned.ne.begin(), planned.ne.end(), stored->ne.begin()) &&
        std::all_of(stored->ne.begin() + static_cast<std::ptrdiff_t>(planned.ne.size()),
                    stored->ne.end(), [](std::uint64_t dim) { return dim == 1; });
    if (!same_shape) output.other_shape.push_back(planned.name);
    if (!same_shape || stored->type != planned.type || !is_plain(planned.type)) continue;
    MODELD_ASSIGN(const bool same, same_values(planned, header.data(gguf, *stored), progress));
    ++output.compared;
    if (!same) output.other_values.push_back(planned.name);
  }
  for (const validate::GgufTensorInfo& stored : header.tensors) {
    const bool known =
        std::any_of(plan.tensors.begin(), plan.tensors.end(),
                    [&](const auto& planned) { return planned.name == stored.name; });
    if (!known) output.extra.emplace_back(stored.name);
  }
  return output;
}

} // namespace

std::uint64_t Audit::tensors() const {
  std::uint64_t sum = 0;
  for (const auto& [name, of] : types)
    sum += of.tensors;
  return sum;
}

std::uint64_t Audit::elements() const {
  std::uint64_t sum = 0;
  for (const auto& [name, of] : types)
    sum += of.elements;
  return sum;
}

std::uint64_t Audit::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [name, of] : types)
    sum += of.bytes;
  return sum;
}

bool Audit::balanced() const {
  const bool whole = std::all_of(files.begin(), files.end(), [](const File& file) {
    return file.header + file.data == file.size;
  });
  const bool declared = !declared_bytes || *declared_bytes == bytes();
  const bool made = !output || (output->missing.empty() && output->extra.empty() &&
                                output->other_shape.empty() && output->other_values.empty());
  return whole && declared && faults.empty() && made;
}

Result<Audit> audit(const FileSet& files, std::span<const std::byte> gguf, Progress& progress) {
  Audit result;
  MODELD_ASSIGN(const auto weights, validate::read_weight_set(files, validate::Profile::compat));
  for (std::size_t i = 0; i < weights.headers.size(); ++i)
    result.files.push_back(
        account_of(files, weights.selection.files[i], weights.headers[i], result));
  if (weights.index) result.declared_bytes = weights.index->total_size;
  result.tied = is_tied(weights);
  compare_with_config(files, result);
  quantize::ConvertOptions options;
  options.no_vocabulary = true; // tensors only
  std::optional<validate::GgufHeader> header;
  if (!gguf.empty()) {
    MODELD_ASSIGN(header, validate::read_gguf(gguf, "the GGUF file", validate::Profile::compat));
    options.outtype = outtype_of(*header);
  }
  auto converted = quantize::convert(files, options);
  if (!converted) {
    result.conversion_error = converted.error().message;
    if (header) return fail(std::move(converted).error().context("auditing the GGUF file"));
    return result;
  }
  result.planned = converted->model.tensors.size();
  result.left_out = converted->left_out;
  if (header) {
    MODELD_ASSIGN(result.output, compare_output(converted->model, *header, gguf, progress));
  }
  return result;
}

} // namespace modeld::daemon
