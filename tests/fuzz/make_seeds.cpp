// SPDX-License-Identifier: Apache-2.0
// Writes tests/fuzz/seeds/: small good files of each kind, and the lures that the catalogue knows.
#include "tests/validate/gguf_builder.hpp"
#include "tests/validate/hf_repository.hpp"

#include <filesystem>
#include <fstream>
#include <string>

using namespace modeld::test;

namespace {

std::filesystem::path g_folder; // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

void seed(const std::string& target, const std::string& name, const std::string& bytes) {
  std::filesystem::create_directories(g_folder / target);
  std::ofstream(g_folder / target / name, std::ios::binary) << bytes;
}

void safetensors() {
  seed("safetensors", "two",
       st(object({"\"__metadata__\":{\"format\":\"pt\"}", entry("a", "F32", "[2]", "0", "8"),
                  entry("b", "BF16", "[2,2]", "8", "16")}),
          zeros(16)));
  seed("safetensors", "small-types",
       st(object({entry("a", "F4", "[4]", "0", "2"), entry("b", "F6_E2M3", "[4]", "2", "5"),
                  entry("c", "BOOL", "[]", "5", "6"), entry("d", "F64", "[0,3]", "6", "6")}),
          "\x01\x02\x03\x04\x05\x01"));
  seed("safetensors", "escapes", st(object({entry("\\u0061\\n", "I8", "[1]", "0", "1")}), "x"));
  seed("safetensors", "empty", st("{}      ", ""));
}

void gguf() {
  GgufWriter old;
  old.short_lengths = true;
  Gguf v1 = good(old);
  v1.ver = 1;
  GgufWriter swapped;
  swapped.big_endian = true;
  seed("gguf", "good", good().str());
  seed("gguf", "version-1", v1.str());
  seed("gguf", "big-endian", good(swapped).str());
  const GgufWriter w;
  Tiny tiny;
  for (auto& tensor : tiny.tensors) // the shapes small, the names all there
    if (tensor.dims.size() == 1) tensor.type = 0;
  tiny.set("tokenizer.chat_template", w.kv_str("tokenizer.chat_template", "{{ messages }}"));
  seed("gguf", "tiny", tiny.str().substr(0, 3000)); // metadata and a little data
  Gguf kinds = good();
  kinds.kvs.push_back(w.kv("x.flags", 9, w.arr(7, 2, std::string("\0\1", 2))));
  kinds.kvs.push_back(w.kv("x.names", 9, w.arr(8, 2, w.str("one") + w.str("two"))));
  kinds.kvs.push_back(w.kv("x.f64", 12, zeros(8)));
  kinds.tis = {w.ti("q", {32, 2}, 2, 0), w.ti("m", {32}, 39, 64), w.ti("k", {256}, 12, 96)};
  kinds.data = zeros(96 + 160);
  seed("gguf", "kinds", kinds.str());
  Gguf first = good();
  first.kvs = {w.arch(), w.kv("split.no", 2, w.u16(0)), w.kv("split.count", 2, w.u16(2)),
               w.kv("split.tensors.count", 5, w.i32(2))};
  Gguf second = first;
  second.kvs = {w.kv("split.no", 2, w.u16(1)), first.kvs[2], first.kvs[3]};
  second.tis = {w.ti("b", {8}, 0, 0)};
  const std::string one = first.str();
  seed("gguf_split", "two", le(static_cast<std::uint16_t>(one.size())) + one + second.str());
}

void texts() {
  const Files files = HfRepository().files();
  seed("shard_index", "two", files.at("model.safetensors.index.json"));
  seed("shard_index", "total",
       R"({"metadata":{"total_size":1.0e3},"weight_map":{"a":"x.safetensors"}})");
  seed("config", "llama", files.at("config.json"));
  seed(
      "config", "nested",
      R"({"architectures":["A"],"text_config":{"model_type":"qwen3_moe","num_experts":4,"hidden_size":8},)"
      R"("quantization_config":{"quant_method":"fp8"},"rope_scaling":{"factor":2.0},"eos_token_id":[1,2]})");
  seed("tokenizer", "bpe", files.at("tokenizer.json"));
  seed(
      "tokenizer", "merges",
      R"({"added_tokens":[{"id":3,"content":"<s>"}],"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b",["a","b"]]},)"
      R"("chat_template":"{{ messages }}","added_tokens_decoder":{"3":{"content":"<s>"}}})");
  seed("tokenizer", "unigram",
       R"({"model":{"type":"Unigram","vocab":[["<unk>",0.0],["a",-1.5]]}})");
  seed("json", "all", R"({"a":[1,-2.5e+3,true,false,null,"x\u00e9\ud83d\ude00\n"],"b":{"c":{}}})");
  seed("json", "words", R"([NaN, Infinity, -Infinity, "\\", ""])");
  seed("chat_template", "usual",
       "{%- for m in messages -%}{{ '<|' + m['role'] + '|>' ~ m.content | trim }}{%- endfor -%}");
  seed("chat_template", "hostile",
       "{{ ''['__cl' ~ 'ass__'] }}{% macro m(x) %}{{ m(range(1000000)) }}{% endmacro %}{# c #}");
  seed("sniff", "pickle", "cos\nsystem\n(S'x'\ntR.");
  seed("sniff", "lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  seed("sniff", "zip", std::string("PK\x03\x04") + zeros(26) + "archive/data.pkl");
  seed("sniff", "html", "<!DOCTYPE html>");
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  g_folder = argv[1];
  safetensors();
  gguf();
  texts();
  return 0;
}
