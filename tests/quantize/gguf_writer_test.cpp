// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/gguf_writer.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <string>

using namespace modeld;
using namespace modeld::quantize;

namespace {

std::string text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class T>
T number_at(const std::vector<std::byte>& bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

GgufTensor tensor(std::string name, TensorType type, std::vector<std::uint64_t> ne) {
  return {std::move(name), type, std::move(ne), nullptr};
}

} // namespace

TEST_CASE("lay_out_gguf writes key, type and value of every metadata type",
          "[quantize][gguf_writer]") {
  GgufModel model;
  model.vocabulary_only = true;
  model.kv = {{"a", std::uint32_t{7}}, {"b", std::string("xy")}, {"c", true}};
  const auto layout = lay_out_gguf(model);
  REQUIRE(layout);
  using namespace std::string_literals;
  const std::string expected =
      "GGUF\3\0\0\0\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0"s + "\1\0\0\0\0\0\0\0a\4\0\0\0\7\0\0\0"s +
      "\1\0\0\0\0\0\0\0b\x8\0\0\0\2\0\0\0\0\0\0\0xy"s + "\1\0\0\0\0\0\0\0c\7\0\0\0\1"s;
  CHECK(text(layout->header) == expected);
  CHECK(layout->file_size == expected.size());
}

TEST_CASE("lay_out_gguf writes arrays with element type and count", "[quantize][gguf_writer]") {
  GgufModel model;
  model.vocabulary_only = true;
  model.kv = {{"k", GgufArray(std::vector<bool>{true, false})},
              {"l", GgufArray(std::vector<std::string>{"", "z"})},
              {"m", GgufArray(std::vector<std::int32_t>{-1})}};
  const auto layout = lay_out_gguf(model);
  REQUIRE(layout);
  using namespace std::string_literals;
  const std::string expected =
      "GGUF\3\0\0\0\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0"s +
      "\1\0\0\0\0\0\0\0k\x9\0\0\0\7\0\0\0\2\0\0\0\0\0\0\0\1\0"s +
      "\1\0\0\0\0\0\0\0l\x9\0\0\0\x8\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0z"s +
      "\1\0\0\0\0\0\0\0m\x9\0\0\0\5\0\0\0\1\0\0\0\0\0\0\0\xff\xff\xff\xff"s;
  CHECK(text(layout->header) == expected);
}

TEST_CASE("lay_out_gguf aligns data and pads every tensor", "[quantize][gguf_writer]") {
  GgufModel model;
  model.kv = {{"general.architecture", std::string("x")}};
  model.tensors = {tensor("a", TensorType::f32, {3}), tensor("b", TensorType::f16, {4, 4}),
                   tensor("c", TensorType::q8_0, {32, 2})};
  const auto layout = lay_out_gguf(model);
  REQUIRE(layout);
  REQUIRE(layout->header.size() % 32 == 0);
  const std::uint64_t start = layout->header.size();
  CHECK(layout->offsets == std::vector<std::uint64_t>{start, start + 32, start + 64});
  // 68 bytes of Q8_0 take three steps of 32.
  CHECK(layout->file_size == start + 64 + 96);
  CHECK(*gguf_file_size(model) == layout->file_size);
}

TEST_CASE("lay_out_gguf pads the header of a file without tensors unless it is a vocabulary",
          "[quantize][gguf_writer]") {
  GgufModel model;
  CHECK(*gguf_file_size(model) == 32);
  model.vocabulary_only = true;
  CHECK(*gguf_file_size(model) == 24);
}

TEST_CASE("lay_out_gguf swaps every number but the magic for big endian",
          "[quantize][gguf_writer]") {
  GgufModel model;
  model.big_endian = true;
  model.kv = {{"a", std::uint16_t{0x0102}}};
  const auto layout = lay_out_gguf(model);
  REQUIRE(layout);
  CHECK(text(layout->header).substr(0, 8) == std::string("GGUF\0\0\0\3", 8));
  CHECK(number_at<std::uint8_t>(layout->header, 24 + 7) == 1); // length of "a"
  CHECK(number_at<std::uint8_t>(layout->header, 24 + 9 + 3) == 2);
  CHECK(number_at<std::uint8_t>(layout->header, 24 + 9 + 4) == 1);
  CHECK(swapped_in_big_endian(TensorType::f16));
  CHECK(swapped_in_big_endian(TensorType::f32));
  CHECK_FALSE(swapped_in_big_endian(TensorType::bf16));
  CHECK_FALSE(swapped_in_big_endian(TensorType::q8_0));
}

TEST_CASE("lay_out_gguf refuses names of 64 bytes and takes 63", "[quantize][gguf_writer][D06]") {
  GgufModel model;
  model.tensors = {tensor(std::string(63, 'n'), TensorType::f32, {1})};
  CHECK(lay_out_gguf(model));
  model.tensors[0].name += 'n';
  const auto refused = lay_out_gguf(model);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("64 bytes, at most 63") != std::string::npos);
}

TEST_CASE("lay_out_gguf refuses a tensor name or key that stands twice",
          "[quantize][gguf_writer][D05]") {
  GgufModel model;
  model.tensors = {tensor("t", TensorType::f32, {1}), tensor("t", TensorType::f16, {1})};
  REQUIRE_FALSE(lay_out_gguf(model));
  CHECK(lay_out_gguf(model).error().message.find("'t'") != std::string::npos);
  model.tensors.pop_back();
  model.kv = {{"k", true}, {"k", false}};
  REQUIRE_FALSE(lay_out_gguf(model));
  CHECK(lay_out_gguf(model).error().message.find("'k'") != std::string::npos);
}

TEST_CASE("lay_out_gguf refuses empty arrays, broken blocks, five dimensions and odd alignments",
          "[quantize][gguf_writer]") {
  GgufModel model;
  model.kv = {{"k", GgufArray(std::vector<float>{})}};
  CHECK_FALSE(lay_out_gguf(model));
  model.kv.clear();
  model.tensors = {tensor("t", TensorType::q8_0, {16, 2})};
  CHECK_FALSE(lay_out_gguf(model));
  model.tensors = {tensor("t", TensorType::f32, {1, 1, 1, 1, 1})};
  CHECK_FALSE(lay_out_gguf(model));
  model.tensors = {tensor("t", TensorType::f32, {std::uint64_t{1} << 62, 8})};
  CHECK_FALSE(lay_out_gguf(model));
  model.tensors.clear();
  for (const std::uint32_t alignment : {0U, 24U}) {
    model.alignment = alignment;
    CHECK_FALSE(lay_out_gguf(model));
  }
}
