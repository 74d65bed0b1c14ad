// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/tokenizer/special_tokens.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <map>
#include <string>
#include <string_view>

namespace modeld::quantize {

/// Reads tokenizer.json, tokenizer_config.json, config.json and merges.txt into a SpecialTokens.
/// Lives for one load.
class SpecialTokens::Loader {
public:
  Loader(TokenizerFiles& files, Merges merges, SpecialTokens& out)
      : files_(files), merges_(merges), out_(out) {}

  Result<void> run();

private:
  Result<void> read_merges(const boost::json::object& tokenizer);
  Result<void> read_merges_txt();
  void read_normalizer(const boost::json::object& normalizer, unsigned depth);
  void stand_in_for_missing();
  Result<void> read_post_processor(const boost::json::object& post_processor);
  void read_roberta(const boost::json::object& processor);
  Result<void> read_template(const boost::json::object& processor);
  Result<void> read_single(const boost::json::array& single);
  Result<void> read_pair(const boost::json::array& pair);
  void replace_eos(std::string_view last);
  Result<void> read_ids_by_text();
  Result<void> read_ids_of_config();

  /// tokenizer_config.json's value for a key, as changed by what was read so far. Null for a value
  /// that counts as missing.
  const boost::json::value* setting(std::string_view key) const;
  bool has_config() const { return config_ != nullptr && !config_->empty(); }
  void set_flag(std::string_view type, bool value);
  bool has_type(std::string_view type) const;

  TokenizerFiles& files_;
  Merges merges_;
  SpecialTokens& out_;
  const boost::json::object* tokenizer_ = nullptr;
  const boost::json::object* config_ = nullptr;
  std::map<std::string, boost::json::value, std::less<>> changed_;
  /// The reference keeps these beside the configuration, and they can differ from it.
  boost::json::value bos_, cls_, eos_, sep_;
  std::string first_, last_; ///< of the single template
};

} // namespace modeld::quantize
