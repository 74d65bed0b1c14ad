// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/gguf_model.hpp"

#include <algorithm>

namespace modeld::quantize {

std::uint64_t GgufTensor::row_elements() const {
  return ne.empty() ? 1 : ne[0];
}

std::uint64_t GgufTensor::rows() const {
  std::uint64_t rows = 1;
  for (std::size_t i = 1; i < ne.size(); ++i) {
    rows *= ne[i];
  }
  return rows;
}

std::uint64_t GgufTensor::row_bytes() const {
  return tensor_bytes(type, row_elements()).value_or(0);
}

std::uint64_t GgufTensor::bytes() const {
  return row_bytes() * rows();
}

const GgufValue* GgufModel::find(std::string_view key) const {
  const auto at = std::find_if(kv.begin(), kv.end(), [&](const GgufKv& e) { return e.key == key; });
  return at == kv.end() ? nullptr : &at->value;
}

void GgufModel::set(std::string_view key, GgufValue value) {
  const auto at = std::find_if(kv.begin(), kv.end(), [&](const GgufKv& e) { return e.key == key; });
  if (at != kv.end()) {
    at->value = std::move(value);
  } else {
    kv.push_back({std::string(key), std::move(value)});
  }
}

bool GgufModel::erase(std::string_view key) {
  return std::erase_if(kv, [&](const GgufKv& e) { return e.key == key; }) > 0;
}

} // namespace modeld::quantize
