// SPDX-License-Identifier: Apache-2.0
#include "daemon/convert_report.hpp"

#include "quantize/gguf/gguf_writer.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <utility>

namespace modeld::daemon {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

json::array shape_of(const quantize::GgufTensor& tensor) {
  json::array ne;
  for (const std::uint64_t n : tensor.ne) {
    ne.emplace_back(n);
  }
  return ne;
}

} // namespace

Result<void> show_plan(Output& out, std::string_view family,
                       const std::vector<quantize::GgufModel>& parts,
                       const std::vector<fs::path>& paths) {
  json::array files;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    MODELD_ASSIGN(const std::uint64_t size, quantize::gguf_file_size(parts[i]));
    json::array tensors;
    for (const quantize::GgufTensor& tensor : parts[i].tensors) {
      const json::array ne = shape_of(tensor);
      const std::string_view type = info(tensor.type).name;
      if (!out.json()) {
        out.result(fmt::format("{:<44} {:<6} {:>12} {}", tensor.name, type, tensor.bytes(),
                               json::serialize(ne)));
      }
      tensors.push_back(
          {{"name", tensor.name}, {"type", type}, {"bytes", tensor.bytes()}, {"ne", ne}});
    }
    if (!out.json()) {
      out.result(fmt::format("{}: {} tensors, {} bytes", paths[i].string(), tensors.size(), size));
    }
    files.push_back(
        {{"path", paths[i].string()}, {"bytes", size}, {"tensors", std::move(tensors)}});
  }
  if (out.json()) out.result({{"family", family}, {"files", std::move(files)}});
  return {};
}

void show_written(Output& out, const std::vector<fs::path>& paths) {
  json::array all;
  for (const fs::path& path : paths) {
    if (!out.json()) out.result(path.string());
    all.emplace_back(path.string());
  }
  if (out.json()) out.result({{"paths", std::move(all)}});
}

} // namespace modeld::daemon
