// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/tokenizer/files.hpp"
#include "quantize/tokenizer/hf_added_tokens.hpp"
#include "schema/result.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::quantize {

/// The tokenizer that the reference's AutoTokenizer builds out of a repository: tokenizer.json (or
/// the older files), changed by what its class and tokenizer_config.json say. Borrows the files;
/// immutable after load.
class HfTokenizer {
public:
  /// not_found: no files that the class reads; unsupported: a class that needs foreign code or that
  /// nobody knows; malformed.
  static Result<HfTokenizer> load(TokenizerFiles& files, std::vector<std::string>& warnings);
  /// tokenizer.json alone, as the plain library reads it.
  static Result<HfTokenizer> load_plain(const boost::json::object& tokenizer);

  std::string_view class_name() const { return class_name_; }
  /// Of tokenizer.json: {"type": "BPE", "vocab": ...}.
  const boost::json::object& model() const { return *model_; }
  const boost::json::value& normalizer() const { return normalizer_; }
  const boost::json::value& pre_tokenizer() const { return pre_tokenizer_; }
  const boost::json::value& post_processor() const { return post_processor_; }
  const boost::json::value& decoder() const { return decoder_; }

  /// The model's own tokens.
  const ModelIds& model_ids() const { return ids_; }
  const AddedTokens& added() const { return added_; }
  /// Among the added tokens, then among the model's.
  std::optional<std::uint32_t> id_of(std::string_view token) const;
  /// Every token with its id; of two with one id the added one.
  std::vector<std::pair<std::uint32_t, std::string_view>> all_tokens() const;
  std::uint32_t largest_id() const;
  /// Ids of the special tokens by role: bos, eos, unk, sep, pad, cls, mask and additional ones.
  const std::vector<std::string>& special_tokens() const { return special_contents_; }

  /// Text of one token: the decoder's work and the class's clean-up.
  std::string decode_one(std::string_view token) const;

private:
  friend class HfTokenizerLoader;
  Result<void> read_definition(const boost::json::object& tokenizer);
  Result<void> read_model_ids();

  std::string class_name_ = "PreTrainedTokenizerFast";
  const boost::json::object* model_ = nullptr;
  std::shared_ptr<boost::json::object> own_model_; ///< where it was built from older files
  boost::json::value normalizer_, pre_tokenizer_, post_processor_, decoder_;
  ModelIds ids_;
  AddedTokens added_;
  std::vector<std::string> special_contents_;
  bool clean_up_ = false;
};

} // namespace modeld::quantize
