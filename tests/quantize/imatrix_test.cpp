// SPDX-License-Identifier: Apache-2.0
#include "quantize/recipe/imatrix.hpp"

#include "quantize/gguf/gguf_model.hpp"
#include "quantize/gguf/pipeline.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

using namespace modeld;
using namespace modeld::quantize;

namespace {

class Text final : public ByteSink {
public:
  Result<void> write(std::span<const std::byte> more) override {
    text.append(reinterpret_cast<const char*>(more.data()), more.size());
    return {};
  }
  std::string text;
};

class Floats final : public TensorSource {
public:
  explicit Floats(std::vector<float> values) : values_(std::move(values)) {}
  Result<void> read_rows(std::uint64_t first, std::uint64_t count,
                         std::span<std::byte> out) const override {
    std::memcpy(out.data(), values_.data() + first * (out.size() / count / sizeof(float)),
                out.size());
    return {};
  }

private:
  std::vector<float> values_;
};

GgufTensor tensor(std::string name, std::vector<std::uint64_t> ne, std::vector<float> values) {
  return {std::move(name), TensorType::f32, std::move(ne), std::make_shared<Floats>(values)};
}

/// Two experts of two columns; the second one never used unless `count` says so.
std::string gguf_form(float count = 0, float value = 8) {
  GgufModel model;
  model.kv = {{"general.type", std::string("imatrix")},
              {"imatrix.datasets", GgufArray(std::vector<std::string>{"text.txt"})},
              {"imatrix.chunk_count", std::uint32_t{3}},
              {"imatrix.chunk_size", std::uint32_t{512}}};
  model.tensors = {tensor("blk.0.ffn_up_exps.weight.in_sum2", {2, 2}, {value, 4, 6, 2}),
                   tensor("blk.0.ffn_up_exps.weight.counts", {1, 2}, {4, count}),
                   tensor("blk.0.attn_q.weight.in_sum2", {3}, {0, 5, 10}),
                   tensor("blk.0.attn_q.weight.counts", {1}, {5})};
  Text sink;
  REQUIRE(write_gguf(model, sink, {1, std::size_t{1} << 16, nullptr}));
  return sink.text;
}

template <class T>
void put(std::string& text, T value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string legacy_form() {
  std::string text;
  put<std::int32_t>(text, 1);
  put<std::int32_t>(text, 6);
  text += "output";
  put<std::int32_t>(text, 2);
  put<std::int32_t>(text, 3);
  for (const float value : {2.0F, 4.0F, 9.0F}) {
    put(text, value);
  }
  put<std::int32_t>(text, 17);
  put<std::int32_t>(text, 4);
  text += "data";
  return text;
}

Result<ImatrixFile> read(const std::string& text) {
  return read_imatrix(std::as_bytes(std::span(text)), "m.imatrix");
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("read_imatrix reads sums and counts of the GGUF form", "[quantize][imatrix]") {
  const auto file = read(gguf_form());
  REQUIRE(file);
  CHECK_FALSE(file->legacy);
  CHECK(file->chunks == 3);
  CHECK(file->chunk_size == 512);
  CHECK(file->datasets == std::vector<std::string>{"text.txt"});
  CHECK(file->entries.at("blk.0.attn_q.weight").sums == std::vector<float>{0, 5, 10});
  CHECK(file->entries.at("blk.0.ffn_up_exps.weight").counts == std::vector<std::int64_t>{4, 0});
}

TEST_CASE("make_importance gives an expert that no token reached neutral weights, and says so",
          "[quantize][imatrix][B03]") {
  const auto made = make_importance(*read(gguf_form()), "m.imatrix", {});
  REQUIRE(made);
  CHECK(made->entries.at("blk.0.ffn_up_exps.weight") == std::vector<float>{2, 1, 1, 1});
  CHECK(made->entries.at("blk.0.attn_q.weight") == std::vector<float>{0, 1, 2});
  REQUIRE(made->warnings.size() == 1);
  CHECK(has(made->warnings[0], "1 of 2 experts of 'blk.0.ffn_up_exps.weight'"));
}

TEST_CASE("make_importance refuses values that are no weights", "[quantize][imatrix][B04]") {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -8.0F}) {
    const auto made = make_importance(*read(gguf_form(0, bad)), "m.imatrix", {});
    REQUIRE_FALSE(made);
    CHECK(made.error().code == Errc::malformed);
    CHECK(has(made.error().message, "'blk.0.ffn_up_exps.weight'"));
  }
}

TEST_CASE("make_importance keeps and drops entries by parts of their names",
          "[quantize][imatrix]") {
  const auto file = read(gguf_form());
  CHECK(make_importance(*file, "m", {{"attn", "nothing"}, {}})->entries.size() == 1);
  CHECK(make_importance(*file, "m", {{}, {"ffn"}})->entries.count("blk.0.attn_q.weight") == 1);
  const auto none = make_importance(*file, "m", {{"nothing"}, {}});
  CHECK(none->entries.empty());
  CHECK(has(none->warnings.front(), "no entry"));
}

TEST_CASE("read_imatrix reads the old form, with and without its trailer", "[quantize][imatrix]") {
  const auto file = read(legacy_form());
  REQUIRE(file);
  CHECK(file->legacy);
  CHECK(file->chunks == 17);
  CHECK(file->datasets == std::vector<std::string>{"data"});
  CHECK(make_importance(*file, "m", {})->entries.at("output") == std::vector<float>{1, 2, 4.5F});
  std::string text = legacy_form();
  text.resize(text.size() - 12);
  CHECK(read(text)->datasets.empty());
}

TEST_CASE("read_imatrix survives a cut at every byte and counts beyond the file",
          "[quantize][imatrix]") {
  for (const std::string& whole : {legacy_form(), gguf_form()}) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const auto file = read(whole.substr(0, size));
      if (!file) CHECK_FALSE(file.error().message.empty());
    }
  }
  std::string huge = legacy_form();
  for (const std::size_t at : {0U, 4U, 18U}) {
    std::string text = huge;
    const std::int32_t many = 0x7FFFFFFF;
    std::memcpy(text.data() + at, &many, sizeof many);
    CHECK_FALSE(read(text));
  }
}

TEST_CASE("read_imatrix tells a GGUF model from a matrix", "[quantize][imatrix]") {
  GgufModel model;
  model.kv = {{"general.architecture", std::string("llama")}};
  model.tensors = {tensor("a.weight", {2}, {1, 2})};
  Text sink;
  REQUIRE(write_gguf(model, sink, {1, std::size_t{1} << 16, nullptr}));
  CHECK(has(read(sink.text).error().message, "no importance matrix"));
  CHECK(has(read("attn_q=q8_0 attn_k=q6_K\n").error().message, "m.imatrix"));
}

TEST_CASE("imatrix_statistics tells sum, spread and unused experts, in the order of the layers",
          "[quantize][imatrix]") {
  const auto all = imatrix_statistics(*read(gguf_form()));
  REQUIRE(all.size() == 2);
  CHECK(all[0].name == "blk.0.attn_q.weight");
  CHECK(all[0].columns == 3);
  CHECK(all[0].sum == Approx(3));
  CHECK(all[0].active == Approx(2.0 / 3));
  CHECK(all[0].entropy == Approx(0.9183).epsilon(0.001));
  CHECK(all[1].experts == 2);
  CHECK(all[1].unused_experts == 1);
  CHECK(all[1].tokens == 4);
}
