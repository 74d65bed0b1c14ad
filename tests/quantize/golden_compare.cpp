// SPDX-License-Identifier: Apache-2.0
#include "tests/quantize/golden_compare.hpp"

#include "quantize/gguf/gguf_writer.hpp"
#include "validate/sha256.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace json = boost::json;
using namespace modeld::quantize;

namespace modeld::test {
namespace {

constexpr const char* k_types[] = {"UINT8",  "INT8",    "UINT16", "INT16",  "UINT32",
                                   "INT32",  "FLOAT32", "BOOL",   "STRING", "ARRAY",
                                   "UINT64", "INT64",   "FLOAT64"};
constexpr const char* k_elements[] = {"UINT8",   "INT8", "UINT16", "INT16",  "UINT32", "INT32",
                                      "FLOAT32", "BOOL", "STRING", "UINT64", "INT64",  "FLOAT64"};

std::string text_of(const GgufValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, GgufArray>) {
          return std::visit([](const auto& a) { return fmt::format("{} items", a.size()); }, v);
        } else {
          return fmt::format("{}", v);
        }
      },
      value);
}

/// Digest of an array as golden cases have it: elements in little endian, strings with lengths.
std::string array_digest(const GgufArray& array) {
  std::string bytes;
  std::visit(
      [&bytes](const auto& items) {
        using V = typename std::decay_t<decltype(items)>::value_type;
        for (auto&& item : items) {
          if constexpr (std::is_same_v<V, std::string>) {
            const std::uint64_t size = item.size();
            bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
            bytes.append(item);
          } else {
            const V value = item;
            bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
          }
        }
      },
      array);
  return validate::sha256_of(std::as_bytes(std::span(bytes))).hex();
}

bool same_value(const GgufValue& value, const json::object& expected) {
  if (const auto* array = std::get_if<GgufArray>(&value)) {
    return std::string(expected.at("element").as_string()) == k_elements[array->index()] &&
           std::string(expected.at("sha256").as_string()) == array_digest(*array);
  }
  const json::value& want = expected.at("value");
  return std::visit(
      [&want](const auto& v) -> bool {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, std::string>) {
          return want.is_string() && std::string(want.get_string()) == v;
        } else if constexpr (std::is_same_v<V, bool>) {
          return want.is_bool() && want.get_bool() == v;
        } else if constexpr (std::is_same_v<V, GgufArray>) {
          return false;
        } else if constexpr (std::is_floating_point_v<V>) {
          return want.is_number() && static_cast<V>(want.to_number<double>()) == v;
        } else {
          return want.is_number() && want.to_number<std::int64_t>() == static_cast<std::int64_t>(v);
        }
      },
      value);
}

std::string show(const json::object& expected) {
  const json::value* value = expected.if_contains("value");
  return fmt::format("{} {}", std::string(expected.at("type").as_string()),
                     value == nullptr ? std::string("...") : json::serialize(*value));
}

std::string keys_differ(const std::vector<GgufKv>& kv, const json::array& expected) {
  for (std::size_t i = 0; i < std::max(kv.size(), expected.size()); ++i) {
    if (i >= expected.size()) return fmt::format("key {} '{}' is too much", i, kv[i].key);
    const json::object& want = expected[i].as_object();
    const std::string key(want.at("key").as_string());
    if (i >= kv.size()) return fmt::format("key {} '{}' is missing", i, key);
    const GgufKv& have = kv[i];
    if (have.key != key) return fmt::format("key {} is '{}', expected '{}'", i, have.key, key);
    const std::string type = k_types[have.value.index()];
    if (type != std::string(want.at("type").as_string()) || !same_value(have.value, want)) {
      return fmt::format("key '{}' is {} {}, expected {}", key, type, text_of(have.value),
                         show(want));
    }
  }
  return {};
}

std::string tensor_differs(const GgufTensor& have, std::span<const std::byte> data,
                           const json::object& want) {
  const std::string name(want.at("name").as_string());
  if (have.name != name) return fmt::format("is '{}', expected '{}'", have.name, name);
  const std::string type(want.at("type").as_string());
  if (info(have.type).name != type) {
    return fmt::format("'{}' is {}, expected {}", name, info(have.type).name, type);
  }
  std::string ne;
  for (const std::uint64_t n : have.ne) {
    ne += (ne.empty() ? "[" : ",") + std::to_string(n);
  }
  ne += "]";
  if (have.ne.empty()) ne = "[]";
  if (ne != json::serialize(want.at("ne"))) {
    return fmt::format("'{}' has ne {}, expected {}", name, ne, json::serialize(want.at("ne")));
  }
  if (validate::sha256_of(data).hex() != std::string(want.at("sha256").as_string())) {
    std::string head;
    for (std::size_t i = 0; i < std::min<std::size_t>(16, data.size()); ++i) {
      head += fmt::format("{:02x}", std::to_integer<unsigned>(data[i]));
    }
    return fmt::format("'{}' ({} {}) has other data, starting {}", name, type, ne, head);
  }
  return {};
}

} // namespace

std::string first_difference(const GgufModel& model, const std::vector<std::byte>& file,
                             const json::object& output, Keys which) {
  json::array wanted = output.at("kv").as_array();
  std::vector<GgufKv> kv = model.kv;
  if (which == Keys::without_tokenizer) {
    std::erase_if(kv, [](const GgufKv& e) { return e.key.starts_with("tokenizer."); });
    json::array others;
    for (const json::value& key : wanted) {
      const std::string_view name = key.at("key").as_string();
      if (!name.starts_with("tokenizer.")) others.push_back(key);
    }
    wanted = std::move(others);
  }
  if (auto keys = keys_differ(kv, wanted); !keys.empty()) return keys;
  const auto layout = lay_out_gguf(model);
  const json::array& expected = output.at("tensors").as_array();
  for (std::size_t i = 0; i < std::max(model.tensors.size(), expected.size()); ++i) {
    if (i >= expected.size()) {
      return fmt::format("tensor {} '{}' is too much", i, model.tensors[i].name);
    }
    const json::object& want = expected[i].as_object();
    if (i >= model.tensors.size()) {
      return fmt::format("tensor {} '{}' is missing", i, std::string(want.at("name").as_string()));
    }
    const GgufTensor& have = model.tensors[i];
    const auto data = std::span(file).subspan(layout->offsets[i], have.bytes());
    if (auto tensor = tensor_differs(have, data, want); !tensor.empty()) {
      return fmt::format("tensor {} {}", i, tensor);
    }
  }
  return {};
}

} // namespace modeld::test
