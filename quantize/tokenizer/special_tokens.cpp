// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/special_tokens.hpp"

#include "quantize/tokenizer/special_tokens_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace modeld::quantize {
namespace {

// GGUF's keys. Types without one (cls, prefix, suffix, middle, fsep) are looked up all the same,
// since the look-up decides about others, and then not written.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> k_id_keys{{
    {"bos", "tokenizer.ggml.bos_token_id"},
    {"eos", "tokenizer.ggml.eos_token_id"},
    {"unk", "tokenizer.ggml.unknown_token_id"},
    {"sep", "tokenizer.ggml.seperator_token_id"},
    {"pad", "tokenizer.ggml.padding_token_id"},
    {"mask", "tokenizer.ggml.mask_token_id"},
    {"eot", "tokenizer.ggml.eot_token_id"},
    {"eom", "tokenizer.ggml.eom_token_id"},
}};

template <class Pairs>
auto find_pair(Pairs& pairs, std::string_view type) {
  return std::find_if(pairs.begin(), pairs.end(), [&](const auto& e) { return e.first == type; });
}

} // namespace

std::string_view special_id_key(std::string_view type) {
  const auto* const at = find_pair(k_id_keys, type);
  return at == k_id_keys.end() ? std::string_view() : at->second;
}

SpecialTokens::Types SpecialTokens::default_types() {
  return {"bos", "eos", "unk", "sep", "pad", "cls", "mask"};
}

Result<void> SpecialTokens::set_if_absent(std::string_view type, std::int64_t id) {
  if (id < 0) {
    return fail(
        Errc::malformed, fmt::format("setting the special token '{}': id {}", type, id),
        "remove the negative id from config.json, where it means that there is no such token");
  }
  const auto number = static_cast<std::uint64_t>(id);
  if (n_vocab_ && number >= *n_vocab_) {
    warnings_.push_back(fmt::format("special token '{}' with id {} is left out: ids end at {}",
                                    type, number, *n_vocab_ - 1));
    return {};
  }
  if (number > 0xFFFFFFFFU) {
    return fail(
        Errc::malformed,
        fmt::format("setting the special token '{}': id {} does not fit 32 bits", type, id));
  }
  if (find_pair(ids_, type) == ids_.end()) ids_.emplace_back(type, number);
  return {};
}

void SpecialTokens::replace(std::string_view type, std::uint64_t id) {
  const auto at = find_pair(ids_, type);
  if (at != ids_.end()) {
    at->second = id;
  } else {
    ids_.emplace_back(type, id);
  }
}

std::optional<std::uint64_t> SpecialTokens::id(std::string_view type) const {
  const auto at = find_pair(ids_, type);
  return at == ids_.end() ? std::nullopt : std::optional(at->second);
}

void SpecialTokens::write(KvList& kv) const {
  kv.set_array("tokenizer.ggml.merges", merges_);
  for (const auto& [type, number] : ids_) {
    const auto key = special_id_key(type);
    if (!key.empty()) kv.set(key, static_cast<std::uint32_t>(number));
  }
  for (const auto& [type, value] : flags_) {
    if (type == "bos" || type == "eos" || type == "sep") {
      kv.set(fmt::format("tokenizer.ggml.add_{}_token", type), value);
    }
  }
  chat_template_.write(kv);
  if (lowercase_) kv.set("tokenizer.ggml.normalizer.lowercase", *lowercase_);
  if (strip_accents_) kv.set("tokenizer.ggml.normalizer.strip_accents", *strip_accents_);
}

Result<SpecialTokens> SpecialTokens::load(TokenizerFiles& files, Merges merges,
                                          std::optional<std::uint64_t> n_vocab, Types types) {
  SpecialTokens out;
  out.types_ = std::move(types);
  out.n_vocab_ = n_vocab;
  MODELD_TRY(Loader(files, merges, out).run());
  return out;
}

} // namespace modeld::quantize
