// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/convert.hpp"

#include "tests/quantize/golden_snapshot.hpp"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <map>

using namespace modeld;
using namespace modeld::quantize;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view k_layer = "base_model.model.model.layers.0.self_attn.";

test::MemoryFiles base() {
  return test::golden_snapshot(fs::path(MODELD_GOLDEN) / "Tiny-Llama-3-Chat-LoRA",
                               "Tiny-Llama-3-Base");
}

/// Single-precision zeros under names with shapes.
std::string weights(const std::map<std::string, std::string>& shapes) {
  std::string header;
  std::size_t end = 0;
  for (const auto& [name, shape] : shapes) {
    std::size_t elements = 1;
    std::size_t dim = 0;
    for (const char c : shape + ",") {
      if (c >= '0' && c <= '9') {
        dim = dim * 10 + static_cast<std::size_t>(c - '0');
      } else {
        elements *= dim;
        dim = 0;
      }
    }
    header += fmt::format("{}\"{}\":{{\"dtype\":\"F32\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          header.empty() ? "" : ",", name, shape, end, end + 4 * elements);
    end += 4 * elements;
  }
  header = "{" + header + "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string out(8, '\0');
  out[0] = static_cast<char>(header.size() & 0xFF);
  out[1] = static_cast<char>(header.size() >> 8);
  return out + header + std::string(end, '\0');
}

std::map<std::string, std::string> query() {
  return {{std::string(k_layer) + "q_proj.lora_A.weight", "4,128"},
          {std::string(k_layer) + "q_proj.lora_B.weight", "128,4"}};
}

test::MemoryFiles adapter(const std::map<std::string, std::string>& shapes,
                          std::string settings = R"("lora_alpha": 8)") {
  return test::MemoryFiles("adapter",
                           {{"adapter_config.json", R"({"peft_type": "LORA", )" + settings + "}"},
                            {"adapter_model.safetensors", weights(shapes)}});
}

Error refusal(const test::MemoryFiles& files, bool force = false) {
  AdapterOptions options;
  options.force = force;
  const test::MemoryFiles model = base();
  auto made = convert_adapter(files, model, options);
  if (made) FAIL("converted");
  return std::move(made.error());
}

bool says(const Error& error, std::string_view text) {
  return (error.message + error.hint).find(text) != std::string::npos;
}

} // namespace

TEST_CASE("convert_adapter names the file and its tensors, and records the scale (A19)",
          "[quantize][adapter][A19]") {
  const test::MemoryFiles files = adapter(query());
  const test::MemoryFiles model = base();
  const auto made = convert_adapter(files, model, {});
  if (!made) FAIL(made.error().message);
  CHECK(made->file_name() == "Adapter-F32-LoRA.gguf");
  REQUIRE(made->model.tensors.size() == 2);
  CHECK(made->model.tensors[0].name == "blk.0.attn_q.weight.lora_a");
  CHECK(made->model.tensors[1].name == "blk.0.attn_q.weight.lora_b");
  const auto* alpha = made->model.find("adapter.lora.alpha");
  REQUIRE(alpha != nullptr);
  CHECK(std::get<float>(*alpha) == 8.0F);
  CHECK(made->model.find("general.file_type") == nullptr);
  CHECK(made->model.find("tokenizer.ggml.model") == nullptr);
}

TEST_CASE("convert_adapter chooses the type by the first factor", "[quantize][adapter]") {
  AdapterOptions options;
  options.outtype = "auto";
  const test::MemoryFiles files = adapter(query());
  const test::MemoryFiles model = base();
  CHECK(convert_adapter(files, model, options).value().file_type == "F16");
  options.outtype = "tq1_0";
  CHECK(convert_adapter(files, model, options).error().code == Errc::invalid_argument);
}

TEST_CASE("convert_adapter names what is no part of a LoRA (A19)", "[quantize][adapter][A19]") {
  auto shapes = query();
  shapes[std::string(k_layer) + "q_proj.lora_magnitude_vector"] = "128";
  CHECK(says(refusal(adapter(shapes)), "DoRA"));
  shapes = query();
  shapes["base_model.model.lm_head.weight"] = "8,128";
  const Error whole = refusal(adapter(shapes));
  CHECK(whole.code == Errc::unsupported);
  CHECK(says(whole, "lm_head.weight"));
  CHECK(says(whole, "whole embeddings"));
  shapes = query();
  shapes[std::string(k_layer) + "q_proj.bias"] = "128";
  CHECK(says(refusal(adapter(shapes)), "q_proj.bias"));
}

TEST_CASE("convert_adapter refuses incomplete and unfitting pairs", "[quantize][adapter]") {
  auto shapes = query();
  shapes[std::string(k_layer) + "k_proj.lora_A.weight"] = "4,128";
  const Error alone = refusal(adapter(shapes));
  CHECK(alone.code == Errc::malformed);
  CHECK(says(alone, "model.layers.0.self_attn.k_proj.weight' only factor A"));
  shapes[std::string(k_layer) + "k_proj.lora_B.weight"] = "64,5";
  const Error rank = refusal(adapter(shapes));
  CHECK(rank.code == Errc::malformed);
  CHECK(says(rank, "[4, 128]"));
  CHECK(says(rank, "[64, 5]"));
  CHECK(refusal(adapter({})).code == Errc::malformed);
}

TEST_CASE("convert_adapter lists modules that the base model has not", "[quantize][adapter]") {
  auto shapes = query();
  shapes[std::string(k_layer) + "z_proj.lora_A.weight"] = "4,128";
  shapes[std::string(k_layer) + "z_proj.lora_B.weight"] = "128,4";
  const Error error = refusal(adapter(shapes));
  CHECK(error.code == Errc::unsupported);
  CHECK(says(error, "z_proj"));
  shapes = query();
  shapes["base_model.model.visual.blocks.0.attn.proj.lora_A.weight"] = "4,128";
  shapes["base_model.model.visual.blocks.0.attn.proj.lora_B.weight"] = "128,4";
  CHECK(says(refusal(adapter(shapes)), "visual.blocks.0"));
  AdapterOptions forced;
  forced.force = true;
  const test::MemoryFiles files = adapter(shapes);
  const test::MemoryFiles model = base();
  CHECK(convert_adapter(files, model, forced).value().left_out.size() == 1);
}

TEST_CASE("convert_adapter refuses methods that GGUF cannot express (A19)",
          "[quantize][adapter][A19]") {
  const auto with = [](std::string settings) {
    return adapter(query(), R"("lora_alpha": 8, )" + std::move(settings));
  };
  CHECK(says(refusal(with(R"("use_dora": true)")), "use_dora"));
  CHECK(says(refusal(with(R"("use_dora": true)"), true), "use_dora"));
  CHECK(says(refusal(with(R"("use_rslora": true)")), "--force"));
  CHECK(says(refusal(with(R"("alpha_pattern": {"q_proj": 4})")), "alpha_pattern"));
  CHECK(says(refusal(with(R"("fan_in_fan_out": true)")), "fan_in_fan_out"));
  CHECK(says(refusal(with(R"("invocation_string": "hi")")), "alora_invocation_tokens"));
  CHECK(says(refusal(adapter(query(), R"("r": 4)")), "lora_alpha is missing"));
  CHECK(says(refusal(adapter(query(), R"("lora_alpha": 8, "peft_type": "IA3")")), "IA3"));
  AdapterOptions forced;
  forced.force = true;
  const test::MemoryFiles files = with(R"("use_rslora": true)");
  const test::MemoryFiles model = base();
  CHECK(convert_adapter(files, model, forced));
}

TEST_CASE("convert_adapter says what is missing in the folder", "[quantize][adapter]") {
  test::MemoryFiles files = adapter(query());
  files.remove("adapter_model.safetensors");
  CHECK(refusal(files).code == Errc::not_found);
  files.put("adapter_model.bin", "pickle");
  CHECK(says(refusal(files), "pickle"));
  files.remove("adapter_config.json");
  CHECK(says(refusal(files), "adapter_config.json"));
}
