// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace modeld::fuzz {

using Target = int (*)(const std::uint8_t*, std::size_t);

inline constexpr std::array<std::pair<std::string_view, Target>, 15> k_targets{{
    {"chat_template", fuzz_chat_template},
    {"config", fuzz_config},
    {"gguf", fuzz_gguf},
    {"gguf_split", fuzz_gguf_split},
    {"hub_answer", fuzz_hub_answer},
    {"imatrix", fuzz_imatrix},
    {"json", fuzz_json},
    {"model_card", fuzz_model_card},
    {"router", fuzz_router},
    {"safetensors", fuzz_safetensors},
    {"sentencepiece", fuzz_sentencepiece},
    {"shard_index", fuzz_shard_index},
    {"sniff", fuzz_sniff},
    {"tokenizer", fuzz_tokenizer},
    {"worker", fuzz_worker},
}};

} // namespace modeld::fuzz
