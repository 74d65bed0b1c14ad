// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/convert.hpp"

#include "quantize/gguf/pipeline.hpp"
#include "tests/quantize/byte_collector.hpp"
#include "tests/quantize/golden_snapshot.hpp"
#include "validate/sha256.hpp"

#include <catch2/catch.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

// Adapters over golden cases, one for each way in which families change their weights.
// adapters.json holds the digests of the reference's files. An adapter changes every matrix but
// embeddings, outputs and towers; its data is the stream of the golden cases.

using namespace modeld;
using namespace modeld::quantize;
namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

bool is_adapted(std::string_view name, const json::array& shape) {
  constexpr std::array<std::string_view, 7> k_others{"embed", "lm_head", "wte",      "wpe",
                                                     "norm",  "vision",  "projector"};
  return shape.size() == 2 && name.ends_with(".weight") &&
         std::none_of(k_others.begin(), k_others.end(),
                      [name](std::string_view part) { return name.find(part) != name.npos; });
}

std::string header_of(const fs::path& folder, std::int64_t rank, const std::string& dtype) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> shapes;
  const json::value files = json::parse(test::read_file(folder / "weights.json"));
  for (const json::value& file : files.as_array()) {
    const json::value header = json::parse(file.at("header").as_string());
    for (const auto& member : header.as_object()) {
      if (member.key() == "__metadata__") continue;
      const json::array& shape = member.value().at("shape").as_array();
      const std::string_view name = member.key();
      if (!is_adapted(name, shape)) continue;
      const std::string stem =
          "base_model.model." + std::string(name.substr(0, name.size() - 7)); // ".weight"
      shapes[stem + ".lora_A.weight"] = {rank, shape[1].to_number<std::int64_t>()};
      shapes[stem + ".lora_B.weight"] = {shape[0].to_number<std::int64_t>(), rank};
    }
  }
  json::object header;
  std::int64_t at = 0;
  for (const auto& [name, shape] : shapes) {
    const std::int64_t end = at + shape.first * shape.second * (dtype == "F32" ? 4 : 2);
    header[name] = {
        {"dtype", dtype}, {"shape", {shape.first, shape.second}}, {"data_offsets", {at, end}}};
    at = end;
  }
  return json::serialize(header);
}

} // namespace

TEST_CASE("adapters over models of many families equal the reference's",
          "[quantize][adapter][golden]") {
  const fs::path list = fs::path(MODELD_TEST_DATA) / "quantize" / "adapters.json";
  const json::value all = json::parse(test::read_file(list));
  for (const json::value& value : all.as_array()) {
    const std::string name(value.at("case").as_string());
    const std::string dtype(value.at("dtype").as_string());
    CAPTURE(name, dtype);
    const fs::path folder = fs::path(MODELD_GOLDEN) / name;
    const std::string header = header_of(folder, value.at("rank").as_int64(), dtype);
    const test::MemoryFiles adapter(
        "adapter", {{"adapter_config.json", R"({"peft_type": "LORA", "lora_alpha": 16})"},
                    {"adapter_model.safetensors", test::stream_file(header)}});
    const test::MemoryFiles base = test::golden_snapshot(folder, name);
    AdapterOptions options;
    options.outtype = std::string(value.at("outtype").as_string());
    const auto made = convert_adapter(adapter, base, options);
    if (value.as_object().contains("error")) {
      CHECK_FALSE(made);
      continue;
    }
    if (!made) FAIL(made.error().message);
    test::ByteCollector sink;
    REQUIRE(write_gguf(made->model, sink, {}));
    CHECK(validate::sha256_of(sink.bytes).hex() == std::string(value.at("sha256").as_string()));
  }
}
