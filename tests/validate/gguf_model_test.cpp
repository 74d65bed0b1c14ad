// SPDX-License-Identifier: Apache-2.0
// The rows of validation.md 6.4: split files, models, data.
#include "validate/gguf_model.hpp"

#include "gguf_builder.hpp"
#include "repository_rows.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::validate;
using namespace std::string_literals;

namespace {

const GgufWriter w;

constexpr const char* k_first = "m-00001-of-00002.gguf";
constexpr const char* k_second = "m-00002-of-00002.gguf";

struct Split {
  std::string no;
  std::string count;
  std::string tensors;
  std::string name = "a";
  std::string arch; ///< a key of its own

  explicit Split(int number)
      : no(w.kv("split.no", 2, w.u16(static_cast<std::uint64_t>(number)))),
        count(w.kv("split.count", 2, w.u16(2))), tensors(w.kv("split.tensors.count", 5, w.i32(2))),
        name(number == 0 ? "a" : "b"), arch(number == 0 ? w.arch() : "") {}

  std::string str() const {
    Gguf file = good();
    file.kvs.clear();
    for (const std::string& kv : {arch, no, count, tensors})
      if (!kv.empty()) file.kvs.push_back(kv);
    file.tis = {w.ti(name, {8}, 0, 0)};
    return file.str();
  }
};

Files split(const Split& first, const Split& second) {
  return {{k_first, first.str()}, {k_second, second.str()}};
}

Files model(const Tiny& tiny) {
  return {{"tiny.gguf", tiny.str()}};
}

} // namespace

TEST_CASE("check_repository gives the verdicts of SP-T01 to SP-T12 (split files)",
          "[validate][gguf][split][D07][SP-T01][SP-T02][SP-T03][SP-T04][SP-T05][SP-T06][SP-T07]"
          "[SP-T08][SP-T09][SP-T10][SP-T11][SP-T12]") {
  const Split first(0);
  const Split second(1);
  expect_row("SP-T01", split(first, second), "ACCEPT");
  Split changed = second;
  changed.no = w.kv("split.no", 2, w.u16(7));
  expect_row("SP-T02", split(first, changed), "REJECT SP-04");
  changed.no = w.kv_u32("split.no", 1);
  expect_row("SP-T03", split(first, changed), "REJECT SP-01");
  changed.no = "";
  expect_row("SP-T05", split(first, changed), "REJECT SP-01");
  changed = first;
  changed.count = w.kv_u32("split.count", 2);
  expect_row("SP-T04", split(changed, second), "REJECT SP-01");
  changed = second;
  changed.count = w.kv("split.count", 2, w.u16(9));
  expect_row("SP-T06", split(first, changed), "REJECT SP-05");
  Split one = first;
  one.tensors = w.kv("split.tensors.count", 5, w.i32(99));
  expect_row("SP-T07", split(one, second), "REJECT SP-06");
  changed = second;
  changed.tensors = one.tensors;
  expect_row("SP-T07 both", split(one, changed), "REJECT SP-06");
  changed = second;
  changed.name = "a";
  expect_row("SP-T08", split(first, changed), "REJECT SP-07");
  expect_row("SP-T09", {{k_first, first.str()}}, "REJECT SP-03");
  expect_row("SP-T10", {{"m.gguf", first.str()}}, "REJECT SP-02");
  expect_row("SP-T10", {{"m.gguf", first.str()}}, "REJECT SP-09");
  for (const std::uint64_t count : {0U, 1U}) {
    one = first;
    one.count = w.kv("split.count", 2, w.u16(count));
    expect_row("SP-T11", {{"m.gguf", one.str()}}, "ACCEPT");
  }
  changed = second;
  changed.tensors = w.kv("split.tensors.count", 5, w.i32(2));
  changed.arch = w.arch("qwen2");
  expect_row("SP-08", split(first, changed), "WARN SP-08");
  expect_row("SP-T12", {{"x.gguf.part1of2", good().str().substr(0, 60)}}, "REJECT SP-10");
  expect_row("SP-10", {{"x.gguf-split-a", good().str().substr(0, 60)}}, "REJECT SP-10");
  expect_row("SP-10", {{"x.gguf.001", good().str().substr(0, 60)}}, "REJECT SP-10");
}

TEST_CASE("check_repository gives the verdicts of GX-T01 to GX-T06 (vocabulary)",
          "[validate][gguf][model][GX-T01][GX-T02][GX-T03][GX-T04][GX-T05][GX-T06]") {
  expect_row("TINY", model(Tiny()), "ACCEPT");
  const auto tokens = [](int count, bool twice = false) {
    Tiny tiny;
    std::string items;
    std::string types;
    for (int i = 0; i < count; ++i) {
      items += w.str(twice && i == 1 ? "t0" : "t" + std::to_string(i));
      types += w.i32(1);
    }
    const auto n = static_cast<std::uint64_t>(count);
    tiny.set("tokenizer.ggml.tokens", w.kv("tokenizer.ggml.tokens", 9, w.arr(8, n, items)));
    tiny.set("tokenizer.ggml.token_type", w.kv("tokenizer.ggml.token_type", 9, w.arr(5, n, types)));
    tiny.erase("tokenizer.ggml.scores");
    return tiny;
  };
  expect_row("GX-T01", model(tokens(7)), "REJECT GX-01");
  expect_row("GX-T02", model(tokens(9)), "REJECT GX-01");
  const auto with = [](const std::string& key, const std::string& kv) {
    Tiny tiny;
    tiny.set(key, kv);
    return model(tiny);
  };
  const std::string scores = "tokenizer.ggml.scores";
  expect_row("GX-T03 short", with(scores, w.kv(scores, 9, w.arr(6, 3, zeros(12)))), "REJECT GX-02");
  expect_row("GX-T03 long", with(scores, w.kv(scores, 9, w.arr(6, 9, zeros(36)))), "WARN GX-02");
  const std::string types = "tokenizer.ggml.token_type";
  expect_row("GX-T04", with(types, w.kv(types, 9, w.arr(0, 8, std::string(8, '\1')))),
             "REJECT GX-02");
  expect_row("GX-03", with(types, w.kv(types, 9, w.arr(5, 8, zeros(32)))), "WARN GX-03");
  const std::string bos = "tokenizer.ggml.bos_token_id";
  expect_row("GX-T05 range", with(bos, w.kv_u32(bos, 99999)), "WARN GX-04");
  expect_row("GX-T05 type", with(bos, w.kv(bos, 5, w.i32(1))), "REJECT GX-04");
  expect_row("GX-T06", model(tokens(8, true)), "WARN GX-05");
}

TEST_CASE("check_repository checks byte tokens, merges and tables of a tokenizer",
          "[validate][gguf][model][D09][GX-06][GX-07][GX-08]") {
  Tiny tiny;
  std::string types;
  for (int i = 0; i < 8; ++i)
    types += w.i32(i == 0 ? 6 : 1);
  const auto tokens = [&](const std::string& first) {
    std::string items = w.str(first);
    for (int i = 1; i < 8; ++i)
      items += w.str("t" + std::to_string(i));
    tiny.set("tokenizer.ggml.tokens", w.kv("tokenizer.ggml.tokens", 9, w.arr(8, 8, items)));
    return model(tiny);
  };
  tiny.set("tokenizer.ggml.token_type", w.kv("tokenizer.ggml.token_type", 9, w.arr(5, 8, types)));
  expect_row("GX-06 good", tokens("<0x0A>"), "ACCEPT");
  for (const char* bad : {"<0x-1>", "<0x1>", "<0x123>", "<0xGG>", "x"})
    expect_row(bad, tokens(bad), "REJECT GX-06");

  Tiny bpe;
  bpe.set("tokenizer.ggml.model", w.kv_str("tokenizer.ggml.model", "gpt2"));
  expect_row("GX-07", model(bpe), "REJECT GX-07");
  bpe.set("tokenizer.ggml.merges", w.kv("tokenizer.ggml.merges", 9, w.arr(8, 1, w.str("t 0"))));
  expect_row("D09 missing", model(bpe), "WARN GX-07");
  bpe.set("tokenizer.ggml.pre", w.kv_str("tokenizer.ggml.pre", "default"));
  expect_row("D09 default", model(bpe), "WARN GX-07");
  bpe.set("tokenizer.ggml.pre", w.kv_str("tokenizer.ggml.pre", "llama-bpe"));
  expect_row("D09 good", model(bpe), "ACCEPT");

  const std::string map = "tokenizer.ggml.precompiled_charsmap";
  const auto charsmap = [&](std::uint64_t count, const std::string& bytes) {
    Tiny t;
    t.set(map, w.kv(map, 9, w.arr(1, count, bytes)));
    return model(t);
  };
  expect_row("GX-08 short", charsmap(3, zeros(3)), "REJECT GX-08");
  expect_row("GX-08 long", charsmap(8, "\x04\0\0\0abcd"s), "REJECT GX-08");
  expect_row("GX-08 good", charsmap(9, "\x04\0\0\0abcde"s), "ACCEPT");
}

TEST_CASE(
    "check_repository gives the verdicts of GX-T07 to GX-T18 (numbers and tensors)",
    "[validate][gguf][model][A18][D14][GX-T07][GX-T08][GX-T09][GX-T10][GX-T11][GX-T12][GX-T13]"
    "[GX-T14][GX-T15][GX-T16][GX-T17][GX-T18]") {
  const auto number = [](const std::string& key, std::uint64_t v) {
    Tiny tiny;
    tiny.set("llama." + key, w.kv_u32("llama." + key, v));
    return tiny;
  };
  expect_row("GX-T07 0", model(number("block_count", 0)), "REJECT GX-10");
  expect_row("GX-T07 513", model(number("block_count", 513)), "REJECT GX-10");
  expect_row("GX-T08", model(number("block_count", 2)), "REJECT GX-10");
  Tiny wide;
  wide.set("llama.block_count", w.kv("llama.block_count", 10, w.u64(1)));
  expect_row("GX-T09", model(wide), "WARN GG-23");
  expect_row("GX-T10 0", model(number("attention.head_count", 0)), "REJECT GX-12");
  expect_row("GX-T10 3", model(number("attention.head_count", 3)), "REJECT GX-12");
  expect_row("GX-T11", model(number("attention.head_count_kv", 4)), "REJECT GX-12");
  Tiny experts = number("expert_count", 2);
  experts.set("llama.expert_used_count", w.kv_u32("llama.expert_used_count", 4));
  expect_row("GX-T12 used", model(experts), "REJECT GX-13");
  expect_row("GX-T12 many", model(number("expert_count", 1'000'000)), "REJECT GX-13");
  Tiny no_vocab = number("vocab_size", 0xFFFFFFFF);
  no_vocab.set("tokenizer.ggml.model", w.kv_str("tokenizer.ggml.model", "no_vocab"));
  for (const char* key : {"tokens", "scores", "token_type"})
    no_vocab.erase("tokenizer.ggml."s + key);
  expect_row("GX-T13", model(no_vocab), "REJECT GX-11");
  Tiny extra;
  extra.tensors.push_back({"foo.weight", {8}, 0, ""});
  expect_row("GX-T14", model(extra), "WARN GX-15");
  Tiny missing;
  missing.erase_tensor("output_norm.weight");
  expect_row("GX-T15", model(missing), "REJECT GX-15");
  missing = Tiny();
  missing.erase_tensor("blk.0.attn_v.weight");
  expect_row("A18", model(missing), "REJECT GX-15");
  Tiny turned;
  turned.tensor("token_embd.weight").dims = {8, 32};
  expect_row("GX-T16", model(turned), "REJECT GX-12");
  Tiny arch;
  arch.erase("general.architecture");
  expect_row("GX-T17 missing", model(arch), "REJECT GG-21");
  arch.set("general.architecture", w.kv_u32("general.architecture", 1));
  expect_row("GX-T17 u32", model(arch), "REJECT GG-21");
  arch = Tiny();
  arch.set("general.architecture", w.arch("zzz"));
  expect_row("GX-T17 zzz", model(arch), "WARN GG-21");
  Gguf clip = good();
  clip.kvs = {w.arch("clip"), w.kv("clip.vision.image_grid_pinpoints", 9, w.arr(5, 3, zeros(12)))};
  expect_row("GX-T18", {{"mmproj.gguf", clip.str()}}, "REJECT GX-14");
  clip.kvs[1] = w.kv_u32("clip.vision.patch_size", 0);
  expect_row("GX-18", {{"mmproj.gguf", clip.str()}}, "REJECT GX-18");
  expect_row("GX-19", model(number("context_length", 0)), "WARN GX-19");
  Tiny layers;
  layers.set("llama.attention.head_count_kv",
             w.kv("llama.attention.head_count_kv", 9, w.arr(5, 2, w.i32(1) + w.i32(1))));
  expect_row("D14 GX-14", model(layers), "REJECT GX-14");
}

TEST_CASE("check_repository notes a file type that the tensors do not have (GX-16)",
          "[validate][gguf][model][GX-16]") {
  Tiny tiny;
  tiny.set("general.file_type", w.kv_u32("general.file_type", 15));
  CHECK(check_all(model(tiny)).has("GX-16", Severity::info));
}

TEST_CASE("check_repository gives the hint for splits of another alignment (SP-11)",
          "[validate][gguf][split][SP-11]") {
  Gguf file = good();
  file.kvs.push_back(w.kv_u32("general.alignment", 64));
  file.align = 64;
  file.tis = {w.ti("a", {8}, 0, 0), w.ti("b", {8}, 0, 32)};
  file.data = zeros(64);
  const Report report = check_all({{"m.gguf", file.str()}});
  REQUIRE(report.has("GG-40", Severity::error));
  CHECK(report.findings().front().hint.find("split tools pad with 32") != std::string::npos);
}

TEST_CASE("check_repository checks adapters", "[validate][gguf][model][GX-17]") {
  const auto adapter = [](std::uint64_t rank, const std::string& type, float alpha) {
    Gguf file = good();
    file.kvs = {w.arch(), w.kv_str("general.type", "adapter"), w.kv_str("adapter.type", type),
                w.kv_f32("adapter.lora.alpha", alpha)};
    file.tis = {w.ti("blk.0.attn_q.weight.lora_a", {8, 2}, 0, 0),
                w.ti("blk.0.attn_q.weight.lora_b", {rank, 8}, 0, 64)};
    file.data = zeros(64 + rank * 32);
    return Files{{"lora.gguf", file.str()}};
  };
  expect_row("good", adapter(2, "lora", 16), "ACCEPT");
  expect_row("rank", adapter(4, "lora", 16), "REJECT GX-17");
  expect_row("type", adapter(2, "other", 16), "REJECT GX-17");
}

TEST_CASE("check_repository with data gives the verdicts of BD-T01 to BD-T07 in whole files",
          "[validate][data][BD-T01][BD-T02][BD-T03][BD-T05][BD-T07]") {
  Tiny tiny;
  for (auto& tensor : tiny.tensors) {
    std::size_t size = 4;
    for (const std::uint64_t dim : tensor.dims)
      size *= static_cast<std::size_t>(dim);
    for (std::size_t i = 0; i < size; i += 4)
      tensor.data += w.f32(static_cast<float>(i % 64));
  }
  expect_row("TINY", model(tiny), "ACCEPT", "repo", true);
  tiny.tensor("output_norm.weight").data.replace(0, 4, "\x00\x00\xC0\x7F"s);
  expect_row("BD-T01", model(tiny), "REJECT BD-02", "repo", true);
  expect_row("BD-T01 headers only", model(tiny), "ACCEPT");

  const auto one = [](std::int64_t type, std::uint64_t n, const std::string& data,
                      bool big = false) {
    GgufWriter writer;
    writer.big_endian = big;
    Gguf file = good(writer);
    file.kvs.push_back(writer.kv_u32("general.quantization_version", 2));
    file.tis = {writer.ti("a", {n}, type, 0)};
    file.data = data + zeros((32 - data.size() % 32) % 32);
    return Files{{"m.gguf", file.str()}};
  };
  expect_row("BD-T02", one(2, 32, "\x00\x7C"s + zeros(16)), "REJECT BD-01", "repo", true);
  expect_row("BD-T03 FF", one(39, 32, "\xFF" + zeros(16)), "REJECT BD-01", "repo", true);
  expect_row("BD-T03 00", one(39, 32, zeros(17)), "ACCEPT", "repo", true);
  expect_row("BD-T05", one(14, 256, std::string(208, '\xFF') + "\x00\x7C"s), "REJECT BD-01", "repo",
             true);
  expect_row("BD-T07", one(1, 1, "\x7C\x00"s, true), "REJECT BD-02", "repo", true);
}
