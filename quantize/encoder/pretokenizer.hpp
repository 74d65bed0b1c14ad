// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <boost/json/value.hpp>

#include <memory>
#include <string>
#include <vector>

namespace modeld::quantize {

/// A part of the text on its way to the model.
struct EncoderPiece {
  std::string text;
  bool first = false; ///< stands at the very start of the original text
};

/// tokenizer.json's "pre_tokenizer": cuts pieces into smaller ones. Immutable; any thread.
class PreTokenizer {
public:
  PreTokenizer() = default;
  PreTokenizer(const PreTokenizer&) = delete;
  PreTokenizer& operator=(const PreTokenizer&) = delete;
  virtual ~PreTokenizer() = default;

  virtual Result<std::vector<EncoderPiece>> apply(std::vector<EncoderPiece> pieces) const = 0;

  /// Null for a null value; unsupported for a type that we do not know.
  static Result<std::unique_ptr<PreTokenizer>> make(const boost::json::value& value);
};

} // namespace modeld::quantize
