// SPDX-License-Identifier: Apache-2.0
#include "validate/gguf.hpp"

#include "gguf_builder.hpp"
#include "validate/check.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::validate;

namespace {

void check_invariants(std::string_view file, const Checked<GgufHeader>& checked) {
  if (!checked.accepted()) {
    CHECK(checked.report.first_error().has_value());
    return;
  }
  std::uint64_t end = 0;
  for (const GgufTensorInfo& tensor : checked.value->tensors) {
    REQUIRE(tensor.offset >= end);
    end = tensor.offset + tensor.bytes;
    REQUIRE(checked.value->data_start + end <= file.size());
    CHECK(checked.value->find_tensor(tensor.name) == &tensor);
  }
  for (const GgufKvView& item : checked.value->kv) {
    CHECK(checked.value->find(item.key) == &item.value);
    std::uint64_t count = 0;
    for (const std::string_view text : item.value.strings()) {
      REQUIRE(text.data() + text.size() <= file.data() + file.size());
      ++count;
    }
    if (item.value.is_array() && item.value.element == GgufType::string)
      CHECK(count == item.value.count);
  }
}

} // namespace

TEST_CASE("read_gguf gives the same values in both byte orders and all versions",
          "[validate][gguf][D12]") {
  for (const int version : {1, 2, 3}) {
    for (const bool big_endian : {false, true}) {
      GgufWriter w;
      w.big_endian = big_endian;
      w.short_lengths = version == 1;
      Gguf file = good(w);
      file.ver = static_cast<std::uint32_t>(version);
      file.kvs.push_back(w.kv("x.u16", 2, w.u16(65535)));
      file.kvs.push_back(w.kv("x.i32", 5, w.i32(-7)));
      file.kvs.push_back(w.kv_f32("x.f32", 1.5F));
      file.kvs.push_back(w.kv("x.u64", 10, w.u64(~std::uint64_t{0})));
      file.kvs.push_back(w.kv("x.list", 9, w.arr(8, 2, w.str("one") + w.str("two"))));
      file.kvs.push_back(w.kv("x.ints", 9, w.arr(5, 3, w.i32(1) + w.i32(-2) + w.i32(3))));
      file.kvs.push_back(w.kv("x.flag", 7, "\x01"));
      file.tis = {w.ti("a", {4, 2}, 0, 0)};
      const std::string text = file.str();
      INFO(version << (big_endian ? " big" : " little"));
      const auto header = read_gguf(bytes_of(text), "m.gguf");
      REQUIRE(header);
      CHECK(header->version == static_cast<std::uint32_t>(version));
      CHECK(header->encoding.big_endian == big_endian);
      CHECK(header->find("general.architecture")->as_string() == "llama");
      CHECK(header->find("x.u16")->as_u64() == 65535);
      CHECK(header->find("x.i32")->as_i64() == -7);
      CHECK_FALSE(header->find("x.i32")->as_u64());
      CHECK(header->find("x.f32")->as_f64() == 1.5);
      CHECK(header->find("x.u64")->as_u64() == ~std::uint64_t{0});
      CHECK_FALSE(header->find("x.u64")->as_i64());
      CHECK(header->find("x.flag")->as_bool() == true);
      const auto strings = header->find("x.list")->strings();
      CHECK(std::vector<std::string_view>(strings.begin(), strings.end()).size() == 2);
      CHECK(header->find("x.ints")->at(1).as_i64() == -2);
      CHECK(header->find("nothing") == nullptr);
      const GgufTensorInfo* a = header->find_tensor("a");
      REQUIRE(a != nullptr);
      CHECK(a->ne[1] == 2);
      CHECK(a->rows() == 2);
      CHECK(a->bytes == 32);
      CHECK(header->data(bytes_of(text), *a).size() == 32);
    }
  }
}

TEST_CASE("check_gguf refuses a model cut at every byte (D01)", "[validate][gguf][D01]") {
  const std::string file = Tiny().str();
  REQUIRE(check_gguf_file(bytes_of(file), "m").accepted());
  const auto whole = read_gguf(bytes_of(file), "m");
  REQUIRE(whole);
  for (std::size_t size = 0; size < file.size(); ++size) {
    // In the data one cut a tensor will do: nothing else is looked at there.
    if (size > whole->data_start + 64 && size % 61 != 0) continue;
    const auto checked = check_gguf(bytes_of(file).first(size), size, "m");
    INFO(size);
    CHECK_FALSE(checked.accepted());
  }
}

TEST_CASE("check_gguf keeps its promises whatever bit is flipped", "[validate][gguf]") {
  Tiny tiny;
  const std::string file = tiny.str();
  const std::size_t end = static_cast<std::size_t>(read_gguf(bytes_of(file), "m")->data_start);
  for (std::size_t bit = 0; bit < end * 8; ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto strict = check_gguf(bytes_of(flipped), flipped.size(), "m");
    check_invariants(flipped, strict);
    const auto compat = check_gguf(bytes_of(flipped), flipped.size(), "m", Profile::compat);
    check_invariants(flipped, compat);
    if (strict.accepted()) CHECK(compat.accepted());
  }
}

TEST_CASE("check_gguf needs no data, only the metadata and the size of the file",
          "[validate][gguf]") {
  const std::string file = Tiny().str();
  const auto start = static_cast<std::size_t>(read_gguf(bytes_of(file), "m")->data_start);
  CHECK(check_gguf(bytes_of(file).first(start), file.size(), "m").accepted());
  const auto less = check_gguf(bytes_of(file).first(start / 2), file.size(), "m");
  CHECK(less.report.has("GN-07", Severity::error)); // more of the file is wanted
}

TEST_CASE("check_gguf reads one number or one per layer (D14)", "[validate][gguf][D14]") {
  const GgufWriter w;
  const std::string key = "llama.attention.head_count_kv";
  for (const std::string& kv :
       {w.kv_u32(key, 1), w.kv(key, 9, w.arr(5, 1, w.i32(1))), w.kv(key, 10, w.u64(1))}) {
    Tiny tiny;
    tiny.set(key, kv);
    const std::string file = tiny.str();
    const auto header = read_gguf(bytes_of(file), "m");
    REQUIRE(header);
    const GgufValueView& value = *header->find(key);
    CHECK((value.is_array() ? value.at(0) : value).as_u64() == 1);
  }
}
