// SPDX-License-Identifier: Apache-2.0
#include "daemon/quantize_report.hpp"

#include "quantize/gguf/gguf_writer.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <system_error>

namespace modeld::daemon {
namespace {

namespace json = boost::json;
using quantize::QuantizedModel;
using quantize::TensorDecision;

constexpr double k_mib = 1024.0 * 1024.0;

/// As ggml writes it: small letters but for the K.
std::string type_name(TensorType type) {
  std::string name(info(type).name);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name.ends_with("_k")) name.back() = 'K';
  return name;
}

struct Totals {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t elements = 0;
};

Totals totals_of(const QuantizedModel& made) {
  Totals totals;
  for (const TensorDecision& d : made.decisions) {
    totals.from += d.bytes_from;
    totals.to += d.bytes_to;
    totals.elements += d.bytes_from / info(d.from).bytes * info(d.from).block;
  }
  return totals;
}

double bits(std::uint64_t bytes, std::uint64_t elements) {
  return elements == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(elements);
}

std::string plan_line(std::size_t number, std::size_t count, const TensorDecision& d) {
  const std::string from = type_name(d.from);
  if (d.from == d.to) {
    return fmt::format("[{:4}/{:4}] {:<36} {:>6}, {:8.3f} MiB", number, count, d.name, from,
                       static_cast<double>(d.bytes_from) / k_mib);
  }
  return fmt::format("[{:4}/{:4}] {:<36} {:>6}, {:8.2f} MiB -> {:8.2f} MiB ({}){}{}", number, count,
                     d.name, from, static_cast<double>(d.bytes_from) / k_mib,
                     static_cast<double>(d.bytes_to) / k_mib, type_name(d.to),
                     d.weighted ? ", weighted" : "",
                     d.unguided_low ? ", needs an importance matrix" : "");
}

json::object plan_json(const QuantizedModel& made) {
  json::array tensors;
  for (const TensorDecision& d : made.decisions) {
    tensors.push_back(json::object{{"name", d.name},
                                   {"from", info(d.from).name},
                                   {"to", info(d.to).name},
                                   {"wanted", info(d.wanted).name},
                                   {"bytes_from", d.bytes_from},
                                   {"bytes_to", d.bytes_to},
                                   {"weighted", d.weighted},
                                   {"needs_importance", d.unguided_low}});
  }
  const Totals totals = totals_of(made);
  return {{"tensors", std::move(tensors)},
          {"bytes_from", totals.from},
          {"bytes_to", totals.to},
          {"bits_per_weight", bits(totals.to, totals.elements)}};
}

} // namespace

void show_warnings(Output& out, const QuantizedModel& made) {
  for (const std::string& warning : made.warnings) {
    out.message("warning: " + warning);
  }
  for (const TensorDecision& d : made.decisions) {
    if (d.to == d.wanted) continue;
    out.message(fmt::format("warning: '{}' becomes {} instead of {}: its rows are not whole blocks "
                            "of {}",
                            d.name, info(d.to).name, info(d.wanted).name, info(d.wanted).block));
  }
}

void show_plan(Output& out, const quantize::GgufModel& source, const QuantizedModel& made) {
  if (out.json()) {
    out.result(plan_json(made));
    return;
  }
  const std::size_t count = source.tensors.size();
  for (std::size_t i = 0; i < made.decisions.size(); ++i) {
    out.result(plan_line(i + 1, count, made.decisions[i]));
  }
  const Totals totals = totals_of(made);
  out.result(fmt::format("model size  = {:8.2f} MiB ({:.2f} BPW)",
                         static_cast<double>(totals.from) / k_mib,
                         bits(totals.from, totals.elements)));
  out.result(fmt::format("quant size  = {:8.2f} MiB ({:.2f} BPW)",
                         static_cast<double>(totals.to) / k_mib, bits(totals.to, totals.elements)));
  const bool needs = std::any_of(made.decisions.begin(), made.decisions.end(),
                                 [](const TensorDecision& d) { return d.unguided_low; });
  if (needs) out.message("warning: this quantization will need an importance matrix");
}

void show_result(Output& out, const QuantizedModel& made,
                 const std::vector<std::filesystem::path>& paths) {
  const Totals totals = totals_of(made);
  if (out.json()) {
    json::object object = plan_json(made);
    json::array files;
    for (const auto& path : paths) {
      files.emplace_back(path.string());
    }
    object["files"] = std::move(files);
    out.result(object);
    return;
  }
  for (const auto& path : paths) {
    out.result(path.string());
  }
  out.message(fmt::format(
      "{:.2f} MiB -> {:.2f} MiB, {:.2f} bits a weight", static_cast<double>(totals.from) / k_mib,
      static_cast<double>(totals.to) / k_mib, bits(totals.to, totals.elements)));
}

Result<void> check_free_space(const std::filesystem::path& path, std::uint64_t bytes) {
  std::error_code ec;
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const auto space = std::filesystem::space(folder, ec);
  if (ec || space.available >= bytes) return {};
  return fail(Errc::no_space,
              fmt::format("writing '{}': needs {} bytes; {} are free", path.string(), bytes,
                          space.available),
              "free space, or write to another file system");
}

} // namespace modeld::daemon
