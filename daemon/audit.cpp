// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit.hpp"

#include "quantize/convert/convert.hpp"
#include "quantize/convert/describe.hpp"
#include "validate/escape.hpp"
#include "validate/repository.hpp"
#include "validate/shard_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

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
  validate::CheckOptions how;
  how.plan = quantize::describe_checkpoint;
  for (const auto& checked : validate::check_repository(files, how)) {
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

/// What conversion makes, and where every source tensor goes.
void account_for_sources(const quantize::ConvertResult& converted,
                         const validate::WeightSet& weights, Audit& audit) {
  std::map<std::string_view, std::size_t> uses;
  for (std::size_t i = 0; i < converted.model.tensors.size(); ++i) {
    const quantize::GgufTensor& tensor = converted.model.tensors[i];
    const quantize::TensorOrigin& origin = converted.origins[i];
    audit.made.push_back({tensor.name,
                          std::string(info(tensor.type).name),
                          tensor.ne,
                          origin.sources,
                          origin.operations,
                          {}});
    for (const std::string& name : origin.sources)
      ++uses[name];
  }
  audit.left_out = converted.left_out;
  const std::set<std::string_view> left_out(audit.left_out.begin(), audit.left_out.end());
  for (const auto& header : weights.headers) {
    for (const SafetensorsTensor& tensor : header.tensors) {
      const auto used = uses.find(tensor.name);
      if (used == uses.end() && !left_out.contains(tensor.name))
        audit.not_used.push_back(tensor.name);
      if (used != uses.end() && used->second > 1) audit.used_often.push_back(tensor.name);
    }
  }
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
  const bool same = !output || (output->missing.empty() && output->extra.empty() &&
                                output->other_shape.empty() && output->other_values.empty());
  return whole && declared && faults.empty() && conversion_error.empty() && not_used.empty() &&
         same;
}

Result<Audit> audit(const FileSet& files, const std::optional<AuditedOutput>& output,
                    Progress& progress) {
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
  const auto converted = quantize::convert(files, options);
  if (!converted) {
    result.conversion_error = converted.error().message;
    return result;
  }
  account_for_sources(*converted, weights, result);
  if (output) {
    MODELD_ASSIGN(result.output, audit_output(files, *output, result.made, progress));
  }
  return result;
}

} // namespace modeld::daemon
