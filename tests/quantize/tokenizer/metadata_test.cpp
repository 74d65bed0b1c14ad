// SPDX-License-Identifier: Apache-2.0
#include "quantize/metadata/metadata.hpp"

#include "tests/quantize/tokenizer/golden_kv.hpp"
#include "tests/support/memory_files.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <string>

using namespace modeld;
using namespace modeld::quantize;
using test::MemoryFiles;

namespace {

std::string text_of(const boost::json::object& row, std::string_view key) {
  const auto& value = row.at(key);
  return value.is_string() ? std::string(value.get_string()) : boost::json::serialize(value);
}

/// A golden row as a repository and a request.
struct Row {
  MemoryFiles files;
  MetadataRequest request;
};

Row row_of(const boost::json::object& row) {
  Row out{MemoryFiles(text_of(row, "model_dir")), {}};
  for (const char* file : {"README.md", "config.json", "generation_config.json"}) {
    if (row.contains(file)) out.files.put(file, text_of(row, file));
  }
  if (row.contains("generation_config.json.text")) {
    out.files.put("generation_config.json", text_of(row, "generation_config.json.text"));
  }
  if (row.contains("metadata_override")) {
    out.request.override_file = row.at("metadata_override").as_object();
  }
  if (row.contains("model_name")) out.request.model_name = text_of(row, "model_name");
  out.request.parameters.total = row.at("total_params").as_int64();
  return out;
}

/// Whether the reference fails on the row, while reading or on writing a key.
bool reference_fails(const boost::json::object& row) {
  if (!row.contains("kv")) return true;
  for (const auto& kv : row.at("kv").as_array()) {
    if (kv.as_object().contains("error")) return true;
  }
  return false;
}

void check_row(const boost::json::object& row) {
  auto [files, request] = row_of(row);
  const auto result = read_metadata(files, request);
  if (reference_fails(row)) {
    REQUIRE_FALSE(result);
    CHECK(result.error().code == Errc::malformed);
    CHECK_FALSE(result.error().hint.empty());
    return;
  }
  if (!result) FAIL(result.error().message);
  CHECK(test::describe(result->kv, {"general."}) ==
        test::describe_golden(row.at("kv").as_array(), {"general."}));
  CHECK(default_file_name(*result, "F16", NamedFor::model) == text_of(row, "default_filename"));
}

} // namespace

TEST_CASE("read_metadata gives the reference's keys for every golden row",
          "[quantize][metadata][golden]") {
  const auto golden =
      test::read_json_file(std::string(MODELD_TEST_DATA) + "/golden/metadata-names.json");
  std::size_t rows = 0;
  for (const auto& [section, list] : golden.as_object()) {
    if (!list.is_array()) continue;
    for (const auto& row : list.get_array()) {
      INFO(std::string_view(section) << " " << boost::json::serialize(row).substr(0, 400));
      check_row(row.as_object());
      ++rows;
    }
  }
  CHECK(rows == 118);
}

TEST_CASE("read_metadata refuses values of a wrong type and names key and remedy",
          "[quantize][metadata]") {
  MemoryFiles files("Foo-7B", {{"README.md", "---\nmodel_version: 3\n---\n"}});
  const auto result = read_metadata(files, {});
  REQUIRE_FALSE(result);
  CHECK(result.error().message ==
        "writing 'general.version': a whole number (3) where text is needed");
  CHECK(result.error().hint.find("quote the value") != std::string::npos);
}

TEST_CASE("read_metadata writes a list of nothing but numbers as numbers", "[quantize][metadata]") {
  MemoryFiles files("Foo-7B", {{"README.md", "---\ntags: [1, 2]\n---\n"}});
  const auto result = read_metadata(files, {});
  REQUIRE(result);
  CHECK(
      test::describe(result->kv, {"general.tags"}) ==
      test::describe({{"general.tags", GgufArray(std::vector<std::int32_t>{1, 2})}}, {"general."}));
  files.put("README.md", "---\ntags: [1, two]\n---\n");
  CHECK_FALSE(read_metadata(files, {}));
}

TEST_CASE("read_metadata leaves a malformed card out on request, with a warning",
          "[quantize][metadata]") {
  MemoryFiles files("Foo-7B", {{"README.md", "---\nlicense: [unclosed\n---\n"}});
  CHECK_FALSE(read_metadata(files, {}));
  MetadataRequest request;
  request.ignore_card = true;
  const auto result = read_metadata(files, request);
  REQUIRE(result);
  CHECK(result->warnings.size() == 1);
  CHECK(result->name == "Foo 7B");
}

TEST_CASE("read_metadata refuses cards that would make it work without end",
          "[quantize][metadata]") {
  SECTION("an alias that contains itself") {
    MemoryFiles files("m", {{"README.md", "---\ntags: &a\n- *a\n---\n"}});
    CHECK_FALSE(read_metadata(files, {}));
  }
  SECTION("aliases of aliases") {
    std::string card = "---\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 12; ++i) {
      card += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
      for (int n = 0; n < 10; ++n) {
        card += "*a" + std::to_string(i - 1) + (n < 9 ? ", " : "]\n");
      }
    }
    MemoryFiles files("m", {{"README.md", card + "---\n"}});
    const auto result = read_metadata(files, {});
    REQUIRE_FALSE(result);
    CHECK(result.error().code == Errc::malformed);
  }
  SECTION("a comma first, of which the YAML library makes documents without end") {
    MemoryFiles files("m", {{"README.md", "---\n,icense: mit\n---\n"}});
    CHECK_FALSE(read_metadata(files, {}));
  }
  SECTION("brackets without end") {
    MemoryFiles files("m", {{"README.md", "---\nx: " + std::string(100000, '[') + "\n---\n"}});
    CHECK_FALSE(read_metadata(files, {}));
  }
}

TEST_CASE("read_metadata survives every truncation and bit flip of a card",
          "[quantize][metadata]") {
  const std::string card =
      "---\nlicense: apache-2.0\nlanguage:\n- en\n- no\nbase_model: a/B-7B-v0.1\n"
      "tags: [a, 'b c', \"d\"]\ndate: 2024-01-01\nx: &y {k: 1.5}\nz: *y\n---\n";
  for (std::size_t n = 0; n <= card.size(); ++n) {
    MemoryFiles files("Foo-7B", {{"README.md", card.substr(0, n)}});
    (void)read_metadata(files, {});
  }
  for (std::size_t bit = 0; bit < card.size() * 8; ++bit) {
    std::string changed = card;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    MemoryFiles files("Foo-7B", {{"README.md", changed}});
    (void)read_metadata(files, {});
  }
}

TEST_CASE("size_label shows two digits and counts experts", "[quantize][metadata]") {
  CHECK(size_label({337248, 0, 0, 0}) == "337K");
  CHECK(size_label({1'000'000, 0, 0, 0}) == "1000K");
  CHECK(size_label({1'234'567, 0, 0, 0}) == "1.2M");
  CHECK(size_label({7'000'000'000, 0, 0, 0}) == "7.0B");
  CHECK(size_label({-5'000'000, 0, 0, 0}) == "5.0M");
  CHECK(size_label({0, 1'500'000'000, 5'500'000'000, 8}) == "8x7.0B");
}

TEST_CASE("fill_file_name fills the fields that the reference knows", "[quantize][metadata]") {
  CHECK(fill_file_name("x-{ftype}.gguf", "F16") == "x-f16.gguf");
  CHECK(fill_file_name("x-{FTYPE}-{outtype}-{}.gguf", "BF16") == "x-BF16-bf16-bf16.gguf");
  CHECK(fill_file_name("{{x}}.gguf", "F16") == "{x}.gguf");
  CHECK_FALSE(fill_file_name("{nope}.gguf", "F16"));
  CHECK_FALSE(fill_file_name("{ftype", "F16"));
  CHECK_FALSE(fill_file_name("}", "F16"));
}

TEST_CASE("default_file_name tells vocabularies and adapters apart", "[quantize][metadata]") {
  MetadataResult metadata;
  metadata.name = "Tiny Foo";
  metadata.basename = "Tiny-Foo";
  metadata.finetune = "Instruct";
  metadata.version = "v0.3";
  metadata.size_label = "26K";
  CHECK(default_file_name(metadata, "Q8_0", NamedFor::model) ==
        "Tiny-Foo-26K-Instruct-v0.3-Q8_0.gguf");
  CHECK(default_file_name(metadata, "F16", NamedFor::vocabulary) ==
        "Tiny-Foo-Instruct-v0.3-vocab.gguf");
  CHECK(default_file_name(metadata, "F32", NamedFor::adapter) ==
        "Tiny-Foo-26K-Instruct-v0.3-F32-LoRA.gguf");
  CHECK(default_file_name(metadata, "BF16", NamedFor::prediction) ==
        "mtp-Tiny-Foo-Instruct-v0.3-BF16.gguf");
}
