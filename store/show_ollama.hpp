// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/digest.hpp"
#include "store/gguf_facts.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::store {

/// A model in Ollama's terms (hub-protocol.md 4.5): a manifest, and the small layers beside the
/// GGUF itself. Equal facts give equal bytes, so that digests are stable.
struct OllamaModel {
  std::string manifest;
  std::vector<std::string> texts; ///< config, template, parameters, licence; by their SHA-256
};

/// general.architecture of a projector: the part of a model that sees or hears.
inline constexpr std::string_view k_projector_architecture = "clip";

/// A file that belongs to a model as a layer of its own.
struct OllamaProjector {
  Sha256Digest blob;
  std::uint64_t size = 0;
};

OllamaModel describe_for_ollama(const GgufFacts& facts, const Sha256Digest& blob,
                                std::uint64_t size,
                                const std::optional<OllamaProjector>& projector = {});

/// A prompt format that Ollama's template language can express, known by the marks that its chat
/// template writes. Null where none of ours fits: Ollama then passes the prompt through.
struct PromptFormat {
  std::string_view mark; ///< occurs in the chat template
  std::string_view text; ///< Go template
  std::vector<std::string_view> stops;
};
const PromptFormat* find_prompt_format(std::string_view chat_template);

/// "7.6B", "494.03M", "512K": as Ollama prints numbers of parameters.
std::string parameter_count_text(std::uint64_t count);

} // namespace modeld::store
