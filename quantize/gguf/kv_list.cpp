// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/kv_list.hpp"

#include <algorithm>

namespace modeld::quantize {

void KvList::set(std::string_view key, GgufValue value) {
  const auto at =
      std::find_if(kv_.begin(), kv_.end(), [&](const GgufKv& e) { return e.key == key; });
  if (at != kv_.end()) {
    at->value = std::move(value);
  } else {
    kv_.push_back({std::string(key), std::move(value)});
  }
}

void KvList::set_text(std::string_view key, std::string text) {
  if (!text.empty()) set(key, std::move(text));
}

void KvList::set_all(const std::vector<GgufKv>& values) {
  for (const GgufKv& each : values) {
    set(each.key, each.value);
  }
}

const GgufValue* KvList::find(std::string_view key) const {
  const auto at =
      std::find_if(kv_.begin(), kv_.end(), [&](const GgufKv& e) { return e.key == key; });
  return at == kv_.end() ? nullptr : &at->value;
}

} // namespace modeld::quantize
