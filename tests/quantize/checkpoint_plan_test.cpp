// SPDX-License-Identifier: Apache-2.0
// Checkpoints of every family against their configuration, by the rules of the family (RC-20 to
// RC-29).
#include "quantize/convert/describe.hpp"

#include "tests/quantize/golden_snapshot.hpp"
#include "tests/quantize/variant.hpp"
#include "validate/repository.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using namespace modeld;
using namespace modeld::test;
namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

const fs::path k_golden = fs::path(MODELD_TEST_DATA) / "golden";

json::object expected_of(const fs::path& folder) {
  std::ostringstream text;
  text << std::ifstream(folder / "expected.json").rdbuf();
  return json::parse(text.str()).as_object();
}

std::vector<validate::Finding> findings(const FileSet& files) {
  validate::CheckOptions how;
  how.plan = quantize::describe_checkpoint;
  std::vector<validate::Finding> out;
  for (const validate::CheckedFile& file : validate::check_repository(files, how))
    for (const validate::Finding& finding : file.report.findings())
      if (finding.severity == validate::Severity::error) out.push_back(finding);
  return out;
}

std::string list(const std::vector<validate::Finding>& all) {
  std::string out;
  for (const validate::Finding& one : all)
    out += std::string(one.rule) + " " + one.message + "\n";
  return out;
}

bool is_by_plan(std::string_view rule) {
  return rule == "RC-14" || rule == "RC-20" || rule == "RC-21" || rule == "RC-22" ||
         rule == "RC-26" || rule == "RC-29" || rule == "RC-30";
}

/// A golden case with one change, and what is to be said about it.
struct Row {
  const char* golden;
  const char* change; ///< one element of a variant's `tensors`
  const char* rule;
  const char* words;
};

constexpr Row k_rows[] = {
    // GPT-NeoX: one matrix for query, key and value; biases everywhere.
    {"tiny-pythia-160k", R"({"drop":"gpt_neox.layers.1.input_layernorm.weight"})", "RC-29",
     "gpt_neox.layers.1.input_layernorm.weight"},
    {"tiny-pythia-160k", R"({"drop":"gpt_neox.layers.1.attention.dense.bias"})", "RC-29",
     "gpt_neox.layers.1.attention.dense.bias"},
    {"tiny-pythia-160k",
     R"({"set":"gpt_neox.layers.1.attention.query_key_value.weight","shape":[256,128]})", "RC-20",
     "gpt_neox.layers.1.attention.query_key_value.weight"},
    {"tiny-pythia-160k",
     R"({"set":"gpt_neox.layers.1.mlp.dense_h_to_4h.weight","shape":[500,128]})", "RC-22",
     "[500, 128], the configuration makes it [512, 128]"},
    // GPT-2: matrices stored transposed, absolute positions.
    {"tiny-gpt2", R"({"drop":"transformer.h.1.attn.c_attn.weight"})", "RC-29",
     "transformer.h.1.attn.c_attn.weight"},
    {"tiny-gpt2", R"({"drop":"transformer.wpe.weight"})", "RC-29", "position_embd.weight"},
    {"tiny-gpt2", R"({"set":"transformer.h.1.mlp.c_fc.weight","shape":[96,380]})", "RC-22",
     "transformer.h.1.mlp.c_fc.weight"},
    // BERT: an encoder whose tensors have other names than the file says.
    {"bert-tiny-uncased", R"({"drop":"bert.encoder.layer.1.attention.self.key.weight"})", "RC-29",
     "bert.encoder.layer.1.attention.self.key.weight"},
    {"bert-tiny-uncased", R"({"drop":"bert.encoder.layer.1.output.LayerNorm.gamma"})", "RC-29",
     "bert.encoder.layer.1.output.LayerNorm.gamma"},
    {"bert-tiny-uncased",
     R"({"set":"bert.encoder.layer.1.intermediate.dense.weight","shape":[100,64]})", "RC-22",
     "the configuration makes it [128, 64]"},
    // Qwen 3 Next: gated delta-net in most layers, full attention in some, experts in all.
    {"Qwen3-Next-2M-A1M-Instruct", R"({"drop":"model.layers.1.linear_attn.out_proj.weight"})",
     "RC-29", "model.layers.1.linear_attn.out_proj.weight"},
    {"Qwen3-Next-2M-A1M-Instruct", R"({"drop":"model.layers.1.mlp.gate.weight"})", "RC-29",
     "model.layers.1.mlp.gate.weight"},
    {"Qwen3-Next-2M-A1M-Instruct", R"({"drop":"model.layers.1.mlp.experts.1.up_proj.weight"})",
     "RC-26", "model.layers.1.mlp.experts.1.up_proj.weight"},
    {"Qwen3-Next-2M-A1M-Instruct",
     R"({"set":"model.layers.1.linear_attn.in_proj_ba.weight","shape":[6,64]})", "RC-22",
     "model.layers.1.linear_attn.in_proj_ba.weight"},
    // DeepSeek 2: latent attention.
    {"DeepSeek-V2-Lite-Tiny-Chat", R"({"drop":"model.layers.1.self_attn.kv_a_layernorm.weight"})",
     "RC-29", "model.layers.1.self_attn.kv_a_layernorm.weight"},
    {"DeepSeek-V2-Lite-Tiny-Chat",
     R"({"set":"model.layers.1.self_attn.kv_a_proj_with_mqa.weight","shape":[40,32]})", "RC-21",
     "the configuration makes it [48, 32]"},
    // LFM2: convolutions in most layers.
    {"LFM2-1M", R"({"drop":"model.layers.0.conv.in_proj.weight"})", "RC-29",
     "model.layers.0.conv.in_proj.weight"},
    {"LFM2-1M", R"({"set":"model.layers.1.self_attn.q_layernorm.weight","shape":[23]})", "RC-20",
     "the configuration makes it [24]"},
    // Mamba 2: no attention at all.
    {"Mamba-Codestral-1M-v0.1", R"({"drop":"backbone.layers.1.mixer.D"})", "RC-29",
     "backbone.layers.1.mixer.D"},
    {"Mamba-Codestral-1M-v0.1",
     R"({"set":"backbone.layers.1.mixer.in_proj.weight","shape":[380,64]})", "RC-22",
     "the configuration makes it [388, 64]"},
    // gpt-oss: sinks and biases that cannot be left out.
    {"gpt-oss-2m-BF16", R"({"drop":"model.layers.1.self_attn.sinks"})", "RC-29",
     "model.layers.1.self_attn.sinks"},
    {"gpt-oss-2m-BF16", R"({"set":"model.layers.1.mlp.router.weight","shape":[3,96]})", "RC-26",
     "the configuration makes it [4, 96]"},
    // Phi 3: gate and up in one matrix.
    {"Tiny-Phi-3-mini-4k-instruct", R"({"drop":"model.layers.1.mlp.gate_up_proj.weight"})", "RC-29",
     "model.layers.1.mlp.gate_up_proj.weight"},
    {"Tiny-Phi-3-mini-4k-instruct",
     R"({"set":"model.layers.1.self_attn.qkv_proj.weight","shape":[380,128]})", "RC-20",
     "model.layers.1.self_attn.qkv_proj.weight"},
    // Jamba: layers of three kinds.
    {"AI21-Jamba-Mini-1.6", R"({"drop":"model.layers.1.self_attn.o_proj.weight"})", "RC-29",
     "model.layers.1.self_attn.o_proj.weight"},
    {"AI21-Jamba-Mini-1.6", R"({"drop":"model.layers.0.mamba.x_proj.weight"})", "RC-29",
     "model.layers.0.mamba.x_proj.weight"},
    // Llama's kind by the same rules.
    {"Qwen3-1M-A0.4M", R"({"drop":"model.layers.1.self_attn.q_norm.weight"})", "RC-29",
     "model.layers.1.self_attn.q_norm.weight"},
    {"Qwen3-1M-A0.4M", R"({"set":"model.layers.1.self_attn.o_proj.weight","shape":[96,120]})",
     "RC-22", "the configuration makes it [96, 128]"},
    {"Tiny-Llama3-1M-Instruct",
     R"({"set":"model.layers.1.self_attn.q_proj.weight","shape":[250,256]})", "RC-20",
     "model.layers.1.self_attn.q_proj.weight"},
    // A scale whose weight is gone.
    {"Tiny-FP8-Block128", R"({"drop":"model.layers.0.mlp.up_proj.weight"})", "RC-30",
     "model.layers.0.mlp.up_proj.weight"},
};

} // namespace

TEST_CASE("check_repository finds nothing to say against good snapshots of every family",
          "[quantize][golden][plan]") {
  std::size_t planned = 0;
  std::size_t cases = 0;
  for (const auto& folder : fs::directory_iterator(k_golden)) {
    if (!fs::exists(folder.path() / "expected.json")) continue;
    const json::object expected = expected_of(folder.path());
    const auto* dir = expected.if_contains("model_dir");
    if (dir == nullptr || !fs::is_directory(folder.path() / "snapshot")) continue;
    const MemoryFiles files = golden_snapshot(folder.path(), std::string(dir->as_string()));
    INFO(folder.path().filename().string());
    ++cases;
    const auto plan = quantize::describe_checkpoint(files);
    if (plan && !plan->header.empty()) ++planned;
    std::vector<validate::Finding> found = findings(files);
    std::erase_if(found, [](const auto& one) { return !is_by_plan(one.rule); });
    INFO(list(found));
    CHECK(found.empty());
  }
  CHECK(cases > 200);
  CHECK(planned > 230);
}

TEST_CASE("check_repository finds what a checkpoint lacks or has in another shape, in every family",
          "[quantize][plan][RC-20][RC-21][RC-22][RC-26][RC-29][RC-30]") {
  for (const Row& row : k_rows) {
    INFO(row.golden << " " << row.change);
    const fs::path folder = k_golden / row.golden;
    json::object variant{{"case", row.golden}, {"tensors", json::array{json::parse(row.change)}}};
    const std::string dir(expected_of(folder).at("model_dir").as_string());
    const auto found = findings(variant_snapshot(folder, dir, variant));
    INFO(list(found));
    CHECK(std::any_of(found.begin(), found.end(), [&](const validate::Finding& one) {
      return one.rule == row.rule && one.message.find(row.words) != std::string::npos;
    }));
  }
}
