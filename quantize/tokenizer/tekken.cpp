// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/byte_ranks.hpp"
#include "quantize/tokenizer/hf_decoder.hpp"
#include "quantize/tokenizer/vocabulary.hpp"
#include "schema/embedded_file.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>

// mistral-common's files. tekken.json: {"config": {"version", "default_vocab_size",
// "default_num_special_tokens"}, "vocab": [{"rank", "token_bytes"}], "special_tokens": [...]}; the
// special tokens have the first ids, then the byte tokens by rank. Or a SentencePiece model whose
// name ends in its version: tokenizer.model.v3.

namespace modeld::quantize {
namespace {

constexpr std::string_view k_file = "tekken.json";

/// Those of files before version 11, which do not list them.
constexpr std::array<std::string_view, 20> k_old_special{"<unk>",
                                                         "<s>",
                                                         "</s>",
                                                         "[INST]",
                                                         "[/INST]",
                                                         "[AVAILABLE_TOOLS]",
                                                         "[/AVAILABLE_TOOLS]",
                                                         "[TOOL_RESULTS]",
                                                         "[/TOOL_RESULTS]",
                                                         "[TOOL_CALLS]",
                                                         "[IMG]",
                                                         "<pad>",
                                                         "[IMG_BREAK]",
                                                         "[IMG_END]",
                                                         "[PREFIX]",
                                                         "[MIDDLE]",
                                                         "[SUFFIX]",
                                                         "[SYSTEM_PROMPT]",
                                                         "[/SYSTEM_PROMPT]",
                                                         "[TOOL_CONTENT]"};

tl::unexpected<Error> broken(std::string cause) {
  return fail(Errc::malformed, fmt::format("reading '{}': {}", k_file, cause));
}

struct Tekken {
  std::string version;
  std::vector<std::string> special;
  ByteRanks ranks;
};

Result<std::uint64_t> count_of(const boost::json::object& config, std::string_view name) {
  const auto count = whole_number(config.if_contains(name));
  if (!count || *count < 0 || static_cast<std::uint64_t>(*count) > k_max_tokens) {
    return broken(fmt::format("{} is no count", name));
  }
  return static_cast<std::uint64_t>(*count);
}

Result<std::vector<std::string>> special_tokens(const boost::json::object& file,
                                                std::uint64_t count) {
  std::vector<std::string> out;
  const auto* listed = file.if_contains("special_tokens");
  if (listed != nullptr && listed->is_array()) {
    for (const auto& each : listed->get_array()) {
      const auto* entry = each.if_object();
      const auto text = entry == nullptr ? std::nullopt : text_member(*entry, "token_str");
      const auto rank = entry == nullptr ? std::nullopt : whole_number(entry->if_contains("rank"));
      if (!text || !rank || static_cast<std::size_t>(*rank) != out.size()) {
        return broken(
            fmt::format("special token {} is not the one of rank {}", out.size(), out.size()));
      }
      out.emplace_back(*text);
    }
  } else {
    out.assign(k_old_special.begin(), k_old_special.end());
  }
  if (out.size() > count) {
    return broken(fmt::format("{} special tokens and room for {}", out.size(), count));
  }
  while (out.size() < count) {
    out.push_back(fmt::format("<SPECIAL_{}>", out.size()));
  }
  return out;
}

Result<ByteRanks> byte_tokens(const boost::json::object& file, std::uint64_t count) {
  const auto* vocab = file.if_contains("vocab");
  if (vocab == nullptr || !vocab->is_array()) return broken("there is no vocab");
  const auto& list = vocab->get_array();
  if (list.size() < count) {
    return broken(fmt::format("{} tokens in vocab, {} are needed", list.size(), count));
  }
  std::vector<std::string> tokens;
  for (std::size_t rank = 0; rank < count; ++rank) {
    const auto* entry = list[rank].if_object();
    const auto text = entry == nullptr ? std::nullopt : text_member(*entry, "token_bytes");
    const auto bytes = text ? decode_base64(*text) : std::nullopt;
    const auto stated = entry == nullptr ? std::nullopt : whole_number(entry->if_contains("rank"));
    if (!bytes || !stated || static_cast<std::size_t>(*stated) != rank) {
      return broken(fmt::format("entry {} of vocab is not the token of that rank", rank));
    }
    tokens.push_back(*bytes);
  }
  return ByteRanks::make(std::move(tokens), k_file);
}

Result<Tekken> parse_tekken(const boost::json::object& file) {
  const auto* config = file.if_contains("config");
  const auto* settings = config == nullptr ? nullptr : config->if_object();
  if (settings == nullptr) return broken("there is no config");
  MODELD_ASSIGN(const auto total, count_of(*settings, "default_vocab_size"));
  MODELD_ASSIGN(const auto special, count_of(*settings, "default_num_special_tokens"));
  if (special > total) return broken("more special tokens than tokens");
  MODELD_ASSIGN(auto names, special_tokens(file, special));
  MODELD_ASSIGN(auto ranks, byte_tokens(file, total - special));
  return Tekken{std::string(text_member(*settings, "version").value_or("")), std::move(names),
                std::move(ranks)};
}

std::uint32_t id_of(const std::vector<std::string>& special, std::string_view token,
                    std::uint32_t otherwise) {
  const auto at = std::find(special.begin(), special.end(), token);
  return at == special.end() ? otherwise : static_cast<std::uint32_t>(at - special.begin());
}

/// A template of schema/chat_templates; empty where there is none.
std::string_view kept_template(std::string_view version) {
  const std::string name = fmt::format("mistral-{}.jinja", version);
  for (const EmbeddedFile& file : chat_templates::files()) {
    if (file.name == name) return file.text;
  }
  return {};
}

/// Up to version 7 the reference writes the name of a template that runtimes have built in, later
/// the text of one.
Result<void> write_template(const TokenizerContext& context, std::string_view version,
                            bool sentencepiece) {
  constexpr std::string_view k_own = "chat_template.jinja";
  if (context.request.mistral_format && context.files.has(k_own)) {
    MODELD_ASSIGN(auto text, context.files.text(k_own));
    context.kv.set_text("tokenizer.chat_template", std::move(text));
    return {};
  }
  if (context.request.mistral_format && !context.request.community_template) return {};
  if (const std::string_view text = kept_template(version); !text.empty()) {
    context.kv.set_text("tokenizer.chat_template", std::string(text));
    return {};
  }
  if (version != "v1" && version != "v3" && version != "v7") {
    return fail(Errc::unsupported,
                fmt::format("reading the tokenizer: for version '{}' of mistral-common's format "
                            "there is no chat template; known are v1, v3, v7, v11 and v13",
                            version),
                context.request.mistral_format
                    ? "put the model's template into chat_template.jinja, or pass "
                      "--disable-mistral-community-chat-template"
                    : "use a repository that has tokenizer.json");
  }
  std::string name = fmt::format("mistral-{}", version);
  if (!sentencepiece && version != "v1") name += "-tekken";
  context.kv.set("tokenizer.chat_template", name);
  return {};
}

void write_ids(const TokenizerContext& context, std::uint32_t bos, std::uint32_t eos,
               std::uint32_t unk, std::uint32_t pad) {
  context.kv.set("tokenizer.ggml.bos_token_id", bos);
  context.kv.set("tokenizer.ggml.eos_token_id", eos);
  context.kv.set("tokenizer.ggml.unknown_token_id", unk);
  context.kv.set("tokenizer.ggml.padding_token_id", pad);
}

void write_tail(const TokenizerContext& context, std::size_t size) {
  context.result.tokens = size;
  context.kv.set(fmt::format("{}.vocab_size", context.request.architecture),
                 static_cast<std::uint32_t>(size));
  context.kv.set("tokenizer.ggml.add_bos_token", true);
  context.kv.set("tokenizer.ggml.add_eos_token", false);
}

Result<void> write_byte_tokens(const TokenizerContext& context, const boost::json::object& file) {
  MODELD_ASSIGN(const auto tekken, parse_tekken(file));
  MODELD_ASSIGN(auto merges, tekken.ranks.merges_by_splits(k_file));
  std::vector<std::string> tokens = tekken.special;
  std::vector<std::int32_t> types(tokens.size(), static_cast<std::int32_t>(TokenType::control));
  for (const std::string& token : tekken.ranks.tokens()) {
    tokens.push_back(byte_level_text(token));
  }
  types.resize(tokens.size(), static_cast<std::int32_t>(TokenType::normal));
  const std::size_t size = tokens.size();
  const auto eos = id_of(tekken.special, "</s>", 2);
  context.kv.set("tokenizer.ggml.model", std::string("gpt2"));
  context.write_pre("tekken");
  context.kv.set_array("tokenizer.ggml.merges", std::move(merges));
  write_ids(context, id_of(tekken.special, "<s>", 1), eos, id_of(tekken.special, "<unk>", 0),
            id_of(tekken.special, "<pad>", eos));
  context.kv.set_array("tokenizer.ggml.tokens", std::move(tokens));
  // Whole zeros: the reference's array of scores has the type of its first element.
  context.kv.set_array("tokenizer.ggml.scores", std::vector<std::int32_t>(size, 0));
  context.kv.set_array("tokenizer.ggml.token_type", std::move(types));
  write_tail(context, size);
  return write_template(context, tekken.version, false);
}

/// The last by name of tokenizer.model and tokenizer.model.v<n>; empty where there is none.
std::string sentencepiece_file(const FileSet& files) {
  std::string found;
  for (const auto& entry : files.entries()) {
    const std::string_view path = entry.path;
    const bool versioned = path.find(".model.v") != std::string_view::npos;
    if (path.find('/') == std::string_view::npos && (versioned || path.ends_with(".model"))) {
      found = path;
    }
  }
  return found;
}

Result<void> write_pieces(const TokenizerContext& context, const std::string& path) {
  MODELD_ASSIGN(const auto model, load_sentencepiece(context, path));
  MODELD_ASSIGN(auto vocabulary, piece_vocabulary(context, model, model.pieces.size()));
  const std::size_t size = vocabulary.size();
  const auto id = [&](std::string_view piece, std::uint32_t otherwise) {
    return id_of(vocabulary.tokens, piece, otherwise);
  };
  context.kv.set("tokenizer.ggml.model", std::string("llama"));
  const auto eos = id("</s>", 2);
  write_ids(context, id("<s>", 1), eos, id("<unk>", 0), id("<pad>", eos));
  std::move(vocabulary).write(context.kv);
  write_tail(context, size);
  const auto dot = path.rfind(".v");
  const auto version = dot == std::string::npos ? "v1" : path.substr(dot + 1);
  return write_template(context, version.substr(0, version.find('m')), true);
}

} // namespace

Result<void> write_tekken(const TokenizerContext& context) {
  MODELD_ASSIGN(const auto* file, context.files.object(k_file));
  if (file != nullptr) return write_byte_tokens(context, *file);
  const std::string path = sentencepiece_file(context.files.set());
  if (!path.empty()) return write_pieces(context, path);
  return fail(Errc::not_found, "reading the vocabulary: there is no tekken.json and no "
                               "tokenizer.model of mistral-common's");
}

} // namespace modeld::quantize
