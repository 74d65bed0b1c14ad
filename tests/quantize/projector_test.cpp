// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/convert.hpp"

#include "schema/json.hpp"
#include "tests/quantize/golden_snapshot.hpp"

#include <catch2/catch.hpp>

#include <boost/json.hpp>

using namespace modeld;
using namespace modeld::quantize;
namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

test::MemoryFiles snapshot(const std::string& name) {
  return test::golden_snapshot(fs::path(MODELD_GOLDEN) / name, name);
}

ConvertOptions mmproj() {
  ConvertOptions options;
  options.mmproj = true;
  return options;
}

json::object config_of(const FileSet& files, std::string_view path = "config.json") {
  const auto bytes = files.bytes(path).value();
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path)
      .value()
      .as_object();
}

Error refusal(const FileSet& files, const ConvertOptions& options = mmproj()) {
  auto result = convert(files, options);
  if (result) FAIL("converted");
  return std::move(result.error());
}

} // namespace

TEST_CASE("convert names a projector's file as the reference does", "[quantize][projector]") {
  const auto made = convert(snapshot("gemma-3-tiny-it"), mmproj());
  REQUIRE(made);
  CHECK(made->file_name() == "mmproj-Gemma-3-Tiny-It-BF16.gguf");
  CHECK(made->family == "Gemma 3 (vision)");
  CHECK_FALSE(made->left_out.empty());
  CHECK(made->model.find("tokenizer.ggml.model") == nullptr);
}

TEST_CASE("convert says which part of a projector's configuration is missing",
          "[quantize][projector]") {
  test::MemoryFiles files = snapshot("gemma-3-tiny-it");
  files.remove("preprocessor_config.json");
  CHECK(refusal(files).message.find("image_mean") != std::string::npos);
  files.put("preprocessor_config.json", "{");
  CHECK(refusal(files).code == Errc::malformed);

  test::MemoryFiles windows = snapshot("Qwen2.5-VL-Tiny-Instruct");
  json::object config = config_of(windows);
  config["vision_config"].as_object()["fullatt_block_indexes"] = {1, 4};
  windows.put("config.json", json::serialize(config));
  CHECK(refusal(windows).message.find("evenly spaced") != std::string::npos);

  test::MemoryFiles shuffle = snapshot("InternVL3-Tiny");
  config = config_of(shuffle);
  config.erase("downsample_ratio");
  shuffle.put("config.json", json::serialize(config));
  CHECK(refusal(shuffle).message.find("downsample_ratio") != std::string::npos);
}

TEST_CASE("convert refuses to make a projector of a text model", "[quantize][projector]") {
  const Error error = refusal(snapshot("Tiny-Llama3-1M-Instruct"));
  CHECK(error.code == Errc::unsupported);
  CHECK(error.message.find("the projector of 'LlamaForCausalLM' is not supported") !=
        std::string::npos);
  ConvertOptions both = mmproj();
  both.vocab_only = true;
  CHECK(refusal(snapshot("gemma-3-tiny-it"), both).code == Errc::invalid_argument);
}

TEST_CASE("convert refuses a projector without tensors, and writes it when forced",
          "[quantize][projector]") {
  test::MemoryFiles files = snapshot("gemma-3-tiny-it");
  files.put("model.safetensors", std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  const Error error = refusal(files);
  CHECK(error.code == Errc::unsupported);
  CHECK(error.message.find("tower") != std::string::npos);
  ConvertOptions forced = mmproj();
  forced.force = true;
  const auto made = convert(files, forced);
  REQUIRE(made);
  CHECK(made->model.tensors.empty());
}

TEST_CASE("convert adds the dense modules that are asked for, or says why not",
          "[quantize][dense]") {
  ConvertOptions options;
  options.dense_modules = true;
  const auto reason = [&options](const test::MemoryFiles& files) {
    const auto made = convert(files, options);
    return made ? std::string("converted") : made.error().message;
  };
  test::MemoryFiles files = snapshot("embeddinggemma-tiny");
  CHECK(reason(files) == "converted");
  json::object layer = config_of(files, "2_Dense/config.json");
  layer["bias"] = true;
  files.put("2_Dense/config.json", json::serialize(layer));
  CHECK(reason(files).find("bias") != std::string::npos);
  layer["bias"] = false;
  layer["activation_function"] = "torch.nn.modules.activation.Tanh";
  files.put("2_Dense/config.json", json::serialize(layer));
  CHECK(reason(files).find("activation") != std::string::npos);
  files.put("2_Dense/model.safetensors", std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  CHECK(reason(files).find("linear.weight") != std::string::npos);
  files.remove("2_Dense/model.safetensors");
  files.remove("3_Dense/model.safetensors");
  const auto without = convert(files, options);
  REQUIRE(without);
  CHECK(without->warnings.back().find("no dense modules") != std::string::npos);
  const auto other = convert(snapshot("Tiny-Llama3-1M-Instruct"), options);
  if (other) CHECK_FALSE(other->warnings.empty());
}

TEST_CASE("convert takes Mistral's own form where it is asked to", "[quantize][mistral]") {
  test::MemoryFiles files = snapshot("Tiny-Ministral-consolidated");
  const auto plain = convert(files, {});
  REQUIRE_FALSE(plain);
  CHECK(plain.error().hint.find("--mistral-format") != std::string::npos);
  ConvertOptions options;
  options.mistral_format = true;
  CHECK(convert(files, options));
  files.put("params.json", "{\"n_layers\": 2}");
  CHECK(convert(files, options).error().message.find("heads") != std::string::npos);
  files.put("params.json", R"({"n_layers": 2, "quantization": {"qformat_weight": "int4"}})");
  CHECK(convert(files, options).error().message.find("int4") != std::string::npos);
  files.put("params.json", R"({"n_layers": 2, "moe": {"num_experts": 4}})");
  CHECK(convert(files, options).error().code == Errc::unsupported);
  options.mmproj = true;
  CHECK(convert(files, options).error().message.find("vision_encoder") != std::string::npos);
  options.mmproj = false;
  files.remove("params.json");
  CHECK(convert(files, options).error().code == Errc::not_found);
}

TEST_CASE("convert refuses blocks beyond a tower's depth", "[quantize][projector]") {
  test::MemoryFiles files = snapshot("gemma-3-tiny-it");
  json::object config = config_of(files);
  config["vision_config"].as_object()["num_hidden_layers"] = 1;
  files.put("config.json", json::serialize(config));
  const Error error = refusal(files);
  CHECK(error.code == Errc::unsupported);
  CHECK(error.message.find("layers.1.") != std::string::npos);
}
