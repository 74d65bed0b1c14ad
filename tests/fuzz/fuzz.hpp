// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

namespace modeld::fuzz {

// One for each parser of strangers' files; always 0, or the process ends.
int fuzz_chat_template(const std::uint8_t* data, std::size_t size);
int fuzz_config(const std::uint8_t* data, std::size_t size);
int fuzz_gguf(const std::uint8_t* data, std::size_t size);
int fuzz_gguf_split(const std::uint8_t* data, std::size_t size);
int fuzz_hub_answer(const std::uint8_t* data, std::size_t size);
int fuzz_imatrix(const std::uint8_t* data, std::size_t size);
int fuzz_json(const std::uint8_t* data, std::size_t size);
int fuzz_model_card(const std::uint8_t* data, std::size_t size);
int fuzz_router(const std::uint8_t* data, std::size_t size);
int fuzz_safetensors(const std::uint8_t* data, std::size_t size);
int fuzz_sentencepiece(const std::uint8_t* data, std::size_t size);
int fuzz_shard_index(const std::uint8_t* data, std::size_t size);
int fuzz_sniff(const std::uint8_t* data, std::size_t size);
int fuzz_tokenizer(const std::uint8_t* data, std::size_t size);
int fuzz_worker(const std::uint8_t* data, std::size_t size);

inline std::span<const std::byte> bytes_of(const std::uint8_t* data, std::size_t size) {
  return std::as_bytes(std::span(data, size));
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// An invariant; ends the process in every build.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "invariant broken: %s\n", what);
  std::abort();
}

} // namespace modeld::fuzz
