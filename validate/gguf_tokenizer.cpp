// SPDX-License-Identifier: Apache-2.0
// The vocabulary inside of a GGUF file: GX-01 to GX-08.
#include "validate/chat_template_scan.hpp"
#include "validate/escape.hpp"
#include "validate/gguf_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace modeld::validate {
namespace {

using T = GgufType;

constexpr std::uint64_t k_byte_token = 6;
constexpr std::uint64_t k_last_token_type = 6;

// Keys that name one token. Another integer type is refused by the loader; a number that is out of
// range is replaced by a default.
constexpr std::array<std::string_view, 17> k_special_ids{
    "bos_token_id",     "eos_token_id",       "eot_token_id",     "eom_token_id",
    "unknown_token_id", "seperator_token_id", "padding_token_id", "cls_token_id",
    "mask_token_id",    "fim_pre_token_id",   "fim_suf_token_id", "fim_mid_token_id",
    "fim_pad_token_id", "fim_rep_token_id",   "fim_sep_token_id", "prefix_token_id",
    "suffix_token_id"};

const GgufValueView* tokenizer_key(const GgufModelView& model, std::string_view name) {
  return model.key("tokenizer.ggml." + std::string(name));
}

/// Exactly "<0xHH>" with two hexadecimal digits.
bool is_byte_token(std::string_view token) {
  const auto hex = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
  };
  return token.size() == 6 && token.starts_with("<0x") && token[5] == '>' && hex(token[3]) &&
         hex(token[4]);
}

/// A list beside the tokens: its type, and a length that is theirs (GX-02).
void check_parallel_list(const GgufModelView& model, std::string_view name, T wanted,
                         bool tolerated, std::uint64_t tokens, Report& report) {
  const GgufValueView* list = tokenizer_key(model, name);
  if (list == nullptr) return;
  const bool i32 = list->is_array() && list->element == T::i32;
  if (!list->is_array() || (list->element != wanted && !(tolerated && i32))) {
    report.error("GX-02", list->offset,
                 fmt::format("tokenizer.ggml.{} is {} {}, it must be an array of {}", name,
                             list->is_array() ? "an array of" : "of type",
                             validate::name(list->is_array() ? list->element : list->type),
                             validate::name(wanted)));
  } else if (list->count != tokens) {
    report.add(
        "GX-02", list->count < tokens ? Severity::error : Severity::warning, list->offset,
        fmt::format("tokenizer.ggml.{} has {} elements for {} tokens", name, list->count, tokens));
  }
}

void check_special_ids(const GgufModelView& model, std::uint64_t tokens, Report& report) {
  for (const std::string_view name : k_special_ids) {
    const GgufValueView* id = tokenizer_key(model, name);
    if (id == nullptr) continue;
    if (id->type != T::u32) {
      report.error("GX-04", id->offset,
                   fmt::format("tokenizer.ggml.{} is of type {}, it must be u32", name,
                               validate::name(id->type)));
    } else if (*id->as_u64() >= tokens) {
      report.warn(
          "GX-04", id->offset,
          fmt::format("tokenizer.ggml.{} is {}, there are {} tokens", name, *id->as_u64(), tokens));
    }
  }
}

/// Element i of an array of i32, without the detour over any type.
std::uint32_t token_type(const GgufValueView& types, std::size_t i) {
  return types.encoding.u32(types.bytes.data() + 4 * i);
}

/// Walks all tokens once: duplicates (GX-05), and byte tokens that are none (GX-06).
void check_token_texts(const GgufModelView& model, const GgufValueView& tokens, Report& report) {
  const GgufValueView* types = tokenizer_key(model, "token_type");
  if (types != nullptr &&
      (!types->is_array() || types->element != T::i32 || types->count < tokens.count))
    types = nullptr;
  std::vector<std::string_view> texts;
  texts.reserve(static_cast<std::size_t>(tokens.count));
  NameIndex index;
  index.reserve(texts.capacity());
  std::uint64_t twice = 0;
  std::string_view first_twice;
  for (std::string_view text : tokens.strings()) {
    if (types != nullptr && token_type(*types, texts.size()) == k_byte_token &&
        !is_byte_token(text) && !report.full()) {
      report.error("GX-06", tokens.offset,
                   fmt::format("token {} is a byte token and reads {}, allowed is <0xHH>",
                               texts.size(), quoted(text)));
    }
    text = text.substr(0, text.find('\0')); // as readers with C strings see it
    const auto name_at = [&](std::uint32_t i) { return texts[i]; };
    if (index.insert(text, static_cast<std::uint32_t>(texts.size()), name_at) && twice++ == 0)
      first_twice = text;
    texts.push_back(text);
  }
  if (twice == 0) return;
  report.warn(
      "GX-05", tokens.offset,
      fmt::format("{} of {} tokens stand twice, the first is {}; llama.cpp ends the process "
                  "for some of them",
                  twice, tokens.count, quoted(first_twice)));
}

void check_token_types(const GgufModelView& model, Report& report) {
  const GgufValueView* types = tokenizer_key(model, "token_type");
  if (types == nullptr || !types->is_array() || types->element != T::i32) return;
  for (std::uint64_t i = 0; i < types->count; ++i) {
    const std::uint32_t type = token_type(*types, static_cast<std::size_t>(i));
    if (type >= 1 && type <= k_last_token_type) continue;
    report.warn("GX-03", types->at(i).offset,
                fmt::format("token {} has the type {}, known are 1 to {}", i,
                            *types->at(i).as_i64(), k_last_token_type));
    return;
  }
}

void check_bpe(const GgufModelView& model, Report& report) {
  const GgufValueView* kind = tokenizer_key(model, "model");
  if (kind == nullptr || kind->as_string() != "gpt2") return;
  const GgufValueView* pre = tokenizer_key(model, "pre");
  const auto label = pre == nullptr ? std::nullopt : pre->as_string();
  if (tokenizer_key(model, "merges") == nullptr && label != "kimi-k2")
    report.error("GX-07", std::nullopt, "a tokenizer of type gpt2 has no tokenizer.ggml.merges");
  if (!label || *label == "default") {
    report.warn("GX-07", std::nullopt,
                "a tokenizer of type gpt2 does not say how text is split before its merges "
                "(tokenizer.ggml.pre): runtimes guess, and answers get worse",
                "convert the model again, or set the key in a copy");
  }
}

void check_charsmap(const GgufModelView& model, Report& report) {
  const GgufValueView* map = tokenizer_key(model, "precompiled_charsmap");
  if (map == nullptr) return;
  if (!map->is_array() || (map->element != T::i8 && map->element != T::u8) || map->count < 4) {
    report.error("GX-08", map->offset,
                 "tokenizer.ggml.precompiled_charsmap must be an array of at least four bytes");
    return;
  }
  // The map's own length is a file format's number: little-endian in every file.
  const std::uint64_t length = GgufEncoding{}.u32(map->bytes.data());
  if (length + 4 >= map->count)
    report.error("GX-08", map->offset,
                 fmt::format("tokenizer.ggml.precompiled_charsmap holds a table of {} bytes in {}",
                             length, map->count));
}

/// tokenizer.chat_template and its named siblings are rendered by runtimes like any other (TK-11).
void check_chat_templates(const GgufModelView& model, Report& report) {
  for (const GgufKvView& item : model.header().kv) {
    if (!item.key.starts_with("tokenizer.chat_template")) continue;
    if (const auto text = item.value.as_string())
      scan_chat_template(*text, item.key, Limits{}, report);
  }
}

} // namespace

void check_gguf_tokenizer(const GgufModelView& model, Report& report) {
  check_charsmap(model, report);
  check_chat_templates(model, report);
  const GgufValueView* tokens = tokenizer_key(model, "tokens");
  if (tokens == nullptr) return;
  if (!tokens->is_array() || tokens->element != T::string) {
    report.error("GX-01", tokens->offset, "tokenizer.ggml.tokens must be an array of strings");
    return;
  }
  const GgufTensorInfo* embedding = model.find("token_embd.weight");
  if (embedding != nullptr && embedding->ne[1] != tokens->count) {
    report.error("GX-01", tokens->offset,
                 fmt::format("there are {} tokens, and token_embd.weight has {} rows",
                             tokens->count, embedding->ne[1]),
                 "llama.cpp refuses the file with 'wrong shape'");
  }
  check_parallel_list(model, "scores", T::f32, true, tokens->count, report);
  check_parallel_list(model, "token_type", T::i32, false, tokens->count, report);
  check_token_types(model, report);
  check_special_ids(model, tokens->count, report);
  check_token_texts(model, *tokens, report);
  check_bpe(model, report);
}

} // namespace modeld::validate
