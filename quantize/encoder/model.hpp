// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/tokenizer/hf_added_tokens.hpp"
#include "schema/result.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace modeld::quantize {

/// tokenizer.json's "model": ids of one piece. Borrows the definition; immutable; any thread.
class EncoderModel {
public:
  EncoderModel() = default;
  EncoderModel(const EncoderModel&) = delete;
  EncoderModel& operator=(const EncoderModel&) = delete;
  virtual ~EncoderModel() = default;

  /// Appends the ids. malformed where the model has no token for unknown text and needs one.
  virtual Result<void> encode(std::string_view piece, std::vector<std::uint32_t>& ids) const = 0;

  /// By the type of the model, or what its members say where there is none.
  static Result<std::unique_ptr<EncoderModel>> make(const boost::json::object& model,
                                                    const ModelIds& ids);
};

Result<std::unique_ptr<EncoderModel>> make_bpe_model(const boost::json::object& model,
                                                     const ModelIds& ids);
Result<std::unique_ptr<EncoderModel>> make_unigram_model(const boost::json::object& model,
                                                         const ModelIds& ids);
Result<std::unique_ptr<EncoderModel>> make_wordpiece_model(const boost::json::object& model,
                                                           const ModelIds& ids);

} // namespace modeld::quantize
