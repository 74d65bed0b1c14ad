// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/architecture/architecture.hpp"
#include "quantize/gguf/gguf_model.hpp"

#include <boost/json/object.hpp>

#include <cstdint>

namespace modeld::quantize {

/// general.quantization_version of ggml 0.23.0.
constexpr std::uint32_t k_quantization_version = 2;

/// What key lines may change and where they write.
struct KeyTarget {
  boost::json::object& config; ///< "let" writes here
  std::vector<GgufKv>& kv;     ///< a key that is there is written over in place
  bool force = false;
};

/// Sets or appends.
void set_kv(std::vector<GgufKv>& kv, GgufKv entry);

/// Evaluates lines in order. malformed: a key that must be there has no value, or one of another
/// type; unsupported: a refusal, or an expression that cannot be computed.
Result<void> write_keys(const std::vector<KeyRule>& rules, const ExprScope& scope,
                        KeyTarget target);

/// A value in the type of a key. Null, an empty text and an empty list are left out, as the
/// reference does: nothing comes back.
Result<std::optional<GgufValue>> typed_value(const boost::json::value& value, KeyType type,
                                             std::string_view key);

} // namespace modeld::quantize
