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

// A protobuf field of bytes.
std::string field(int number, const std::string& bytes) {
  return std::string(1, static_cast<char>(number * 8 + 2)) +
         std::string(1, static_cast<char>(bytes.size())) + bytes;
}

std::string piece(const std::string& text, int type) {
  return field(1, field(1, text) + std::string("\x15\0\0\x80\xbf", 5) + std::string("\x18") +
                      static_cast<char>(type));
}

void tokenizer_models() {
  const std::string pieces =
      piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3) + piece("\xe2\x96\x81the", 1);
  seed("sentencepiece", "unigram", pieces);
  seed("sentencepiece", "bpe",
       pieces + field(2, std::string("\x18\x02", 2)) + field(3, field(1, "identity")));
}

// The old form: entries of name, calls and values, then chunks and the data set's name.
void importance() {
  const auto number = [](std::uint32_t n) { return le(n); };
  const std::string values = number(2) + zeros(4) + std::string("\0\0\x80\x3f", 4);
  seed("imatrix", "old",
       number(1) + number(6) + "blk.0." + number(3) + values + number(7) + number(4) + "text");
  const GgufWriter w;
  Gguf matrix = good();
  matrix.kvs = {w.kv("general.type", 8, w.str("imatrix")),
                w.kv("imatrix.datasets", 9, w.arr(8, 1, w.str("text"))),
                w.kv("imatrix.chunk_count", 4, number(1)),
                w.kv("imatrix.chunk_size", 4, number(512))};
  matrix.tis = {w.ti("a.weight.in_sum2", {8, 1}, 0, 0), w.ti("a.weight.counts", {1, 1}, 0, 32)};
  matrix.data = zeros(64);
  seed("imatrix", "gguf", matrix.str());
}

void cards() {
  seed("model_card", "usual",
       "license: apache-2.0\nlanguage: [en, de]\nbase_model:\n- org/name\ntags:\n- chat\n");
  seed("model_card", "odd",
       "a: &x [1, 0x1F, 1_000, .inf, ~, yes, 2020-01-01]\nb: *x\nc: |\n  text\n");
}

void hub_answers() {
  seed(
      "hub_answer", "tree",
      R"([{"type":"file","oid":"0123456789012345678901234567890123456789","size":3,"path":"a/b.json"},)"
      R"({"type":"directory","oid":"0123456789012345678901234567890123456789","size":0,"path":"a"}])");
  seed(
      "hub_answer", "info",
      R"({"id":"org/name","sha":"0123456789012345678901234567890123456789","private":false,"gated":"auto"})");
  seed("hub_answer", "link", R"(<https://hub.example/api/models/a?cursor=x>; rel="next")");
  seed("hub_answer", "address", "https://user@hub.example:8443/a/../b?X-Sig=1#f");
  seed("hub_answer", "ref", "org/name@refs/pr/1:Q4_K_M");
  seed("hub_answer", "range", "bytes 10-19/100");
  seed("hub_answer", "refusal", R"({"error":"Repository not found"})");
}

std::string packet(int kind, const std::string& payload) {
  return std::string(1, static_cast<char>(kind)) + le(static_cast<std::uint16_t>(payload.size())) +
         payload;
}

void workers() {
  seed("worker", "build",
       packet(4, std::string("\1\0\0\0", 4)) + packet(5, R"({"size":6,"via":"AUTO"})") +
           packet(6, "abcdef") + packet(7, "{}"));
  seed("worker", "count",
       packet(9, zeros(16)) + packet(8, R"({"code":"malformed","message":"m"})"));
  seed(
      "worker", "request",
      R"({"task":"report","name":"n","files":[{"path":"a","size":1}],"target":"Q4_K_M","via":"AUTO",)"
      R"("recipe":{"pure":true},"options":{"data":true},"threads":2,"memory":1000000})");
}

void requests() {
  const auto ask = [](const std::string& name, const std::string& line, const std::string& body) {
    std::string text = line + " HTTP/1.1\r\nHost: modeld\r\n";
    if (!body.empty())
      text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n";
    seed("router", name, text + "\r\n" + body);
  };
  ask("list", "GET /v1/snapshots", "");
  ask("show", "GET /v1/snapshots/org/name@main", "");
  ask("pull", "POST /v1/pulls", R"({"ref":"org/name@main:Q4_K_M","include":["*.json"]})");
  ask("build", "POST /v1/variants", R"({"ref":"org/name:Q4_K_M","recipe":{"pure":true}})");
  ask("pin", "PUT /v1/pins/mine", R"({"ref":"org/name@main"})");
  ask("lease", "POST /v1/leases", R"({"blob":"sha256:00","holder":"me","pid":1,"seconds":5})");
  ask("check", "POST /v1/checks", R"({"ref":"org/name","profile":"strict","context":4096})");
  ask("view", "POST /v1/views", R"({"ref":"org/name","target":"hf","root":"/tmp/x"})");
  ask("collect", "POST /v1/gc", R"({"dry_run":true})");
  ask("escapes", "GET /v1/jobs/%41%2f%C3%A9?x=1", "");
  seed("router", "range",
       "GET /v1/blobs/sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824 "
       "HTTP/1.1\r\nRange: bytes=1-3\r\nIf-None-Match: \"x\"\r\n\r\n");
  seed("router", "chunked",
       "POST /v1/scrub HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n");
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  g_folder = argv[1];
  safetensors();
  gguf();
  texts();
  tokenizer_models();
  importance();
  cards();
  hub_answers();
  workers();
  requests();
  return 0;
}
