// SPDX-License-Identifier: Apache-2.0
#include "daemon/inspection.hpp"

#include "validate/safetensors.hpp"
#include "validate/sniff.hpp"

#include <fmt/format.h>

namespace modeld::daemon {
namespace {

using validate::GgufKvView;
using validate::GgufTensorInfo;

Inspection from_gguf(const validate::GgufHeader& header) {
  Inspection file;
  file.format = "gguf";
  file.head = {{"version", std::to_string(header.version)},
               {"byte order", header.encoding.big_endian ? "big-endian" : "little-endian"},
               {"alignment", std::to_string(header.alignment)}};
  file.data_start = header.data_start;
  for (const GgufKvView& item : header.kv)
    file.metadata.push_back({std::string(item.key), item.value});
  for (const GgufTensorInfo& tensor : header.tensors) {
    file.tensors.push_back({std::string(tensor.name),
                            std::string(info(tensor.type).name),
                            {tensor.ne.begin(), tensor.ne.begin() + tensor.n_dims},
                            header.data_start + tensor.offset,
                            tensor.bytes,
                            tensor.elements()});
  }
  return file;
}

Inspection from_safetensors(const validate::SafetensorsHeader& header) {
  Inspection file;
  file.format = "safetensors";
  file.head = {{"header bytes", std::to_string(header.data_start - 8)}};
  file.data_start = header.data_start;
  for (const auto& [key, value] : header.metadata)
    file.metadata.push_back({key, value});
  for (const validate::SafetensorsTensor& tensor : header.tensors) {
    file.tensors.push_back({tensor.name, std::string(validate::info(tensor.dtype).name),
                            tensor.shape, header.data_start + tensor.begin, tensor.bytes(),
                            tensor.elements()});
  }
  return file;
}

} // namespace

std::string Inspection::Item::type() const {
  const auto* view = std::get_if<validate::GgufValueView>(&value);
  if (view == nullptr) return "str";
  if (!view->is_array()) return std::string(validate::name(view->type));
  return fmt::format("arr[{},{}]", validate::name(view->element), view->count);
}

std::map<std::string, Inspection::OfType> Inspection::types() const {
  std::map<std::string, OfType> types;
  for (const Tensor& tensor : tensors) {
    OfType& of = types[tensor.type];
    ++of.tensors;
    of.elements += tensor.elements;
    of.bytes += tensor.bytes;
  }
  return types;
}

const Inspection::Item* Inspection::find(std::string_view key) const {
  for (const Item& item : metadata)
    if (item.key == key) return &item;
  return nullptr;
}

Result<Inspection> inspect(std::span<const std::byte> file, std::string path,
                           validate::Report& report) {
  const auto ends = validate::FileEnds::of(file);
  const bool safetensors =
      path.ends_with(".safetensors") || validate::sniff(ends) == validate::ContentKind::safetensors;
  const auto kind = safetensors ? validate::ContentKind::safetensors : validate::ContentKind::gguf;
  if (validate::report_wrong_content(ends, kind, report)) return fail(*report.first_error());
  Inspection result;
  if (safetensors) {
    auto checked = validate::check_safetensors(file, file.size(), path, report.profile());
    report.merge(std::move(checked.report));
    if (!checked.value) return fail(*report.first_error());
    result = from_safetensors(*checked.value);
  } else {
    auto checked = validate::check_gguf(file, file.size(), path, report.profile());
    report.merge(std::move(checked.report));
    if (!checked.value) return fail(*report.first_error());
    result = from_gguf(*checked.value);
  }
  result.path = std::move(path);
  result.file_bytes = file.size();
  return result;
}

} // namespace modeld::daemon
