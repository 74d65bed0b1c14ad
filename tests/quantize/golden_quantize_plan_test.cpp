// SPDX-License-Identifier: Apache-2.0
#include "quantize/golden_case.hpp"
#include "quantize/recipe/quantize_model.hpp"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>

using namespace modeld;
using namespace modeld::quantize;
using namespace modeld::test;

namespace {

namespace json = boost::json;

std::string describe(const GgufTensor& tensor) {
  return fmt::format("{} {} [{}]", tensor.name, info(tensor.type).name, fmt::join(tensor.ne, ","));
}

/// All parts of an input as the quantizer sees them.
GgufModel joined(const std::vector<const json::object*>& files, QuantizeRequest& request) {
  GgufModel model = described_model(*files.front());
  request.parts.assign(model.tensors.size(), 0);
  for (std::size_t i = 1; i < files.size(); ++i) {
    for (GgufTensor& tensor : described_model(*files[i]).tensors) {
      model.tensors.push_back(std::move(tensor));
      request.parts.push_back(static_cast<std::uint16_t>(i));
    }
  }
  return model;
}

/// Empty where the part has the described keys and tensors, in order.
std::string difference(const GgufModel& made, const json::object& expected) {
  const GgufModel wanted = described_model(expected);
  for (std::size_t i = 0; i < std::max(made.kv.size(), wanted.kv.size()); ++i) {
    if (i >= made.kv.size()) return "key missing: " + wanted.kv[i].key;
    if (i >= wanted.kv.size()) return "key too much: " + made.kv[i].key;
    if (made.kv[i].key != wanted.kv[i].key) {
      return fmt::format("key {}: {} instead of {}", i, made.kv[i].key, wanted.kv[i].key);
    }
    if (made.kv[i].value != wanted.kv[i].value) return "value of " + wanted.kv[i].key;
  }
  for (std::size_t i = 0; i < std::max(made.tensors.size(), wanted.tensors.size()); ++i) {
    const std::string ours = i < made.tensors.size() ? describe(made.tensors[i]) : "nothing";
    const std::string theirs = i < wanted.tensors.size() ? describe(wanted.tensors[i]) : "nothing";
    if (ours != theirs) return fmt::format("tensor {}: {} instead of {}", i, ours, theirs);
  }
  return {};
}

/// What went wrong with one run; empty where all is as expected.
std::string check_run(const GoldenCase& golden, const std::vector<const json::object*>& run) {
  const json::object& first = *run.front();
  bool dry_run = false;
  auto request = request_of(golden, first, dry_run);
  const bool refused = first.contains("error");
  if (!request) return refused ? "" : request.error().message;
  const auto files = golden.input_files(first.at("input").as_string());
  const GgufModel source = joined(files, *request);
  const auto made = quantize_model(source, *request, dry_run ? PlanOnly::yes : PlanOnly::no);
  if (!made) return refused ? "" : made.error().message;
  if (refused) return "not refused";
  if (dry_run) return {};
  if (made->parts.size() != run.size()) {
    return fmt::format("{} parts instead of {}", made->parts.size(), run.size());
  }
  for (std::size_t i = 0; i < run.size(); ++i) {
    if (auto text = difference(made->parts[i], *run[i]); !text.empty()) return text;
  }
  return {};
}

} // namespace

TEST_CASE("quantize_model plans the reference's keys, order and types for every golden run",
          "[quantize][golden][B01][B02][B08][B09][B10]") {
  for (const GoldenCase& golden : golden_quantize_cases()) {
    for (const auto& run : golden.quantize_runs()) {
      const std::string argv = json::serialize(run.front()->at("argv"));
      INFO(golden.name() << ": " << std::string_view(run.front()->at("type").as_string()) << " "
                         << argv);
      CHECK(check_run(golden, run) == "");
    }
  }
}
