// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/convert.hpp"

#include "quantize/gguf/gguf_writer.hpp"
#include "quantize/gguf/pipeline.hpp"
#include "tests/support/memory_files.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

// Faults that happened to people who convert checkpoints; the names of the cases are those of the
// project's list (A05, A07, ...).

using namespace modeld;
using namespace modeld::quantize;
namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

using Values = std::vector<float>;

struct Tensor {
  std::vector<std::uint64_t> shape;
  Values values;
};

Tensor filled(std::vector<std::uint64_t> shape, float start = 0) {
  std::uint64_t count = 1;
  for (const std::uint64_t n : shape) {
    count *= n;
  }
  Tensor out{std::move(shape), Values(count)};
  for (float& value : out.values) {
    value = start;
    start += 0.0078125F;
  }
  return out;
}

/// A Llama of two layers with the tokenizer of TinyVerse; tests change what they are about.
struct Checkpoint {
  json::object config{{"architectures", {"LlamaForCausalLM"}},
                      {"model_type", "llama"},
                      {"hidden_size", 16},
                      {"intermediate_size", 8},
                      {"num_hidden_layers", 2},
                      {"num_attention_heads", 4},
                      {"num_key_value_heads", 2},
                      {"max_position_embeddings", 64},
                      {"rms_norm_eps", 1e-5},
                      {"rope_theta", 500000.0},
                      {"torch_dtype", "float32"},
                      {"vocab_size", 2048}};
  std::map<std::string, Tensor> tensors;
  std::uint64_t head = 4;

  explicit Checkpoint(std::uint64_t head_size = 4) : head(head_size) {
    tensors["model.embed_tokens.weight"] = filled({2048, 16});
    tensors["model.norm.weight"] = filled({16});
    tensors["lm_head.weight"] = filled({2048, 16}, 1);
    for (const char* layer : {"model.layers.0.", "model.layers.1."}) {
      const auto add = [&](const char* name, std::vector<std::uint64_t> shape) {
        tensors[std::string(layer) + name + ".weight"] = filled(std::move(shape));
      };
      add("self_attn.q_proj", {4 * head, 16});
      add("self_attn.k_proj", {2 * head, 16});
      add("self_attn.v_proj", {2 * head, 16});
      add("self_attn.o_proj", {16, 4 * head});
      add("mlp.gate_proj", {8, 16});
      add("mlp.up_proj", {8, 16});
      add("mlp.down_proj", {16, 8});
      add("input_layernorm", {16});
      add("post_attention_layernorm", {16});
    }
  }

  void remove_layer(const std::string& prefix) {
    for (auto at = tensors.begin(); at != tensors.end();) {
      at = at->first.starts_with(prefix) ? tensors.erase(at) : std::next(at);
    }
  }

  std::string safetensors() const {
    json::object header;
    std::string data;
    for (const auto& [name, tensor] : tensors) {
      const std::size_t begin = data.size();
      data.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * 4);
      header[name] = {{"dtype", "F32"},
                      {"shape", json::value_from(tensor.shape)},
                      {"data_offsets", {begin, data.size()}}};
    }
    const std::string text = json::serialize(header);
    std::string out(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) {
      out[i] = static_cast<char>(text.size() >> (8 * i));
    }
    return out + text + data;
  }

  test::MemoryFiles files() const {
    test::MemoryFiles out("Failure-Case-Test");
    const fs::path verse = fs::path(MODELD_TEST_DATA) / "data" / "TinyVerse-4M";
    for (const char* name : {"tokenizer.model", "tokenizer_config.json"}) {
      out.put(name, test::read_file(verse / name));
    }
    out.put("config.json", json::serialize(config));
    out.put("model.safetensors", safetensors());
    return out;
  }
};

ConvertResult converted(const Checkpoint& checkpoint) {
  auto result = convert(checkpoint.files(), {});
  if (!result) FAIL(result.error().message);
  return *std::move(result);
}

Error refusal(const Checkpoint& checkpoint) {
  const auto result = convert(checkpoint.files(), {});
  REQUIRE_FALSE(result);
  return result.error();
}

bool forced(const Checkpoint& checkpoint) {
  ConvertOptions options;
  options.force = true;
  return convert(checkpoint.files(), options).has_value();
}

bool warns(const ConvertResult& result, std::string_view of) {
  return std::any_of(result.warnings.begin(), result.warnings.end(),
                     [of](const std::string& one) { return one.find(of) != std::string::npos; });
}

const GgufTensor* tensor(const ConvertResult& result, std::string_view name) {
  for (const GgufTensor& one : result.model.tensors) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

} // namespace

TEST_CASE("A05 tied embeddings with an output in the file: a different one is kept and reported",
          "[quantize][convert][A05]") {
  Checkpoint checkpoint;
  checkpoint.config["tie_word_embeddings"] = true;
  const auto different = converted(checkpoint);
  CHECK(tensor(different, "output.weight") != nullptr);
  CHECK(warns(different, "lm_head.weight is another one"));

  checkpoint.tensors["lm_head.weight"] = checkpoint.tensors["model.embed_tokens.weight"];
  CHECK_FALSE(warns(converted(checkpoint), "lm_head"));
  checkpoint.tensors["lm_head.weight"].values.back() += 1; // one element, the last
  CHECK(warns(converted(checkpoint), "lm_head.weight is another one"));
  checkpoint.config["tie_word_embeddings"] = false;
  CHECK_FALSE(warns(converted(checkpoint), "lm_head"));
}

TEST_CASE("A05 a family without an output of its own leaves none out without comparing",
          "[quantize][convert][A05]") {
  Checkpoint checkpoint;
  checkpoint.config["architectures"] = boost::json::array{"GemmaForCausalLM"};
  checkpoint.config["model_type"] = "gemma";
  checkpoint.config["head_dim"] = 4;
  const auto different = converted(checkpoint);
  CHECK(tensor(different, "output.weight") == nullptr);
  CHECK(warns(different, "it is left out"));
  checkpoint.tensors["lm_head.weight"] = checkpoint.tensors["model.embed_tokens.weight"];
  CHECK_FALSE(warns(converted(checkpoint), "lm_head"));
}

TEST_CASE("A07 rotary settings give the same metadata in their old and in their new place",
          "[quantize][convert][A07]") {
  Checkpoint older;
  older.config["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
  Checkpoint newer;
  newer.config.erase("rope_theta");
  newer.config["rope_parameters"] = {
      {"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 500000.0}};
  const auto a = converted(older);
  const auto b = converted(newer);
  CHECK(std::get<float>(*a.model.find("llama.rope.freq_base")) == 500000.0F);
  CHECK(std::get<float>(*a.model.find("llama.rope.scaling.factor")) == 4.0F);
  REQUIRE(a.model.kv.size() == b.model.kv.size());
  for (std::size_t i = 0; i < a.model.kv.size(); ++i) {
    INFO(a.model.kv[i].key);
    CHECK(a.model.kv[i].key == b.model.kv[i].key);
    CHECK(a.model.kv[i].value == b.model.kv[i].value);
  }
  CHECK_FALSE(warns(a, "rope"));
  CHECK_FALSE(warns(b, "rope"));
}

TEST_CASE("A07 rotary settings that contradict each other are reported, and the new ones count",
          "[quantize][convert][A07]") {
  Checkpoint checkpoint;
  checkpoint.config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 4.0}};
  checkpoint.config["rope_parameters"] = {
      {"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 777.0}};
  const auto result = converted(checkpoint);
  CHECK(std::get<float>(*result.model.find("llama.rope.freq_base")) == 777.0F);
  CHECK(std::get<float>(*result.model.find("llama.rope.scaling.factor")) == 8.0F);
  CHECK(warns(result, "rope_theta 5E5 by itself and 7.77E2 in rope_parameters"));
  CHECK(warns(result, "factor 4E0 in rope_scaling and 8E0 in rope_parameters"));
  checkpoint.config["rope_theta"] = 777; // the same number, written otherwise
  checkpoint.config["rope_scaling"] = {{"type", "linear"}, {"factor", 8}};
  CHECK_FALSE(warns(converted(checkpoint), "rope"));
}

TEST_CASE("A07 configurations may hold the numbers that Python writes and JSON does not know",
          "[quantize][convert][A07]") {
  const Checkpoint checkpoint;
  test::MemoryFiles files = checkpoint.files();
  std::string config = json::serialize(checkpoint.config);
  config.back() = ',';
  files.put("config.json",
            config + R"("limits":[0.0,Infinity,-Infinity],"nothing":NaN,"text":"NaN \"Infinity"})");
  files.put("tokenizer_config.json", R"({"model_max_length": Infinity, "add_bos_token": true})");
  files.put("generation_config.json", R"({"temperature": 0.5, "max_time": Infinity})");
  const auto result = convert(files, {});
  if (!result) FAIL(result.error().message);
  CHECK(std::get<float>(*result->model.find("general.sampling.temp")) == 0.5F);
  files.put("config.json", config + R"("limits":Infinit})");
  CHECK_FALSE(convert(files, {}));
}

TEST_CASE("A10 a source quantized another way is refused by the method's name",
          "[quantize][convert][A10]") {
  for (const char* method : {"bitsandbytes", "a_method_of_tomorrow"}) {
    Checkpoint checkpoint;
    checkpoint.config["quantization_config"] = {{"quant_method", method}, {"load_in_8bit", true}};
    checkpoint.tensors["model.layers.0.mlp.up_proj.weight.absmax"] = filled({2});
    const Error error = refusal(checkpoint);
    CHECK(error.code == Errc::unsupported);
    CHECK(error.message.find(method) != std::string::npos);
    CHECK_FALSE(error.hint.empty());
  }
}

TEST_CASE("A10 companions of quantized weights are named where config.json says nothing",
          "[quantize][convert][A10]") {
  Checkpoint checkpoint;
  checkpoint.tensors["model.layers.0.mlp.up_proj.weight.absmax"] = filled({2});
  checkpoint.tensors["model.layers.1.mlp.up_proj.g_idx"] = filled({16});
  const Error error = refusal(checkpoint);
  CHECK(error.message.find("up_proj.weight.absmax") != std::string::npos);
  CHECK(error.message.find("up_proj.g_idx") != std::string::npos);
}

TEST_CASE("A11 a head's size is what config.json says, whatever the hidden size",
          "[quantize][convert][A11]") {
  Checkpoint checkpoint(8); // 4 heads of 8 beside a hidden size of 16
  checkpoint.config["head_dim"] = 8;
  const auto result = converted(checkpoint);
  for (const char* key : {"llama.attention.key_length", "llama.attention.value_length",
                          "llama.rope.dimension_count"}) {
    INFO(key);
    REQUIRE(result.model.find(key) != nullptr);
    CHECK(std::get<std::uint32_t>(*result.model.find(key)) == 8);
  }
  CHECK(tensor(result, "blk.0.attn_q.weight")->ne == std::vector<std::uint64_t>{16, 32});
}

TEST_CASE("A18 nothing is converted without the embedding, or with a block missing",
          "[quantize][convert][A18]") {
  SECTION("no embedding") {
    Checkpoint checkpoint;
    checkpoint.tensors.erase("model.embed_tokens.weight");
    CHECK(refusal(checkpoint).message.find("token_embd.weight") != std::string::npos);
    CHECK(forced(checkpoint));
  }
  SECTION("a block in the middle") {
    Checkpoint checkpoint;
    checkpoint.remove_layer("model.layers.0.");
    CHECK(refusal(checkpoint).message.find("block 0 of 2") != std::string::npos);
    CHECK(forced(checkpoint));
  }
  SECTION("the last block") {
    Checkpoint checkpoint;
    checkpoint.remove_layer("model.layers.1.");
    CHECK(refusal(checkpoint).message.find("block 1 of 2") != std::string::npos);
  }
  SECTION("another width than config.json's") {
    Checkpoint checkpoint;
    checkpoint.tensors["model.embed_tokens.weight"] = filled({2048, 12});
    CHECK(refusal(checkpoint).message.find("rows of 12 values") != std::string::npos);
  }
  SECTION("no tensor at all") {
    Checkpoint checkpoint;
    checkpoint.tensors.clear();
    CHECK_FALSE(convert(checkpoint.files(), {}));
  }
}

TEST_CASE("A20 a tensor far larger than the window is written without being held",
          "[quantize][convert][A20]") {
  // 1 GiB of embedding out of a sparse mapping: only its own pages may count, and those are the
  // file's, not ours.
  class Zeros final : public TensorSource {
  public:
    Result<void> read_rows(std::uint64_t, std::uint64_t count,
                           std::span<std::byte> out) const override {
      std::fill_n(out.begin(), count * 4096 * 4, std::byte{0});
      return {};
    }
  };
  class Counter final : public ByteSink {
  public:
    Result<void> write(std::span<const std::byte> bytes) override {
      size += bytes.size();
      return {};
    }
    std::uint64_t size = 0;
  };
  GgufModel model;
  model.kv = {{"general.architecture", std::string("llama")}};
  model.tensors.push_back(
      {"token_embd.weight", TensorType::f32, {4096, 65536}, std::make_shared<Zeros>()});
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  Counter sink;
  REQUIRE(write_gguf(model, sink, {2, std::size_t{1} << 20, nullptr}));
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  CHECK(sink.size > std::uint64_t{1} << 30);
  CHECK(after.ru_maxrss - before.ru_maxrss < 100 * 1024); // KiB
}
