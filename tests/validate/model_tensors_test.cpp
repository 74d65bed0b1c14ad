// SPDX-License-Identifier: Apache-2.0
// What an architecture's tensors are, by schema/gguf_tensors.txt: GX-12, GX-15.
#include "validate/model_tensors.hpp"

#include "gguf_builder.hpp"
#include "repository_rows.hpp"
#include "schema/embedded_file.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <string>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::validate;

namespace {

const GgufWriter w;

Files model(const Tiny& tiny) {
  return {{"tiny.gguf", tiny.str()}};
}

Tiny number(const std::string& key, std::uint64_t value) {
  Tiny tiny;
  tiny.set("llama." + key, w.kv_u32("llama." + key, value));
  return tiny;
}

/// `arch = "x"` of a family's file.
std::string architecture_of(std::string_view toml) {
  constexpr std::string_view k_key = "\narch = \"";
  const std::size_t at = toml.find(k_key);
  if (at == std::string_view::npos) return {};
  toml.remove_prefix(at + k_key.size());
  return std::string(toml.substr(0, toml.find('"')));
}

} // namespace

TEST_CASE("ModelTensors::of knows every architecture that families convert to",
          "[validate][gguf][GX-15]") {
  std::size_t known = 0;
  for (const EmbeddedFile& file : architectures::files()) {
    const std::string arch = architecture_of(file.text);
    if (arch.empty() || arch == "clip") continue; // what families share; projectors
    INFO(file.name << ": " << arch);
    const auto table = ModelTensors::of(arch);
    REQUIRE(table);
    CHECK(table->dims("token_embd.weight", false));
    for (const ModelTensors::Need& need : table->needs())
      for (const auto& list : need.alternatives)
        for (const std::string& name : list) {
          CHECK(table->dims(name, need.in_blocks));
          CHECK(is_known_gguf_tensor(need.in_blocks ? LocalName::whole(name, 0) : name));
        }
    ++known;
  }
  CHECK(known > 90);
  CHECK_FALSE(ModelTensors::of("nobody"));
  CHECK_FALSE(ModelTensors::of(""));
  CHECK_FALSE(ModelTensors::of("lla"));
}

TEST_CASE("LocalName takes blocks and towers apart", "[validate][gguf]") {
  const LocalName plain = LocalName::of("blk.12.attn_q.weight");
  CHECK(plain.block == 12U);
  CHECK(plain.name == "attn_q.weight");
  const LocalName tower = LocalName::of("enc.blk.3.attn_q.weight");
  CHECK(tower.block == 3U);
  CHECK(tower.name == "enc.attn_q.weight");
  CHECK(LocalName::whole(tower.name, 3) == "enc.blk.3.attn_q.weight");
  for (const char* name : {"token_embd.weight", "blk.x.attn_q.weight", "blk.", "blk.7", "enc.blk."})
    CHECK_FALSE(LocalName::of(name).block);
}

TEST_CASE("check_repository names each tensor that a model cannot do without (GX-15)",
          "[validate][gguf][GX-15][A18]") {
  for (const Tiny::Tensor& tensor : Tiny().tensors) {
    if (tensor.name == "output.weight") continue;
    Tiny tiny;
    tiny.erase_tensor(tensor.name);
    INFO(tensor.name);
    const Report report = check_all(model(tiny));
    INFO(list(report));
    bool named = false;
    for (const Finding& finding : report.findings())
      named |= finding.rule == "GX-15" && finding.message.find(tensor.name) != std::string::npos;
    CHECK(named);
  }
  Tiny tied;
  tied.erase_tensor("output.weight");
  expect_row("tied", model(tied), "ACCEPT");
  Tiny foreign;
  foreign.tensors.push_back({"blk.0.ssm_d", {32}, 0, ""});
  expect_row("of another architecture", model(foreign), "WARN GX-15");
}

TEST_CASE("check_repository compares every shape with the metadata (GX-12)",
          "[validate][gguf][GX-12]") {
  expect_row("feed forward", model(number("feed_forward_length", 64)), "REJECT GX-12");
  expect_row("key length", model(number("attention.key_length", 8)), "REJECT GX-12");
  expect_row("value length", model(number("attention.value_length", 8)), "REJECT GX-12");
  expect_row("good key length", model(number("attention.key_length", 16)), "ACCEPT");
  for (const char* name :
       {"output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"}) {
    Tiny tiny;
    tiny.tensor(name).dims = {16};
    expect_row(name, model(tiny), "REJECT GX-12");
  }
  Tiny down;
  down.tensor("blk.0.ffn_down.weight").dims = {32, 31};
  const Report report = check_all(model(down));
  INFO(list(report));
  bool told = false;
  for (const Finding& finding : report.findings())
    told |= finding.message.find("is [32, 31], feed_forward_length, embedding_length make "
                                 "it [32, 32]") != std::string::npos;
  CHECK(told);
}

TEST_CASE("check_repository takes a file of prediction layers alone (GX-10, GX-14)",
          "[validate][gguf][GX-10][GX-14]") {
  Tiny tiny = number("block_count", 3);
  for (Tiny::Tensor& tensor : tiny.tensors)
    if (tensor.name.starts_with("blk.0.")) tensor.name[4] = '2';
  expect_row("blocks are missing", model(tiny), "REJECT GX-10");
  tiny.set("llama.nextn_predict_layers", w.kv_u32("llama.nextn_predict_layers", 1));
  expect_row("prediction", model(tiny), "ACCEPT");
  // Lists of what each layer is may have two or three elements then, and no other number.
  const auto pattern = [&tiny](std::uint64_t count) {
    const std::string key = "llama.attention.sliding_window_pattern";
    tiny.set(key, w.kv(key, 9, w.arr(7, count, std::string(count, '\1'))));
    return model(tiny);
  };
  expect_row("a list of layers", pattern(2), "ACCEPT");
  expect_row("a list of all", pattern(3), "ACCEPT");
  expect_row("a shorter list", pattern(1), "REJECT GX-14");
  expect_row("a longer list", pattern(4), "REJECT GX-14");
  tiny.erase("llama.attention.sliding_window_pattern");
  tiny.set("llama.nextn_predict_layers", w.kv_u32("llama.nextn_predict_layers", 2));
  expect_row("one of two", model(tiny), "REJECT GX-10");
}

TEST_CASE("find_misfits takes absurd metadata for unknown (GX-12)", "[validate][gguf][GX-12]") {
  Tiny tiny = number("attention.head_count", 0xFFFFFFFF);
  tiny.set("llama.attention.key_length", w.kv("llama.attention.key_length", 10, w.u64(~0ULL)));
  tiny.set("llama.embedding_length", w.kv("llama.embedding_length", 10, w.u64(~0ULL)));
  CHECK_FALSE(check_all(model(tiny)).accepted()); // and nothing overflows
}
