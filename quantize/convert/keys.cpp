// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/keys.hpp"

#include "quantize/convert/config.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace json = boost::json;

namespace modeld::quantize {
namespace {

tl::unexpected<Error> wrong(std::string_view key, const json::value& value,
                            std::string_view expected) {
  return fail(Errc::malformed, fmt::format("writing key '{}': the value is {}, expected {}", key,
                                           json::serialize(value), expected));
}

template <class T>
Result<T> whole(const json::value& value, std::string_view key) {
  const auto number = as_integer(value);
  if (!number || !std::in_range<T>(*number)) {
    return wrong(key, value,
                 fmt::format("a whole number from {} to {}",
                             std::int64_t{std::numeric_limits<T>::min()},
                             std::uint64_t{std::numeric_limits<T>::max()}));
  }
  return static_cast<T>(*number);
}

/// Single precision, as Python's struct packs it: too large is an error, not infinity.
Result<float> real(const json::value& value, std::string_view key) {
  const auto number = as_number(value);
  if (!number || value.is_bool()) return wrong(key, value, "a number");
  const auto single = static_cast<float>(*number);
  if (single - single != 0.0F && *number - *number == 0.0) {
    return wrong(key, value, "a number within single precision");
  }
  return single;
}

template <class T, class Convert>
Result<GgufArray> items(const json::array& array, std::string_view key, Convert convert) {
  std::vector<T> out;
  out.reserve(array.size());
  for (const json::value& item : array) {
    Result<T> one = convert(item, key);
    if (!one) return fail(std::move(one.error()));
    out.push_back(*std::move(one));
  }
  return GgufArray(std::move(out));
}

/// The reference takes the type of the first item; all others must be of it too.
Result<GgufArray> array_of(const json::array& array, std::string_view key) {
  const json::value& first = array[0];
  if (first.is_string()) {
    return items<std::string>(array, key, [](const json::value& item, std::string_view k) {
      return item.is_string() ? Result<std::string>(std::string(item.get_string()))
                              : Result<std::string>(wrong(k, item, "a text"));
    });
  }
  if (first.is_bool()) {
    return items<bool>(array, key, [](const json::value& item, std::string_view k) {
      return item.is_bool() ? Result<bool>(item.get_bool())
                            : Result<bool>(wrong(k, item, "a truth value"));
    });
  }
  if (first.is_double()) {
    return items<float>(array, key, [](const json::value& item, std::string_view k) {
      return item.is_double() ? real(item, k) : Result<float>(wrong(k, item, "a real number"));
    });
  }
  return items<std::int32_t>(array, key, [](const json::value& item, std::string_view k) {
    return item.is_bool() ? Result<std::int32_t>(wrong(k, item, "a whole number"))
                          : whole<std::int32_t>(item, k);
  });
}

bool nothing(const json::value& value) {
  return value.is_null() || (value.is_string() && value.get_string().empty()) ||
         (value.is_array() && value.get_array().empty());
}

Result<bool> holds(const std::optional<Expr>& when, const ExprScope& scope) {
  if (!when) return true;
  MODELD_ASSIGN(const json::value value, when->evaluate(scope));
  return truthy(value);
}

Result<void> write_key(const KeyRule& rule, const ExprScope& scope, std::vector<GgufKv>& kv) {
  MODELD_ASSIGN(const json::value value, rule.value->evaluate(scope));
  if (value.is_null() && !rule.optional) {
    return fail(Errc::malformed,
                fmt::format("writing key '{}': config.json has no value for '{}'", rule.name,
                            rule.value->text()),
                "the configuration of this family must set it");
  }
  MODELD_ASSIGN(auto typed, typed_value(value, rule.type, rule.name));
  if (typed) set_kv(kv, {rule.name, *std::move(typed)});
  return {};
}

} // namespace

void set_kv(std::vector<GgufKv>& kv, GgufKv entry) {
  const auto at =
      std::find_if(kv.begin(), kv.end(), [&](const GgufKv& e) { return e.key == entry.key; });
  if (at != kv.end()) {
    at->value = std::move(entry.value);
  } else {
    kv.push_back(std::move(entry));
  }
}

Result<std::optional<GgufValue>> typed_value(const json::value& value, KeyType type,
                                             std::string_view key) {
  if (nothing(value)) return std::optional<GgufValue>();
  const auto wrap = [](auto result) -> Result<std::optional<GgufValue>> {
    if (!result) return fail(std::move(result.error()));
    return std::optional<GgufValue>(GgufValue(*std::move(result)));
  };
  switch (type) {
  case KeyType::u16:
    return wrap(whole<std::uint16_t>(value, key));
  case KeyType::u32:
    return wrap(whole<std::uint32_t>(value, key));
  case KeyType::i32:
    return wrap(whole<std::int32_t>(value, key));
  case KeyType::u64: {
    MODELD_ASSIGN(const auto number, whole<std::int64_t>(value, key));
    if (number < 0) return wrong(key, value, "no negative number");
    return std::optional<GgufValue>(GgufValue(static_cast<std::uint64_t>(number)));
  }
  case KeyType::f32:
    return wrap(real(value, key));
  case KeyType::boolean:
    // Python packs any value by its truth.
    return std::optional<GgufValue>(GgufValue(truthy(value)));
  case KeyType::text:
    if (!value.is_string()) return wrong(key, value, "a text");
    return std::optional<GgufValue>(GgufValue(std::string(value.get_string())));
  case KeyType::array:
    if (!value.is_array()) return wrong(key, value, "a list");
    return wrap(array_of(value.get_array(), key));
  case KeyType::u32_array:
    if (!value.is_array()) return wrong(key, value, "a list");
    return wrap(items<std::uint32_t>(value.get_array(), key, whole<std::uint32_t>));
  case KeyType::number_or_array:
    if (value.is_array()) return wrap(array_of(value.get_array(), key));
    return wrap(whole<std::uint32_t>(value, key));
  }
  return std::optional<GgufValue>();
}

Result<void> write_keys(const std::vector<KeyRule>& rules, const ExprScope& scope,
                        KeyTarget target) {
  for (const KeyRule& rule : rules) {
    MODELD_ASSIGN(const bool applies, holds(rule.when, scope));
    if (!applies) continue;
    switch (rule.kind) {
    case KeyRule::Kind::key:
      MODELD_TRY(write_key(rule, scope, target.kv));
      break;
    case KeyRule::Kind::let: {
      MODELD_ASSIGN(json::value value, rule.value->evaluate(scope));
      MODELD_TRY(assign(target.config, rule.name, std::move(value)));
      break;
    }
    case KeyRule::Kind::refuse:
      if (target.force) break;
      return fail(Errc::unsupported, fmt::format("converting: {}", rule.name),
                  "pass --force to write the reference's file all the same");
    case KeyRule::Kind::stop:
      return fail(Errc::unsupported, fmt::format("converting: {}", rule.name));
    case KeyRule::Kind::remove:
      std::erase_if(target.kv, [&](const GgufKv& e) { return e.key == rule.name; });
      break;
    }
  }
  return {};
}

} // namespace modeld::quantize
