// SPDX-License-Identifier: Apache-2.0
#include "quantize/recipe/tensor_role.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace modeld::quantize {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

struct Part {
  std::string_view text;
  TensorRole role;
};

// The first that is found in the name decides.
constexpr std::array k_role_parts{
    Part{"attn_qkv.weight", TensorRole::attention_qkv},
    Part{"attn_kv_b.weight", TensorRole::attention_kv_b},
    Part{"attn_v.weight", TensorRole::attention_v},
    Part{"attn_k.weight", TensorRole::attention_k},
    Part{"attn_q.weight", TensorRole::attention_q},
    Part{"attn_output.weight", TensorRole::attention_output},
    Part{"ffn_up", TensorRole::ffn_up},
    Part{"ffn_gate", TensorRole::ffn_gate},
    Part{"ffn_down", TensorRole::ffn_down},
};

// Parts of names that are left as they are: norms, routers and routing tables, small matrices of
// Gemma 3n, convolutions of Mamba and LFM2, MiniMax's index projections, RWKV's small matrices,
// T5's relative bias, position tables and patch embeddings of vision towers, audio codebooks.
constexpr std::array<std::string_view, 35> k_untouched{
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "time_mix_first.weight",
    "time_mix_w0.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_v0.weight",
    "time_mix_v1.weight",
    "time_mix_v2.weight",
    "time_mix_a0.weight",
    "time_mix_a1.weight",
    "time_mix_a2.weight",
    "time_mix_g1.weight",
    "time_mix_g2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight",
    "attn_rel_b.weight",
    ".position_embd",
    "sam.pos_embd",
    "sam.neck.",
    "sam.net_",
    ".rel_pos",
    ".patch_embd",
    ".patch_merger",
    "a.rvq.codebook",
    "mm.a.code_embd",
};

// Whole names: learned positions and token types of BERT and the like.
constexpr std::array<std::string_view, 2> k_untouched_names{"position_embd.weight",
                                                            "token_types.weight"};

/// "Ends with weight" as the reference computes it: in unsigned arithmetic a name of five letters
/// passes as well.
bool ends_like_a_weight(std::string_view name) {
  return name.rfind("weight") == name.size() - 6;
}

} // namespace

bool is_token_embedding(std::string_view name) {
  return name == "token_embd.weight" || name == "per_layer_token_embd.weight";
}

TensorRole tensor_role(std::string_view name) {
  if (name == "output.weight") return TensorRole::output;
  if (is_token_embedding(name)) return TensorRole::token_embedding;
  for (const Part& part : k_role_parts) {
    if (contains(name, part.text)) return part.role;
  }
  return TensorRole::other;
}

bool is_value_like(TensorRole role) {
  return role == TensorRole::attention_v || role == TensorRole::attention_qkv ||
         role == TensorRole::attention_kv_b;
}

std::size_t dimensions(const GgufTensor& tensor) {
  std::size_t count = tensor.ne.size();
  while (count > 1 && tensor.ne[count - 1] == 1) {
    --count;
  }
  return count;
}

bool is_quantizable(const GgufTensor& tensor) {
  if (dimensions(tensor) < 2 || !ends_like_a_weight(tensor.name)) return false;
  const auto in_name = [&](std::string_view part) { return contains(tensor.name, part); };
  return std::none_of(k_untouched.begin(), k_untouched.end(), in_name) &&
         std::find(k_untouched_names.begin(), k_untouched_names.end(), tensor.name) ==
             k_untouched_names.end();
}

std::optional<int> layer_number(std::string_view name) {
  constexpr std::string_view k_prefix = "blk.";
  if (!name.starts_with(k_prefix)) return std::nullopt;
  int layer = 0;
  const char* end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + k_prefix.size(), end, layer);
  if (error != std::errc{}) return std::nullopt;
  return layer;
}

bool quantizer_order(std::string_view a, std::string_view b) {
  const int layer_a = layer_number(a).value_or(-1);
  const int layer_b = layer_number(b).value_or(-1);
  return layer_a != layer_b ? layer_a < layer_b : a < b;
}

} // namespace modeld::quantize
