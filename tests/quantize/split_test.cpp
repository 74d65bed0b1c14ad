// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/gguf_split.hpp"

#include "quantize/gguf/gguf_source.hpp"
#include "quantize/gguf/gguf_writer.hpp"
#include "quantize/gguf/pipeline.hpp"
#include "quantize/recipe/quantize_model.hpp"
#include "tests/support/memory_files.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
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

/// Every byte of a row is the tensor's letter.
class Letter final : public TensorSource {
public:
  explicit Letter(char letter) : letter_(letter) {}
  Result<void> read_rows(std::uint64_t, std::uint64_t, std::span<std::byte> out) const override {
    std::fill(out.begin(), out.end(), static_cast<std::byte>(letter_));
    return {};
  }

private:
  char letter_;
};

GgufModel model_of(std::size_t tensors, bool big_endian = false) {
  GgufModel model;
  model.big_endian = big_endian;
  model.kv = {{"general.architecture", std::string("llama")},
              {"llama.block_count", std::uint32_t{3}},
              {"llama.context_length", std::uint32_t{64}},
              {"llama.embedding_length", std::uint32_t{32}},
              {"numbers", GgufArray(std::vector<std::int64_t>{-7, 1LL << 40})},
              {"words", GgufArray(std::vector<std::string>{"", "zwei"})},
              {"ratio", 0.25},
              {"small", std::int8_t{-3}}};
  for (std::size_t i = 0; i < tensors; ++i) {
    const char letter = static_cast<char>('!' + i);
    model.tensors.push_back({"blk." + std::to_string(i) + ".ffn_up.weight",
                             TensorType::f32,
                             {32, 2 + i % 2},
                             std::make_shared<Letter>(letter)});
  }
  return model;
}

std::string file_of(const GgufModel& model) {
  Text sink;
  REQUIRE(write_gguf(model, sink, {1, std::size_t{1} << 16, nullptr}));
  return sink.text;
}

std::vector<std::string> keys(const GgufModel& model) {
  std::vector<std::string> names;
  for (const GgufKv& kv : model.kv) {
    names.push_back(kv.key);
  }
  return names;
}

/// Files of the parts, as the split tool names them.
test::MemoryFiles files_of(const std::vector<GgufModel>& parts) {
  test::MemoryFiles files("parts");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    files.put(part_path("m", i, parts.size()), file_of(parts[i]));
  }
  return files;
}

Error open_error(const FileSet& files, std::string_view path) {
  const auto opened = open_gguf_source(files, path);
  REQUIRE_FALSE(opened);
  return opened.error();
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("split_gguf cuts by number of tensors and writes the split keys in the reference's order",
          "[quantize][split]") {
  const auto parts = split_gguf(model_of(5), {2, 0, false});
  REQUIRE(parts);
  REQUIRE(parts->size() == 3);
  CHECK((*parts)[2].tensors.size() == 1);
  CHECK(keys((*parts)[1]) ==
        std::vector<std::string>{"split.no", "split.tensors.count", "split.count"});
  CHECK(*(*parts)[1].find("split.no") == GgufValue(std::uint16_t{1}));
  CHECK(*(*parts)[1].find("split.tensors.count") == GgufValue(std::int32_t{5}));
  CHECK(*(*parts)[0].find("split.count") == GgufValue(std::uint16_t{3}));
  CHECK(keys((*parts)[0]).front() == "general.architecture");
}

TEST_CASE("split_gguf cuts by padded bytes and refuses a limit below the next tensor",
          "[quantize][split]") {
  // Tensors of 256 and 384 bytes in turn.
  const auto parts = split_gguf(model_of(4), {0, 640, false});
  REQUIRE(parts);
  CHECK(parts->size() == 2);
  CHECK(split_gguf(model_of(4), {0, 384, false})->size() == 4);
  const auto small = split_gguf(model_of(4), {0, 200, false});
  REQUIRE_FALSE(small);
  CHECK(has(small.error().message, "part 1 would have no tensor"));
}

TEST_CASE("split_gguf can leave the first part without tensors", "[quantize][split]") {
  const auto parts = split_gguf(model_of(3), {2, 0, true});
  REQUIRE(parts);
  REQUIRE(parts->size() == 3);
  CHECK((*parts)[0].tensors.empty());
  CHECK((*parts)[1].tensors.size() == 2);
}

TEST_CASE("merge_gguf gives back every tensor and marks the file as whole", "[quantize][split]") {
  const auto files = files_of(*split_gguf(model_of(5), {2, 0, false}));
  const auto source = open_gguf_source(files, "m-00001-of-00003.gguf");
  REQUIRE(source);
  CHECK(source->parts == std::vector<std::uint16_t>{0, 0, 1, 1, 2});
  const auto merged = merge_gguf(*source);
  REQUIRE(merged);
  CHECK(merged->tensors.size() == 5);
  CHECK(keys(*merged).back() == "split.count");
  CHECK(*merged->find("split.count") == GgufValue(std::uint16_t{0}));
  CHECK(*merged->find("split.no") == GgufValue(std::uint16_t{0}));
  // Splitting the merged file again gives the same parts.
  const auto again = files_of(*split_gguf(*merged, {2, 0, false}));
  for (const auto& entry : files.entries()) {
    const auto a = files.bytes(entry.path);
    const auto b = again.bytes(entry.path);
    CHECK(std::equal(a->begin(), a->end(), b->begin(), b->end()));
  }
  GgufSource whole;
  whole.model = model_of(1);
  CHECK_FALSE(merge_gguf(whole));
}

TEST_CASE("split_gguf refuses a part of another split", "[quantize][split]") {
  const auto parts = split_gguf(model_of(5), {2, 0, false});
  CHECK(has(split_gguf((*parts)[0], {}).error().hint, "merge"));
}

TEST_CASE("parse_split_limit reads megabytes and gigabytes only", "[quantize][split]") {
  CHECK(*parse_split_limit("128M") == 128'000'000);
  CHECK(*parse_split_limit("4G") == 4'000'000'000);
  for (const char* text : {"", "M", "0M", "-1M", "5", "5K", "5MB", "9999999G"}) {
    CHECK_FALSE(parse_split_limit(text));
  }
}

TEST_CASE("open_gguf_source names what is wrong with a split", "[quantize][gguf_source][B08]") {
  auto files = files_of(*split_gguf(model_of(5), {2, 0, false}));
  CHECK(has(open_error(files, "m-00002-of-00003.gguf").hint, "first part"));
  auto missing = files_of(*split_gguf(model_of(5), {2, 0, false}));
  missing.remove("m-00003-of-00003.gguf");
  CHECK(has(open_error(missing, "m-00001-of-00003.gguf").message,
            "'m-00003-of-00003.gguf' is missing"));

  const auto second = files.bytes("m-00002-of-00003.gguf");
  files.put("m-00003-of-00003.gguf",
            std::string(reinterpret_cast<const char*>(second->data()), second->size()));
  CHECK(has(open_error(files, "m-00001-of-00003.gguf").message, "split.no is 1 where 2 belongs"));

  auto renamed = files_of(*split_gguf(model_of(5), {2, 0, false}));
  const auto first = renamed.bytes("m-00001-of-00003.gguf");
  renamed.put("model.gguf",
              std::string(reinterpret_cast<const char*>(first->data()), first->size()));
  CHECK(
      has(open_error(renamed, "model.gguf").message, "its name must end in -00001-of-00003.gguf"));
}

TEST_CASE("Quantizing a split source gives one whole file without split keys",
          "[quantize][quantize_model][B08]") {
  const auto files = files_of(*split_gguf(model_of(5), {2, 0, false}));
  const auto source = open_gguf_source(files, "m-00001-of-00003.gguf");
  QuantizeRequest request;
  request.recipe.target = "Q4_0";
  const auto made = quantize_model(source->model, request);
  REQUIRE(made);
  REQUIRE(made->parts.size() == 1);
  CHECK(made->parts[0].tensors.size() == 5);
  for (const char* key : {"split.no", "split.count", "split.tensors.count"}) {
    CHECK(made->parts[0].find(key) == nullptr);
  }
}

TEST_CASE("Files of another alignment stay readable when split, merged and quantized",
          "[quantize][split][quantize_model]") {
  GgufModel model = model_of(3);
  model.kv.push_back({"general.alignment", std::uint32_t{256}});
  model.alignment = 256;
  const auto parts = split_gguf(model, {.max_tensors = 1});
  REQUIRE(parts);
  const test::MemoryFiles files = files_of(*parts);
  const auto source = open_gguf_source(files, "m-00001-of-00003.gguf");
  REQUIRE(source);
  const auto merged = merge_gguf(*source);
  REQUIRE(merged);
  const auto read = [](const GgufModel& written) {
    const std::string text = file_of(written);
    return read_gguf_model(std::as_bytes(std::span(text)), "m.gguf").has_value();
  };
  CHECK(read(*merged));
  QuantizeRequest request;
  request.recipe.target = "Q8_0";
  request.recipe.keep_split = true;
  request.parts = source->parts;
  const auto quantized = quantize_model(source->model, request);
  REQUIRE(quantized);
  for (const GgufModel& part : quantized->parts) {
    CHECK(read(part));
  }
}

TEST_CASE("read_gguf_model gives back what was written, in either byte order",
          "[quantize][gguf_source]") {
  for (const bool big_endian : {false, true}) {
    GgufModel model = model_of(3, big_endian);
    const std::string file = file_of(model);
    const auto read = read_gguf_model(std::as_bytes(std::span(file)), "m.gguf");
    REQUIRE(read);
    REQUIRE(read->kv.size() == model.kv.size());
    for (std::size_t i = 0; i < model.kv.size(); ++i) {
      CHECK(read->kv[i].key == model.kv[i].key);
      CHECK(read->kv[i].value == model.kv[i].value);
    }
    REQUIRE(read->tensors.size() == 3);
    CHECK(read->tensors[1].ne == std::vector<std::uint64_t>{32, 3});
    model.big_endian = false;
    CHECK(file_of(*read) == file_of(model));
  }
}
