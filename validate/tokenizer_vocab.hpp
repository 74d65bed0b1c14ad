// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/finding.hpp"
#include "validate/json_document.hpp"
#include "validate/name_index.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::validate {

/// The tokens of a tokenizer.json: model.vocab and added_tokens.
class TokenizerVocab {
public:
  /// Reads and checks the file's text, which must outlive this: TK-01, TK-05, TK-08.
  void read(std::string_view text, Report& report);

  std::size_t size() const { return tokens_.size(); }
  std::uint64_t max_id() const { return max_id_; }
  std::optional<std::uint64_t> id_of(std::string_view token) const;

private:
  struct Token {
    std::string_view text;
    std::uint64_t id;
  };

  /// False where the text was there before; its id is kept then.
  bool add(std::string_view text, std::uint64_t id);
  void read_vocab(JsonValue model, Report& report);
  void read_added(JsonValue added, Report& report);
  void check_merges(JsonValue merges, Report& report) const;

  JsonDocument document_;
  std::vector<Token> tokens_;
  NameIndex index_;
  std::uint64_t max_id_ = 0;
};

} // namespace modeld::validate
