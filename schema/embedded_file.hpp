// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace modeld {

/// A file of the source tree whose bytes are part of the program (cmake/embed.cmake).
struct EmbeddedFile {
  std::string_view name; ///< without folders
  std::string_view text;
};

namespace contracts {
/// index.sql, migrations and openapi.yaml.
std::span<const EmbeddedFile> files();
} // namespace contracts

namespace architectures {
/// One TOML file for each model family.
std::span<const EmbeddedFile> files();
} // namespace architectures

namespace tokenizers {
/// pre_tokenizer_definitions.json, pre_tokenizers.json and tokenizer_classes.json.
std::span<const EmbeddedFile> files();
} // namespace tokenizers

namespace model_tables {
/// gguf_tensors.txt.
std::span<const EmbeddedFile> files();
} // namespace model_tables

namespace chat_templates {
/// Templates by the version of mistral-common's vocabularies: "mistral-v11.jinja".
std::span<const EmbeddedFile> files();
} // namespace chat_templates

} // namespace modeld
