// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_model.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace modeld::quantize {

/// Metadata in the order in which the reference writes it: a key written twice keeps its first
/// place and takes the last value; empty strings and empty arrays are not written at all.
class KvList {
public:
  void set(std::string_view key, GgufValue value);
  /// Nothing for an empty string.
  void set_text(std::string_view key, std::string text);
  /// Nothing for an empty array.
  template <class T>
  void set_array(std::string_view key, std::vector<T> values) {
    if (!values.empty()) set(key, GgufArray(std::move(values)));
  }
  void set_all(const std::vector<GgufKv>& values);
  const GgufValue* find(std::string_view key) const;

  std::vector<GgufKv> release() && { return std::move(kv_); }

private:
  std::vector<GgufKv> kv_;
};

} // namespace modeld::quantize
