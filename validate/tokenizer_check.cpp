// SPDX-License-Identifier: Apache-2.0
// tokenizer.json, tokenizer_config.json and chat templates: TK-01 to TK-13.
#include "validate/chat_template_scan.hpp"
#include "validate/escape.hpp"
#include "validate/repository.hpp"
#include "validate/repository_facts.hpp"
#include "validate/tokenizer_vocab.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace modeld::validate {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return out;
}

JsonDocument read_side_file(const RepositoryFacts& facts, std::string_view path, Report& report) {
  const auto bytes = facts.files.bytes(path);
  if (!bytes || bytes->size() > facts.options.limits.config_bytes) return {};
  JsonDocument document = JsonDocument::parse(text_of(*bytes), JsonReader::NonFinite::accept);
  report.set_path(std::string(path));
  return document;
}

void check_sizes(const RepositoryFacts& facts, const TokenizerVocab& vocab, Report& report) {
  const auto rows = facts.embedding_rows();
  if (!rows || vocab.size() == 0) return;
  const std::uint64_t size = vocab.max_id() + 1;
  if (size > *rows) {
    report.error(
        "TK-02", std::nullopt,
        fmt::format("the largest token id is {}, the embedding has {} rows", vocab.max_id(), *rows),
        "the tokenizer is another model's, or the embedding was not resized");
  } else if (facts.vocab && size > *facts.vocab) {
    report.warn(
        "TK-03", std::nullopt,
        fmt::format("the largest token id is {}, vocab_size is {}", vocab.max_id(), *facts.vocab));
  } else if (size < *rows) {
    report.note(
        "TK-04", std::nullopt,
        fmt::format("the tokenizer has {} tokens, the embedding {} rows: padding", size, *rows));
  }
}

/// TK-06: what tokenizer_config.json says of added tokens.
void check_decoder(JsonValue config, const TokenizerVocab& vocab, Report& report) {
  for (const JsonValue entry : config["added_tokens_decoder"]) {
    const auto id = plain_u64(entry.name());
    const auto content = entry["content"].as_string();
    if (!id || !content) continue;
    const auto known = vocab.id_of(*content);
    if (known == *id) continue;
    report.warn(
        "TK-06", entry.offset(),
        fmt::format("added_tokens_decoder gives {} the id {}, tokenizer.json {}", quoted(*content),
                    *id, known ? fmt::format("has {}", *known) : std::string("does not know it")));
    return;
  }
}

/// TK-07: special tokens by their text.
void check_special_texts(JsonValue config, const TokenizerVocab& vocab, Report& report) {
  for (const std::string_view key : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
    const JsonValue value = config[key];
    const auto text = value.is_object() ? value["content"].as_string() : value.as_string();
    if (!text || text->empty() || vocab.id_of(*text)) continue;
    report.warn("TK-07", value.offset(),
                fmt::format("{} is {}, which is no token", key, quoted(*text)));
  }
}

/// One chat template and where it was found.
struct Template {
  std::string where;
  std::string name; ///< of several; empty for the only one
  std::string text;
};

void templates_of(JsonValue value, const std::string& where, std::vector<Template>& found) {
  if (const auto text = value.as_string()) found.push_back({where, "", std::string(*text)});
  for (const JsonValue item : value)
    if (const auto text = item["template"].as_string())
      found.push_back(
          {where, std::string(item["name"].as_string().value_or("")), std::string(*text)});
}

std::vector<Template> find_templates(const RepositoryFacts& facts, JsonValue tokenizer_config,
                                     Report& report) {
  std::vector<Template> found;
  for (const FileSet::Entry& entry : facts.files.entries()) {
    const bool additional = entry.path.starts_with("additional_chat_templates/");
    if (entry.path != "chat_template.jinja" && !additional) continue;
    if (const auto bytes = facts.files.bytes(entry.path))
      found.push_back({entry.path, additional ? entry.path : "", std::string(text_of(*bytes))});
  }
  const JsonDocument own = read_side_file(facts, "chat_template.json", report);
  templates_of(own.root()["chat_template"], "chat_template.json", found);
  templates_of(tokenizer_config["chat_template"], "tokenizer_config.json", found);
  return found;
}

/// TK-12: <|tokens|> of a template that the vocabulary does not have.
void check_template_tokens(const Template& item, const TokenizerVocab& vocab, Report& report) {
  const std::string_view text = item.text;
  for (std::size_t at = text.find("<|"); at != std::string_view::npos;
       at = text.find("<|", at + 2)) {
    const std::size_t end = text.find("|>", at);
    if (end == std::string_view::npos) return;
    const std::string_view token = text.substr(at, end + 2 - at);
    constexpr std::size_t k_longest = 40;
    if (token.size() > k_longest || token.find_first_of("{}'\" ") != std::string_view::npos ||
        vocab.id_of(token))
      continue;
    report.warn("TK-12", std::nullopt,
                fmt::format("the chat template writes {}, which is no token", quoted(token)));
    return;
  }
}

void check_templates(const RepositoryFacts& facts, JsonValue tokenizer_config,
                     const TokenizerVocab& vocab, Report& report) {
  const std::vector<Template> found = find_templates(facts, tokenizer_config, report);
  const Template* plain = nullptr;
  for (const Template& item : found) {
    report.set_path(item.where);
    scan_chat_template(item.text,
                       item.name.empty() ? "the chat template"
                                         : fmt::format("the chat template {}", quoted(item.name)),
                       facts.options.limits, report);
    if (vocab.size() > 0) check_template_tokens(item, vocab, report);
    if (!item.name.empty()) continue;
    if (plain != nullptr && plain->text != item.text)
      report.warn("TK-10", std::nullopt,
                  fmt::format("the chat templates of {} and {} differ; the first is used",
                              plain->where, item.where));
    if (plain == nullptr) plain = &item;
  }
  const std::string name = lower(facts.files.name());
  if (found.empty() && facts.embedding != nullptr &&
      (name.find("instruct") != std::string::npos || name.find("chat") != std::string::npos)) {
    report.set_path("tokenizer_config.json");
    report.warn("TK-10", std::nullopt,
                fmt::format("the model calls itself {}, and there is no chat template",
                            quoted(facts.files.name())));
  }
}

bool has_vocabulary(const FileSet& files) {
  constexpr auto k_names = std::to_array<std::string_view>(
      {"tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model",
       "tekken.json", "merges.txt", "sentencepiece.bpe.model", "tokenizer.tiktoken",
       "tiktoken.model", "rwkv_vocab_v20230424.txt", "qwen.tiktoken"});
  return std::any_of(files.entries().begin(), files.entries().end(), [&](const auto& entry) {
    const std::string_view name = std::string_view(entry.path).substr(entry.path.rfind('/') + 1);
    return std::find(k_names.begin(), k_names.end(), name) != k_names.end() ||
           name.ends_with(".tiktoken");
  });
}

} // namespace

void check_tokenizer_files(const RepositoryFacts& facts, Report& report) {
  TokenizerVocab vocab;
  if (const auto bytes = facts.files.bytes("tokenizer.json")) {
    report.set_path("tokenizer.json");
    if (bytes->size() > facts.options.limits.tokenizer_bytes)
      report.error("GN-08", 0,
                   fmt::format("the file has {} bytes, the limit is {}", bytes->size(),
                               facts.options.limits.tokenizer_bytes));
    else
      vocab.read(text_of(*bytes), report);
    check_sizes(facts, vocab, report);
  } else if (facts.embedding != nullptr && facts.config.root().exists() &&
             !has_vocabulary(facts.files)) {
    report.set_path("config.json");
    report.warn("TK-09", std::nullopt, "there is neither tokenizer.json nor another vocabulary");
  }
  const JsonDocument config = read_side_file(facts, "tokenizer_config.json", report);
  const JsonValue root = config.root();
  if (root.is_object()) {
    if (vocab.size() > 0) {
      check_decoder(root, vocab, report);
      check_special_texts(root, vocab, report);
    }
    if (root["auto_map"].exists())
      report.warn("TK-13", root["auto_map"].offset(),
                  "the tokenizer wants Python code of the repository, which is never run");
  }
  check_templates(facts, root, vocab, report);
}

} // namespace modeld::validate
