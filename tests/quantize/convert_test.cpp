// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/convert.hpp"

#include "quantize/gguf/gguf_writer.hpp"
#include "quantize/gguf/pipeline.hpp"
#include "schema/json.hpp"
#include "tests/support/memory_files.hpp"
#include "validate/sha256.hpp"

#include <catch2/catch.hpp>

#include <boost/json.hpp>

#include <filesystem>

using namespace modeld;
using namespace modeld::quantize;
namespace fs = std::filesystem;

namespace {

class Hasher final : public ByteSink {
public:
  Result<void> write(std::span<const std::byte> bytes) override {
    sha.update(bytes);
    size += bytes.size();
    return {};
  }
  validate::Sha256 sha;
  std::uint64_t size = 0;
};

const fs::path k_data = fs::path(MODELD_TEST_DATA) / "data";

test::MemoryFiles tiny_verse() {
  return test::MemoryFiles::from_folder(k_data / "TinyVerse-4M");
}

Error refusal(const FileSet& files) {
  const auto result = convert(files, {});
  REQUIRE_FALSE(result);
  return result.error();
}

std::string text(const test::MemoryFiles& files, std::string_view path) {
  const auto bytes = files.bytes(path);
  REQUIRE(bytes);
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

std::string replaced(std::string where, std::string_view what, std::string_view with) {
  const std::size_t at = where.find(what);
  REQUIRE(at != std::string::npos);
  return where.replace(at, what.size(), with);
}

} // namespace

TEST_CASE("convert makes the reference's files of TinyVerse-4M at any number of threads",
          "[quantize][convert]") {
  const boost::json::value expected =
      parse_json(test::read_file(k_data / "TinyVerse-4M.expected.json"), "expected").value();
  const test::MemoryFiles files = tiny_verse();
  int compared = 0;
  for (const auto& value : expected.at("outputs").as_array()) {
    if (value.at("tool").as_string() != "convert") continue;
    ConvertOptions options;
    options.outtype = std::string(value.at("argv").as_array().at(1).as_string());
    const auto converted = convert(files, options);
    REQUIRE(converted);
    CHECK(*gguf_file_size(converted->model) == value.at("bytes").to_number<std::uint64_t>());
    for (const unsigned threads : {1U, 2U, 7U}) {
      Hasher sink;
      REQUIRE(write_gguf(converted->model, sink, {threads, std::size_t{1} << 18, nullptr}));
      CHECK(sink.sha.finish().hex() == std::string(value.at("sha256").as_string()));
    }
    ++compared;
  }
  CHECK(compared == 5);
}

TEST_CASE("convert names an unknown architecture and those like it", "[quantize][convert]") {
  test::MemoryFiles files = tiny_verse();
  files.put("config.json",
            replaced(text(files, "config.json"), "LlamaForCausalLM", "LlamoForCausalLM"));
  const Error error = refusal(files);
  CHECK(error.code == Errc::unsupported);
  CHECK(error.message.find("'LlamoForCausalLM' is not supported") != std::string::npos);
  CHECK(error.hint.find("LlamaForCausalLM") != std::string::npos);
}

TEST_CASE("convert refuses a folder without config.json, or with a broken one",
          "[quantize][convert]") {
  test::MemoryFiles files = tiny_verse();
  files.put("config.json", "{");
  CHECK(refusal(files).code == Errc::malformed);
  files.remove("config.json");
  CHECK(refusal(files).code == Errc::not_found);
}

TEST_CASE("convert refuses a repository without weights, and one with pickles only",
          "[quantize][convert][A18]") {
  test::MemoryFiles files = tiny_verse();
  for (const char* name : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                           "model.safetensors.index.json"}) {
    files.remove(name);
  }
  CHECK(refusal(files).code == Errc::not_found);
  files.put("pytorch_model.bin", "PK");
  const Error error = refusal(files);
  CHECK(error.code == Errc::unsupported);
  CHECK(error.message.find("pytorch_model.bin") != std::string::npos);
}

TEST_CASE("convert names a shard that the index lists and the folder lacks",
          "[quantize][convert][A14]") {
  test::MemoryFiles files = tiny_verse();
  files.remove("model-00002-of-00002.safetensors");
  const Error error = refusal(files);
  CHECK(error.message.find("model-00002-of-00002.safetensors") != std::string::npos);
}

TEST_CASE("convert refuses a shard that is cut short at any place", "[quantize][convert][D01]") {
  test::MemoryFiles files = tiny_verse();
  const std::string whole = text(files, "model-00002-of-00002.safetensors");
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{7}, std::size_t{8}, std::size_t{100}, whole.size() - 1}) {
    files.put("model-00002-of-00002.safetensors", whole.substr(0, size));
    CHECK_FALSE(convert(files, {}));
  }
}

TEST_CASE("convert leaves weight files that the index does not list, and says so",
          "[quantize][convert][A14]") {
  test::MemoryFiles files = tiny_verse();
  files.put("consolidated.safetensors", text(files, "model-00001-of-00002.safetensors"));
  const auto converted = convert(files, {});
  REQUIRE(converted);
  REQUIRE_FALSE(converted->warnings.empty());
  CHECK(converted->warnings[0].find("consolidated.safetensors") != std::string::npos);
}

TEST_CASE("convert lists every tensor that it cannot place", "[quantize][convert][A15]") {
  test::MemoryFiles files("odd");
  for (const char* name : {"config.json", "tokenizer.model", "tokenizer_config.json"}) {
    files.put(name, text(tiny_verse(), name));
  }
  const std::string header =
      R"({"model.decks.0.q":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("model.decks.1.q":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  files.put("model.safetensors", file + header + std::string(8, '\0'));
  const Error error = refusal(files);
  CHECK(error.code == Errc::unsupported);
  CHECK(error.details.size() == 2);
  CHECK(error.message.find("model.decks.0.q, model.decks.1.q") != std::string::npos);
}

TEST_CASE("convert refuses a BF16 value beyond F16 unless it is forced",
          "[quantize][convert][A16]") {
  test::MemoryFiles files = tiny_verse();
  std::string shard = text(files, "model-00002-of-00002.safetensors");
  // The last element of the file becomes 70144 in BF16, which F16 cannot hold.
  shard[shard.size() - 2] = '\x89';
  shard[shard.size() - 1] = '\x47';
  files.put("model-00002-of-00002.safetensors", shard);
  ConvertOptions options;
  options.outtype = "f16";
  const auto converted = convert(files, options);
  REQUIRE(converted);
  Hasher sink;
  const auto written = write_gguf(converted->model, sink, {2, std::size_t{1} << 20, nullptr});
  if (!written) {
    CHECK(written.error().code == Errc::unsupported);
    CHECK(written.error().message.find("70144") != std::string::npos);
  }
  options.force = true;
  const auto forced = convert(files, options);
  REQUIRE(forced);
  CHECK(write_gguf(forced->model, sink, {2, std::size_t{1} << 20, nullptr}));
}

TEST_CASE("split_model cuts by tensors and bytes as the reference does", "[quantize][convert]") {
  GgufModel model;
  model.kv = {{"general.architecture", std::string("x")}};
  for (const char* name : {"a", "b", "c"}) {
    model.tensors.push_back({name, TensorType::f32, {10}, nullptr});
  }
  const auto count = [&](std::uint64_t tensors, std::uint64_t bytes, bool empty_first) {
    std::vector<std::size_t> sizes;
    for (const GgufModel& part : split_model(model, tensors, bytes, empty_first)) {
      sizes.push_back(part.tensors.size());
    }
    return sizes;
  };
  CHECK(count(0, 0, false) == std::vector<std::size_t>{3});
  CHECK(count(2, 0, false) == std::vector<std::size_t>{2, 1});
  CHECK(count(0, 79, false) == std::vector<std::size_t>{1, 1, 1});
  CHECK(count(0, 80, false) == std::vector<std::size_t>{2, 1});
  CHECK(count(0, 0, true) == std::vector<std::size_t>{0, 3});
  CHECK(count(1, 0, true) == std::vector<std::size_t>{0, 1, 1, 1});
  const auto parts = split_model(model, 2, 0, false);
  CHECK(std::get<std::uint16_t>(*parts[1].find("split.no")) == 1);
  CHECK(std::get<std::int32_t>(*parts[1].find("split.tensors.count")) == 3);
  CHECK(parts[1].find("general.architecture") == nullptr);
  CHECK(*parse_split_size("300M") == 300000000);
  CHECK_FALSE(parse_split_size("M"));
  CHECK_FALSE(parse_split_size("-1"));
}

TEST_CASE("convert refuses options that the family does not know", "[quantize][convert]") {
  const test::MemoryFiles files = tiny_verse();
  ConvertOptions options;
  options.no_mtp = true;
  auto result = convert(files, options);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Errc::unsupported);
  CHECK(result.error().message.find("--no-mtp") != std::string::npos);
  options.mtp_only = true;
  result = convert(files, options);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Errc::invalid_argument);
  options = {};
  options.adapter = "retrieval.query";
  result = convert(files, options);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Errc::not_found);
}
