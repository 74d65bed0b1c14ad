// SPDX-License-Identifier: Apache-2.0
#include "gguf_builder.hpp"

#include "schema/tensor_type.hpp"

#include <algorithm>
#include <bit>

namespace modeld::test {

std::string GgufWriter::f32(float v) const {
  return number(std::bit_cast<std::uint32_t>(v));
}

std::string GgufWriter::ti(std::string_view name, const std::vector<std::uint64_t>& dims,
                           std::int64_t type, std::uint64_t offset) const {
  std::string out = str(name) + u32(dims.size());
  for (const std::uint64_t dim : dims)
    out += len(dim);
  return out + i32(type) + u64(offset);
}

std::string Gguf::str() const {
  std::string out =
      "GGUF" + w.u32(ver) + w.len(nt.value_or(tis.size())) + w.len(nk.value_or(kvs.size()));
  for (const std::string& kv : kvs)
    out += kv;
  for (const std::string& ti : tis)
    out += ti;
  if (!tis.empty() || !data.empty())
    while (out.size() % align != 0)
      out += pad;
  return out + data;
}

Gguf good(const GgufWriter& w) {
  Gguf file;
  file.w = w;
  file.kvs = {w.arch()};
  file.tis = {w.ti("a", {8}, 0, 0)};
  file.data = zeros(32);
  return file;
}

Tiny::Tiny(const GgufWriter& writer) : w(writer) {
  const auto u32 = [&](const std::string& key, std::uint64_t v) { set(key, w.kv_u32(key, v)); };
  set("general.architecture", w.arch());
  u32("llama.block_count", 1);
  u32("llama.context_length", 64);
  u32("llama.embedding_length", 32);
  u32("llama.feed_forward_length", 32);
  u32("llama.attention.head_count", 2);
  u32("llama.attention.head_count_kv", 1);
  set("llama.attention.layer_norm_rms_epsilon",
      w.kv_f32("llama.attention.layer_norm_rms_epsilon", 1e-5F));
  set("tokenizer.ggml.model", w.kv_str("tokenizer.ggml.model", "llama"));
  std::string tokens;
  std::string scores;
  std::string types;
  for (int i = 0; i < 8; ++i) {
    tokens += w.str("t" + std::to_string(i));
    scores += w.f32(0);
    types += w.i32(1);
  }
  set("tokenizer.ggml.tokens", w.kv("tokenizer.ggml.tokens", 9, w.arr(8, 8, tokens)));
  set("tokenizer.ggml.scores", w.kv("tokenizer.ggml.scores", 9, w.arr(6, 8, scores)));
  set("tokenizer.ggml.token_type", w.kv("tokenizer.ggml.token_type", 9, w.arr(5, 8, types)));
  tensors = {
      {"token_embd.weight", {32, 8}, 0, ""},    {"output_norm.weight", {32}, 0, ""},
      {"output.weight", {32, 8}, 0, ""},        {"blk.0.attn_norm.weight", {32}, 0, ""},
      {"blk.0.attn_q.weight", {32, 32}, 0, ""}, {"blk.0.attn_k.weight", {32, 16}, 0, ""},
      {"blk.0.attn_v.weight", {32, 16}, 0, ""}, {"blk.0.attn_output.weight", {32, 32}, 0, ""},
      {"blk.0.ffn_norm.weight", {32}, 0, ""},   {"blk.0.ffn_gate.weight", {32, 32}, 0, ""},
      {"blk.0.ffn_up.weight", {32, 32}, 0, ""}, {"blk.0.ffn_down.weight", {32, 32}, 0, ""},
  };
}

void Tiny::set(std::string_view key, std::string kv) {
  const auto at =
      std::find_if(kvs.begin(), kvs.end(), [&](const auto& p) { return p.first == key; });
  if (at != kvs.end())
    at->second = std::move(kv);
  else
    kvs.emplace_back(key, std::move(kv));
}

void Tiny::erase(std::string_view key) {
  std::erase_if(kvs, [&](const auto& p) { return p.first == key; });
}

Tiny::Tensor& Tiny::tensor(std::string_view name) {
  return *std::find_if(tensors.begin(), tensors.end(),
                       [&](const Tensor& t) { return t.name == name; });
}

void Tiny::erase_tensor(std::string_view name) {
  std::erase_if(tensors, [&](const Tensor& t) { return t.name == name; });
}

std::string Tiny::str() const {
  Gguf file;
  file.w = w;
  for (const auto& [key, kv] : kvs)
    file.kvs.push_back(kv);
  for (const Tensor& tensor : tensors) {
    std::uint64_t elements = 1;
    for (const std::uint64_t dim : tensor.dims)
      elements *= dim;
    const auto* type = find_tensor_type(static_cast<std::uint32_t>(tensor.type));
    const auto size = static_cast<std::size_t>(elements / type->block * type->bytes);
    file.tis.push_back(w.ti(tensor.name, tensor.dims, tensor.type, file.data.size()));
    file.data += tensor.data.empty() ? zeros(size) : tensor.data;
    file.data += zeros((32 - file.data.size() % 32) % 32);
  }
  return file.str();
}

} // namespace modeld::test
