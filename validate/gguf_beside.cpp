// SPDX-License-Identifier: Apache-2.0
// A GGUF file in the folder of its checkpoint: GX-20, GX-21.
#include "validate/escape.hpp"
#include "validate/gguf_model.hpp"
#include "validate/repository_facts.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>

namespace modeld::validate {
namespace {

void compare(std::string_view what, std::optional<std::uint64_t> here,
             std::optional<std::uint64_t> there, Report& report) {
  if (!here || !there || *here == *there) return;
  report.warn("GX-21", std::nullopt,
              fmt::format("{} is {} here and {} in the checkpoint beside it", what, *here, *there));
}

/// The one template that the repository gives, by the usual precedence.
std::optional<std::string> repository_template(const RepositoryFacts& facts) {
  if (const auto bytes = facts.files.bytes("chat_template.jinja"))
    return std::string(text_of(*bytes));
  const auto config = facts.files.bytes("tokenizer_config.json");
  if (!config || config->size() > facts.options.limits.config_bytes) return std::nullopt;
  const JsonDocument document =
      JsonDocument::parse(text_of(*config), JsonReader::NonFinite::accept);
  const auto text = document.root()["chat_template"].as_string();
  return text ? std::optional(std::string(*text)) : std::nullopt;
}

} // namespace

void check_gguf_beside_checkpoint(const RepositoryFacts& facts, const GgufModelView& model,
                                  Report& report) {
  if (facts.embedding == nullptr || model.model_key("block_count") == nullptr) return;
  const GgufTensorInfo* embedding = model.find("token_embd.weight");
  compare("the number of embedding rows",
          embedding == nullptr ? std::nullopt : std::optional(embedding->ne[1]),
          facts.embedding_rows(), report);
  compare("the hidden size", model.model_number("embedding_length"), facts.hidden, report);
  compare("the number of layers", model.model_number("block_count"), facts.layers, report);
  const GgufValueView* own = model.key("tokenizer.chat_template");
  const auto text = own == nullptr ? std::nullopt : own->as_string();
  const auto other = repository_template(facts);
  if (text && other && *text != *other)
    report.warn("GX-20", own->offset,
                "the chat template differs from the one of the checkpoint beside it");
}

} // namespace modeld::validate
