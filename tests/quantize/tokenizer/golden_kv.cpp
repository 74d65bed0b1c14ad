// SPDX-License-Identifier: Apache-2.0
#include "tests/quantize/tokenizer/golden_kv.hpp"

#include "tests/support/memory_files.hpp"
#include "validate/sha256.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace modeld::test {
namespace {

using namespace modeld::quantize;

template <class T>
constexpr std::string_view type_name() {
  if constexpr (std::is_same_v<T, std::uint8_t>) return "UINT8";
  if constexpr (std::is_same_v<T, std::int8_t>) return "INT8";
  if constexpr (std::is_same_v<T, std::uint16_t>) return "UINT16";
  if constexpr (std::is_same_v<T, std::int16_t>) return "INT16";
  if constexpr (std::is_same_v<T, std::uint32_t>) return "UINT32";
  if constexpr (std::is_same_v<T, std::int32_t>) return "INT32";
  if constexpr (std::is_same_v<T, float>) return "FLOAT32";
  if constexpr (std::is_same_v<T, bool>) return "BOOL";
  if constexpr (std::is_same_v<T, std::string>) return "STRING";
  if constexpr (std::is_same_v<T, std::uint64_t>) return "UINT64";
  if constexpr (std::is_same_v<T, std::int64_t>) return "INT64";
  if constexpr (std::is_same_v<T, double>) return "FLOAT64";
  return "ARRAY";
}

template <class T>
void append_bytes(std::string& out, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    append_bytes(out, static_cast<std::uint64_t>(value.size()));
    out += value;
  } else if constexpr (std::is_same_v<T, bool>) {
    out += value ? '\1' : '\0';
  } else {
    const auto raw = std::bit_cast<std::array<char, sizeof(T)>>(value);
    out.append(raw.data(), raw.size());
  }
}

std::string digest(const std::string& bytes) {
  return validate::sha256_of(std::as_bytes(std::span(bytes))).hex();
}

template <class T>
std::string scalar(const T& value) {
  // The golden files have digests of long texts.
  if constexpr (std::is_same_v<T, std::string>) return value.size() > 240 ? digest(value) : value;
  if constexpr (std::is_same_v<T, bool>) return fmt::format("{}", value);
  if constexpr (std::is_same_v<T, float>)
    return fmt::format("{:08x}", std::bit_cast<std::uint32_t>(value));
  if constexpr (std::is_same_v<T, double>)
    return fmt::format("{:016x}", std::bit_cast<std::uint64_t>(value));
  if constexpr (std::is_integral_v<T>) return fmt::format("{}", static_cast<std::int64_t>(value));
  return {};
}

std::string golden_scalar(const boost::json::object& kv) {
  if (kv.contains("sha256")) return std::string(kv.at("sha256").as_string());
  const auto& value = kv.at("value");
  if (kv.at("type").as_string() == "FLOAT32") {
    return scalar(static_cast<float>(value.to_number<double>()));
  }
  if (value.is_string()) return scalar(std::string(value.get_string()));
  return boost::json::serialize(value);
}

bool starts_with_one(std::string_view key, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& p) { return key.starts_with(p); });
}

} // namespace

boost::json::value read_json_file(const std::filesystem::path& path) {
  return boost::json::parse(read_file(path));
}

std::string describe(const GgufKv& kv) {
  return std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, GgufArray>) {
          return std::visit(
              [&](const auto& items) {
                using E = typename std::decay_t<decltype(items)>::value_type;
                std::string bytes;
                for (const auto& item : items) {
                  append_bytes<E>(bytes, item);
                }
                return fmt::format("{} ARRAY {} {} {}", kv.key, type_name<E>(), items.size(),
                                   digest(bytes));
              },
              value);
        } else {
          return fmt::format("{} {} {}", kv.key, type_name<T>(), scalar(value));
        }
      },
      kv.value);
}

std::string describe_golden(const boost::json::object& kv) {
  const std::string_view key = kv.at("key").as_string();
  const std::string_view type = kv.at("type").as_string();
  if (type != "ARRAY") return fmt::format("{} {} {}", key, type, golden_scalar(kv));
  if (kv.contains("sha256")) {
    return fmt::format("{} ARRAY {} {} {}", key, std::string_view(kv.at("element").as_string()),
                       kv.at("n").to_number<std::uint64_t>(),
                       std::string_view(kv.at("sha256").as_string()));
  }
  // metadata-names.json gives the texts themselves.
  std::vector<std::string> texts;
  for (const auto& each : kv.at("value").as_array()) {
    texts.emplace_back(each.as_string());
  }
  return describe(GgufKv{std::string(key), GgufArray(texts)});
}

std::vector<std::string> describe(const std::vector<GgufKv>& kv,
                                  const std::vector<std::string>& prefixes) {
  std::vector<std::string> out;
  for (const auto& each : kv) {
    if (starts_with_one(each.key, prefixes)) out.push_back(describe(each));
  }
  return out;
}

std::vector<std::string> describe_golden(const boost::json::array& kv,
                                         const std::vector<std::string>& prefixes) {
  std::vector<std::string> out;
  for (const auto& each : kv) {
    const auto& entry = each.as_object();
    if (starts_with_one(std::string_view(entry.at("key").as_string()), prefixes)) {
      out.push_back(describe_golden(entry));
    }
  }
  return out;
}

} // namespace modeld::test
