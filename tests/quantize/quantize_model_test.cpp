// SPDX-License-Identifier: Apache-2.0
#include "quantize/recipe/quantize_model.hpp"

#include "quantize/convert/convert.hpp"
#include "quantize/gguf/pipeline.hpp"
#include "quantize/kernels/row_codec.hpp"
#include "quantize/recipe/quantize_options.hpp"
#include "schema/json.hpp"
#include "tests/support/memory_files.hpp"
#include "validate/sha256.hpp"

#include <catch2/catch.hpp>

#include <boost/json.hpp>

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <thread>

using namespace modeld;
using namespace modeld::quantize;

namespace {

class Hasher final : public ByteSink {
public:
  Result<void> write(std::span<const std::byte> bytes) override {
    sha.update(bytes);
    return {};
  }
  validate::Sha256 sha;
};

/// Rows of floats that are kept in memory.
class Floats final : public TensorSource {
public:
  Floats(std::vector<float> values, std::uint64_t row) : values_(std::move(values)), row_(row) {}
  Result<void> read_rows(std::uint64_t first, std::uint64_t count,
                         std::span<std::byte> out) const override {
    REQUIRE(out.size() == count * row_ * sizeof(float));
    std::memcpy(out.data(), values_.data() + first * row_, out.size());
    return {};
  }

private:
  std::vector<float> values_;
  std::uint64_t row_;
};

GgufTensor tensor(std::string name, std::vector<std::uint64_t> ne, float value = 0.5F) {
  std::uint64_t count = 1;
  for (const std::uint64_t n : ne) {
    count *= n;
  }
  std::vector<float> values(count);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = value * std::sin(static_cast<float>(i));
  }
  return {std::move(name), TensorType::f32, ne, std::make_shared<Floats>(values, ne[0])};
}

/// A Llama of one layer with rows of `width`.
GgufModel small_model(std::uint64_t width = 256, std::uint32_t experts = 0) {
  GgufModel model;
  model.kv = {{"general.architecture", std::string("llama")},
              {"llama.block_count", std::uint32_t{1}},
              {"llama.context_length", std::uint32_t{512}},
              {"llama.embedding_length", static_cast<std::uint32_t>(width)},
              {"llama.attention.head_count", std::uint32_t{8}},
              {"llama.expert_count", experts}};
  model.tensors = {tensor("token_embd.weight", {width, 4}), tensor("output.weight", {width, 4}),
                   tensor("output_norm.weight", {width}), tensor("blk.0.attn_q.weight", {width, 4}),
                   tensor("blk.0.ffn_down.weight", {width, 4})};
  return model;
}

QuantizeRequest request(std::string target) {
  QuantizeRequest made;
  made.recipe.target = std::move(target);
  return made;
}

const TensorDecision& decision(const QuantizedModel& model, std::string_view name) {
  const auto at = std::find_if(model.decisions.begin(), model.decisions.end(),
                               [&](const TensorDecision& d) { return d.name == name; });
  REQUIRE(at != model.decisions.end());
  return *at;
}

Error refusal(const GgufModel& model, const QuantizeRequest& wanted) {
  const auto made = quantize_model(model, wanted);
  REQUIRE_FALSE(made);
  return made.error();
}

/// The error of writing, where planning alone finds nothing.
Error write_error(const GgufModel& model, const QuantizeRequest& wanted) {
  const auto made = quantize_model(model, wanted);
  REQUIRE(made);
  Hasher sink;
  const auto written = write_gguf(made->parts.front(), sink, {1, std::size_t{1} << 20, nullptr});
  REQUIRE_FALSE(written);
  return written.error();
}

std::shared_ptr<Importance> importance_for(std::map<std::string, std::vector<float>> entries) {
  auto made = std::make_shared<Importance>();
  made->entries = std::move(entries);
  made->file = "extra/imatrix.gguf";
  return made;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("quantize_model makes the reference's files of TinyVerse-4M in one pass from safetensors "
          "at any number of threads",
          "[quantize][quantize_model]") {
  const std::filesystem::path data = std::filesystem::path(MODELD_TEST_DATA) / "data";
  const auto expected =
      parse_json(test::read_file(data / "TinyVerse-4M.expected.json"), "expected").value();
  const auto files = test::MemoryFiles::from_folder(data / "TinyVerse-4M");
  const auto source = convert(files, {});
  REQUIRE(source);
  int compared = 0;
  for (const auto& output : expected.at("outputs").as_array()) {
    if (output.at("tool").as_string() != "quantize") continue;
    const std::string target(output.at("type").as_string());
    const auto made = quantize_model(source->model, request(target));
    REQUIRE(made);
    for (const unsigned threads : {1U, 2U, 7U}) {
      Hasher sink;
      REQUIRE(write_gguf(made->parts.front(), sink, {threads, std::size_t{1} << 17, nullptr}));
      INFO(target << " on " << threads << " threads");
      CHECK(sink.sha.finish().hex() == std::string(output.at("sha256").as_string()));
    }
    ++compared;
  }
  CHECK(compared == 9);
}

TEST_CASE("quantize_model substitutes a type whose block does not divide the row, and says so",
          "[quantize][quantize_model][B01]") {
  struct Case {
    std::uint64_t width;
    const char* target;
    TensorType used;
  };
  for (const Case& c :
       {Case{288, "Q4_K_S", TensorType::q5_0}, Case{288, "Q6_K", TensorType::q8_0},
        Case{288, "IQ3_S", TensorType::iq4_nl}, Case{172, "Q4_K_S", TensorType::f16},
        Case{172, "Q6_K", TensorType::f16}, Case{172, "IQ3_S", TensorType::f16},
        Case{1, "Q4_K_S", TensorType::f16}, Case{1, "IQ3_S", TensorType::f16}}) {
    const auto made = quantize_model(small_model(c.width), request(c.target));
    REQUIRE(made);
    const TensorDecision& d = decision(*made, "blk.0.attn_q.weight");
    CHECK(d.to == c.used);
    CHECK(d.wanted != c.used);
    Hasher sink;
    CHECK(write_gguf(made->parts.front(), sink, {1, std::size_t{1} << 20, nullptr}));
  }
}

TEST_CASE("quantize_model checks a type rule against every tensor before work starts",
          "[quantize][quantize_model][B02]") {
  QuantizeRequest wanted = request("Q8_0");
  wanted.recipe.tensor_types = {{"attn_q", TensorType::q4_k}};
  const auto made = quantize_model(small_model(288), wanted);
  REQUIRE(made);
  CHECK(decision(*made, "blk.0.attn_q.weight").to == TensorType::q5_0);

  wanted.recipe.tensor_types = {{"attn_w", TensorType::q4_k}};
  const Error unmatched = refusal(small_model(288), wanted);
  CHECK(unmatched.code == Errc::invalid_argument);
  CHECK(has(unmatched.message, "'attn_w=Q4_K' matches no tensor"));

  wanted.recipe.tensor_types = {{"attn_q(", TensorType::q4_k}};
  CHECK(has(refusal(small_model(288), wanted).message, "attn_q("));

  wanted.recipe.tensor_types = {{"attn_q", TensorType::i32}};
  CHECK(has(refusal(small_model(256), wanted).message, "I32 cannot be written"));
}

TEST_CASE("quantize_model lists every tensor that lacks importance weights before work starts",
          "[quantize][quantize_model][B03]") {
  QuantizeRequest wanted = request("IQ2_XS");
  const Error without = refusal(small_model(), wanted);
  CHECK(has(without.message, "'blk.0.attn_q.weight' (IQ2_XS)"));
  CHECK(has(without.message, "'blk.0.ffn_down.weight' (IQ2_XS)"));

  wanted.importance = importance_for({{"blk.0.attn_q.weight", std::vector<float>(256, 1.0F)}});
  const Error partly = refusal(small_model(), wanted);
  CHECK_FALSE(has(partly.message, "attn_q"));
  CHECK(has(partly.message, "'blk.0.ffn_down.weight'"));

  const auto plan = quantize_model(small_model(), request("IQ2_XS"), PlanOnly::yes);
  REQUIRE(plan);
  CHECK(decision(*plan, "blk.0.attn_q.weight").unguided_low);
}

TEST_CASE("quantize_model gives each expert its own importance weights",
          "[quantize][quantize_model]") {
  GgufModel model = small_model(256, 2);
  model.tensors.back() = tensor("blk.0.ffn_down_exps.weight", {256, 3, 2});
  std::vector<float> weights(512, 1.0F);
  for (std::size_t i = 256; i < 512; ++i) {
    weights[i] = static_cast<float>(i % 7);
  }
  QuantizeRequest wanted = request("Q4_K_S");
  wanted.importance = importance_for({{"blk.0.ffn_down_exps.weight", weights}});
  const auto both = quantize_model(model, wanted);
  REQUIRE(both);
  const auto read = [](const QuantizedModel& made) {
    const GgufTensor& last = made.parts.front().tensors[4];
    REQUIRE(last.name == "blk.0.ffn_down_exps.weight");
    std::vector<std::byte> rows(last.bytes());
    REQUIRE(last.source->read_rows(0, last.rows(), rows));
    return rows;
  };
  const auto all = read(*both);
  // The second expert's rows do not see the first one's weights.
  weights.assign(weights.begin() + 256, weights.end());
  weights.insert(weights.begin(), 256, 9.0F);
  wanted.importance = importance_for({{"blk.0.ffn_down_exps.weight", weights}});
  const auto other = read(*quantize_model(model, wanted));
  CHECK(std::equal(all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end(),
                   other.begin() + static_cast<std::ptrdiff_t>(other.size() / 2)));
}

TEST_CASE("quantize_model refuses importance weights that are no numbers",
          "[quantize][quantize_model][B04]") {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -1.0F}) {
    std::vector<float> weights(256, 1.0F);
    weights[77] = bad;
    QuantizeRequest wanted = request("Q4_K_S");
    wanted.importance = importance_for({{"blk.0.attn_q.weight", weights}});
    const Error error = refusal(small_model(), wanted);
    CHECK(error.code == Errc::malformed);
    CHECK(has(error.message, "blk.0.attn_q.weight"));
    CHECK(has(error.message, "at 77"));
  }
}

TEST_CASE("A quantized source treats blocks with zero weights only as unweighted",
          "[quantize][quantize_model][B04]") {
  const std::uint64_t width = 2048;
  std::vector<float> weights(width, 1.0F);
  std::fill(weights.begin() + 512, weights.begin() + 1536, 0.0F);
  for (const char* target : {"Q2_K_S", "Q4_K_S", "Q5_K_S", "Q6_K", "IQ4_NL", "IQ2_XS"}) {
    QuantizeRequest wanted = request(target);
    wanted.importance =
        importance_for({{"blk.0.attn_q.weight", weights}, {"blk.0.ffn_down.weight", weights}});
    const auto made = quantize_model(small_model(width), wanted);
    REQUIRE(made);
    CHECK(std::any_of(made->warnings.begin(), made->warnings.end(), [](const std::string& text) {
      return has(text, "blocks of 'blk.0.attn_q.weight' have no weight above zero");
    }));
    const auto& tensors = made->parts.front().tensors;
    const auto tensor = std::find_if(tensors.begin(), tensors.end(), [](const GgufTensor& t) {
      return t.name == "blk.0.attn_q.weight";
    });
    std::vector<std::byte> rows(tensor->bytes());
    REQUIRE(tensor->source->read_rows(0, 4, rows));
    std::vector<float> decoded(width * 4);
    codec(tensor->type).dequantize(rows.data(), 4, width, decoded.data());
    // Without weights the middle is as good as the rest; by zero weights it would be all zero.
    float middle = 0;
    for (std::size_t i = 512; i < 1536; ++i) {
      middle += decoded[i] * decoded[i];
    }
    INFO(target);
    CHECK(middle > 50.0F);
  }
}

TEST_CASE("A quantized source refuses zero runs that IQ3_S would misplace",
          "[quantize][quantize_model]") {
  GgufModel model = small_model();
  std::vector<float> values(1024, 0.5F);
  std::fill(values.begin() + 512 + 32, values.begin() + 512 + 64, 0.0F);
  model.tensors[3].source = std::make_shared<Floats>(values, 256);
  const Error error = write_error(model, request("IQ3_S"));
  CHECK(has(error.message, "row 2, elements 32 to 63 are all zero"));
  CHECK(has(error.hint, "--force"));
  QuantizeRequest wanted = request("IQ3_S");
  wanted.recipe.force = true;
  Hasher sink;
  CHECK(write_gguf(quantize_model(model, wanted)->parts.front(), sink, {1, 1U << 20, nullptr}));
  // At the end of a block nothing stands behind it.
  values.assign(1024, 0.5F);
  std::fill(values.begin() + 224, values.begin() + 256, 0.0F);
  model.tensors[3].source = std::make_shared<Floats>(values, 256);
  CHECK(write_gguf(quantize_model(model, request("IQ3_S"))->parts.front(), sink,
                   {1, 1U << 20, nullptr}));
}

TEST_CASE("quantize_model compares all importance entries with the tensors before work starts",
          "[quantize][quantize_model][B05]") {
  QuantizeRequest wanted = request("Q4_K_S");
  wanted.importance = importance_for({{"blk.0.attn_q.weight", std::vector<float>(10240, 1.0F)},
                                      {"blk.0.ffn_down.weight", std::vector<float>(255, 1.0F)},
                                      {"blk.9.ffn_down.weight", std::vector<float>(256, 1.0F)}});
  const Error error = refusal(small_model(), wanted);
  CHECK(has(error.message, "'blk.0.attn_q.weight' has 10240 weights for 1 x 256 columns"));
  CHECK(has(error.message, "'blk.0.ffn_down.weight' has 255 weights"));

  wanted.importance = importance_for({{"blk.9.ffn_down.weight", std::vector<float>(256, 1.0F)},
                                      {"token_embd.weight", std::vector<float>(8, 1.0F)}});
  const auto made = quantize_model(small_model(), wanted);
  REQUIRE(made);
  REQUIRE(made->warnings.size() == 2);
  CHECK(has(made->warnings[0], "embedding"));
  CHECK(has(made->warnings[1], "1 of 2 entries"));
}

TEST_CASE("quantize_model refuses a quantized source unless asked, and copies what has its type",
          "[quantize][quantize_model][B09]") {
  const auto first = quantize_model(small_model(), request("Q8_0"));
  REQUIRE(first);
  const GgufModel& quantized = first->parts.front();
  QuantizeRequest wanted = request("Q4_K_S");
  const Error error = refusal(quantized, wanted);
  CHECK(has(error.message, "is Q8_0"));
  CHECK(has(error.hint, "--allow-requantize"));
  wanted.allow_requantize = true;
  CHECK(quantize_model(quantized, wanted));

  const auto copied = quantize_model(quantized, request("Q8_0"));
  REQUIRE(copied);
  for (std::size_t i = 0; i < quantized.tensors.size(); ++i) {
    std::vector<std::byte> a(quantized.tensors[i].bytes());
    std::vector<std::byte> b(a.size());
    REQUIRE(quantized.tensors[i].source->read_rows(0, quantized.tensors[i].rows(), a));
    REQUIRE(copied->parts[0].tensors[i].source->read_rows(0, quantized.tensors[i].rows(), b));
    CHECK(a == b);
  }
}

TEST_CASE("quantize_model lets a tied embedding follow the output, and refuses two explicit types",
          "[quantize][quantize_model][B10]") {
  GgufModel tied = small_model();
  tied.tensors.erase(tied.tensors.begin() + 1);
  const auto plain = quantize_model(tied, request("Q4_K_M"));
  REQUIRE(plain);
  CHECK(decision(*plain, "token_embd.weight").to == TensorType::q6_k);
  QuantizeRequest wanted = request("Q4_K_M");
  wanted.recipe.output_type = TensorType::q8_0;
  CHECK(decision(*quantize_model(tied, wanted), "token_embd.weight").to == TensorType::q8_0);
  wanted.recipe.embedding_type = TensorType::q3_k;
  CHECK(has(refusal(tied, wanted).message, "both Q8_0 (output tensor type) and Q3_K"));
  CHECK(quantize_model(small_model(), wanted)); // not tied: no contradiction
}

TEST_CASE("quantize_model refuses types by hand that do not fit the row",
          "[quantize][quantize_model]") {
  QuantizeRequest wanted = request("Q8_0");
  wanted.recipe.embedding_type = TensorType::q6_k;
  const Error error = refusal(small_model(64), wanted);
  CHECK(error.code == Errc::unsupported);
  CHECK(has(error.message, "'token_embd.weight'"));
  CHECK(has(error.message, "rows have 64 elements"));
}

TEST_CASE("A quantized source names tensor, row and element of a value that is no number",
          "[quantize][quantize_model]") {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    GgufModel model = small_model();
    std::vector<float> values(1024, 0.5F);
    values[3 * 256 + 17] = bad;
    model.tensors[3].source = std::make_shared<Floats>(values, 256);
    for (const char* target : {"Q8_0", "F32"}) {
      const Error error = write_error(model, request(target));
      CHECK(error.code == Errc::malformed);
      CHECK(has(error.message, "tensor 'blk.0.attn_q.weight' (F32): row 3, element 17"));
    }
  }
}

TEST_CASE("A quantized source names the block whose scale the type cannot hold",
          "[quantize][quantize_model]") {
  GgufModel model = small_model();
  std::vector<float> values(1024, 0.5F);
  values[256 + 40] = 3.0e38F;
  model.tensors[3].source = std::make_shared<Floats>(values, 256);
  for (const char* target : {"Q8_0", "Q4_0", "Q4_K_S", "Q6_K", "IQ4_NL", "F16"}) {
    const Error error = write_error(model, request(target));
    CHECK(error.code == Errc::unsupported);
    CHECK(has(error.message, "tensor 'blk.0.attn_q.weight': row 1"));
  }
  Hasher sink;
  const auto made = quantize_model(model, request("BF16"));
  CHECK(write_gguf(made->parts.front(), sink, {1, std::size_t{1} << 20, nullptr}));
}

TEST_CASE("quantize_model refuses overrides of what describes the file itself",
          "[quantize][quantize_model]") {
  for (const char* text : {"split.count=int:3", "general.alignment=int:64"}) {
    QuantizeRequest wanted = request("Q8_0");
    wanted.overrides = {*parse_kv_override(text)};
    CHECK(refusal(small_model(), wanted).code == Errc::invalid_argument);
  }
}

TEST_CASE("parse_kv_override reads llama-quantize's texts and refuses the rest",
          "[quantize][quantize_options]") {
  CHECK(parse_kv_override("a=int:-5")->value == GgufValue(std::uint32_t{5}));
  CHECK(parse_kv_override("a.b=float:0.1")->value == GgufValue(0.1F));
  CHECK(parse_kv_override("a=bool:true")->value == GgufValue(true));
  CHECK(parse_kv_override("a=str:x=y:z")->value == GgufValue(std::string("x=y:z")));
  CHECK(parse_kv_override("a=str:")->value == GgufValue(std::string()));
  for (const char* text : {"a", "a=5", "a=int:", "a=int:5x", "a=bool:yes", "a=blob:1", "=int:5"}) {
    CHECK_FALSE(parse_kv_override(text));
  }
  CHECK_FALSE(parse_kv_override("a=str:" + std::string(128, 'x')));
}

TEST_CASE("parse_layer_list and parse_target_name read numbers", "[quantize][quantize_options]") {
  CHECK(*parse_layer_list("3,0,12") == std::vector<int>{3, 0, 12});
  for (const char* text : {"", "x", "1,", ",1", "-1", "1,,2"}) {
    CHECK_FALSE(parse_layer_list(text));
  }
  CHECK(*parse_target_name("15") == "Q4_K");
  CHECK(*parse_target_name("q4_k_m") == "Q4_K_M");
  CHECK(*parse_target_name("copy") == "COPY");
  CHECK_FALSE(parse_target_name("99"));
  CHECK_FALSE(parse_target_name("Q9_X"));
}

namespace {

/// Rows without end that count how often they were asked for.
class Endless final : public TensorSource {
public:
  explicit Endless(std::uint64_t width) : row_(width) {
    for (std::size_t i = 0; i < row_.size(); ++i)
      row_[i] = std::sin(static_cast<float>(i));
  }
  Result<void> read_rows(std::uint64_t, std::uint64_t count,
                         std::span<std::byte> out) const override {
    const std::size_t bytes = row_.size() * sizeof(float);
    for (std::uint64_t r = 0; r < count; ++r)
      std::memcpy(out.data() + r * bytes, row_.data(), bytes);
    ++reads;
    return {};
  }
  mutable std::atomic<int> reads{0};

private:
  std::vector<float> row_;
};

/// Processor time of all threads, which does not depend on what else the machine does.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

} // namespace

TEST_CASE("A quantization stops within 100 ms of being told to, for slow types and wide rows too",
          "[quantize][quantize_model]") {
  constexpr unsigned k_threads = 2;
  for (const char* target : {"Q4_K_S", "IQ2_XS", "IQ3_S", "IQ1_M"}) {
    for (const std::uint64_t width : {4096U, 65536U}) {
      INFO(target << ", rows of " << width);
      const auto source = std::make_shared<Endless>(width);
      GgufModel model = small_model(width);
      model.tensors[3] = {"blk.0.attn_q.weight", TensorType::f32, {width, 1U << 24}, source};
      QuantizeRequest wanted = request(target);
      std::vector<float> weights(width, 1.0F);
      std::iota(weights.begin(), weights.end(), 1.0F);
      wanted.importance = importance_for({{"token_embd.weight", weights},
                                          {"output.weight", weights},
                                          {"blk.0.attn_q.weight", weights},
                                          {"blk.0.ffn_down.weight", weights}});
      const auto made = quantize_model(model, wanted);
      REQUIRE(made);
      Progress progress;
      Hasher sink;
      double told = 0;
      std::thread other([&] {
        while (source->reads < 6)
          std::this_thread::yield();
        told = processor_seconds();
        progress.cancel = true;
      });
      const auto written =
          write_gguf(made->parts.front(), sink, {k_threads, std::size_t{4} << 20, &progress});
      const double ended = processor_seconds();
      other.join();
      REQUIRE_FALSE(written);
      CHECK(written.error().code == Errc::cancelled);
      CHECK(ended - told < 0.1 * k_threads);
    }
  }
}
