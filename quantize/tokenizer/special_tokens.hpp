// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/kv_list.hpp"
#include "quantize/tokenizer/chat_template.hpp"
#include "quantize/tokenizer/files.hpp"
#include "schema/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace modeld::quantize {

/// Special token ids, the add_* flags, merges, chat template and normalizer flags of a repository,
/// by the reference's rules (gguf-py, SpecialVocab), including what it gets out of a template
/// processor.
class SpecialTokens {
public:
  enum class Merges { skip, load };
  using Types = std::vector<std::string>;

  /// bos eos unk sep pad cls mask, in the order in which they are asked.
  static Types default_types();

  /// `n_vocab`: ids from there on are left out (with a warning); none means no limit.
  static Result<SpecialTokens> load(TokenizerFiles& files, Merges merges,
                                    std::optional<std::uint64_t> n_vocab = std::nullopt,
                                    Types types = default_types());

  /// Sets an id where none is set; malformed for a negative one.
  Result<void> set_if_absent(std::string_view type, std::int64_t id);
  /// Sets an id over what is there, in place.
  void replace(std::string_view type, std::uint64_t id);
  std::optional<std::uint64_t> id(std::string_view type) const;
  bool any_id() const { return !ids_.empty(); }

  std::vector<std::string>& merges() { return merges_; }
  ChatTemplate& chat_template() { return chat_template_; }

  void write(KvList& kv) const;
  const std::vector<std::string>& warnings() const { return warnings_; }

private:
  class Loader;

  Types types_;
  std::optional<std::uint64_t> n_vocab_;
  std::vector<std::pair<std::string, std::uint64_t>> ids_;
  std::vector<std::pair<std::string, bool>> flags_;
  std::vector<std::string> merges_;
  ChatTemplate chat_template_;
  std::optional<bool> lowercase_;
  std::optional<bool> strip_accents_;
  std::vector<std::string> warnings_;
};

/// tokenizer.ggml.<...> of a special token's id; empty for types that GGUF has no key for.
std::string_view special_id_key(std::string_view type);

} // namespace modeld::quantize
