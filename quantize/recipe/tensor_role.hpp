// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_model.hpp"

#include <cstddef>
#include <optional>
#include <string_view>

namespace modeld::quantize {

/// What a tensor does in the network, as far as the choice of its type depends on it. Told by the
/// name alone, as in the reference.
enum class TensorRole {
  token_embedding,
  attention_q,
  attention_k,
  attention_v,
  attention_qkv,
  attention_kv_b,
  attention_output,
  ffn_up,
  ffn_gate,
  ffn_down,
  output,
  other,
};

TensorRole tensor_role(std::string_view name);

/// V and what contains V: more sensitive than the rest.
bool is_value_like(TensorRole role);

/// "token_embd.weight" and its per-layer twin.
bool is_token_embedding(std::string_view name);

/// Whether the reference's quantizer touches a tensor of this name and shape at all: weights of
/// two or more dimensions that are no norm, router, convolution, position table and the like.
bool is_quantizable(const GgufTensor& tensor);

/// Dimensions without the ones behind the last that is not one; at least one.
std::size_t dimensions(const GgufTensor& tensor);

/// The number in "blk.<n>." at the start; nothing where there is none.
std::optional<int> layer_number(std::string_view name);

/// The order in which the quantizer writes tensors: by layer (those of no layer first), then by
/// name.
bool quantizer_order(std::string_view a, std::string_view b);

} // namespace modeld::quantize
