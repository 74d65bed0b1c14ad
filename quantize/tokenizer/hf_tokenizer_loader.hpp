// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/tokenizer/hf_tokenizer.hpp"

#include <boost/json/object.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace modeld::quantize {

/// Does what AutoTokenizer.from_pretrained (transformers 4.57.6) does between the files and the
/// tokenizer: finds the class, reads the definition, adds tokens, lets the class change parts.
/// Lives for one load.
class HfTokenizerLoader {
public:
  HfTokenizerLoader(TokenizerFiles& files, std::vector<std::string>& warnings)
      : files_(files), warnings_(warnings) {}

  Result<HfTokenizer> run();

private:
  /// A special token as configured: plain text, or a token with flags.
  struct Special {
    std::string role;
    AddedToken token;
    bool plain = true;
  };

  Result<void> find_class();
  Result<std::string> class_of_model_type() const;
  Result<void> read_definition();
  Result<void> read_byte_level_files();
  Result<void> read_wordpiece_files();

  Result<void> read_decoder_tokens();
  Result<void> read_legacy_tokens();
  Result<void> read_special_tokens();
  Result<void> add_special(std::string_view role, const boost::json::value& value);
  Result<void> add_special_list(const boost::json::value& value);
  void add_tokens();

  void change_prefix_space();
  Result<void> change_template();
  void change_bert_normalizer();
  void change_mistral_regex();

  /// tokenizer_config.json's value; null where it is absent (or no such file).
  const boost::json::value* setting(std::string_view name) const;
  bool flag(std::string_view name, bool otherwise) const;

  TokenizerFiles& files_;
  std::vector<std::string>& warnings_;
  const boost::json::object* settings_ = nullptr;
  const boost::json::object* class_ = nullptr; ///< its row in tokenizer_classes.json
  HfTokenizer out_;
  std::map<std::uint64_t, AddedToken> decoder_tokens_;
  std::map<std::string, boost::json::value, std::less<>> special_map_; ///< special_tokens_map.json
  std::vector<Special> special_;
};

} // namespace modeld::quantize
