// SPDX-License-Identifier: Apache-2.0
#include "store/gguf_facts.hpp"

#include "schema/recipe.hpp"
#include "validate/gguf.hpp"

namespace modeld::store {
namespace {

std::string text_of(const validate::GgufHeader& header, std::string_view key) {
  const auto* value = header.find(key);
  const auto text = value == nullptr ? std::nullopt : value->as_string();
  return std::string(text.value_or(""));
}

std::string file_type_of(const validate::GgufHeader& header) {
  const auto* value = header.find("general.file_type");
  const auto number = value == nullptr ? std::nullopt : value->as_u64();
  if (!number) return {};
  for (const std::string_view name : all_target_names()) {
    if (find_target(name)->file_type == *number) return std::string(name);
  }
  return {};
}

} // namespace

Result<GgufFacts> read_gguf_facts(std::span<const std::byte> file, std::string_view path) {
  MODELD_ASSIGN(const auto header, validate::read_gguf(file, path, validate::Profile::compat));
  GgufFacts facts;
  facts.architecture = text_of(header, "general.architecture");
  facts.file_type = file_type_of(header);
  facts.chat_template = text_of(header, "tokenizer.chat_template");
  facts.license = text_of(header, "general.license");
  for (const auto& tensor : header.tensors) {
    facts.parameters += tensor.elements();
  }
  return facts;
}

} // namespace modeld::store
