// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <boost/json/value.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace modeld::quantize {

/// tokenizer.json's "normalizer". Immutable; any thread.
class Normalizer {
public:
  Normalizer() = default;
  Normalizer(const Normalizer&) = delete;
  Normalizer& operator=(const Normalizer&) = delete;
  virtual ~Normalizer() = default;

  virtual Result<std::string> apply(std::string_view text) const = 0;

  /// Null for a null value; unsupported for a type that we do not know.
  static Result<std::unique_ptr<Normalizer>> make(const boost::json::value& value);
};

} // namespace modeld::quantize
