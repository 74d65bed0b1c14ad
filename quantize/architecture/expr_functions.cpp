// SPDX-License-Identifier: Apache-2.0
#include "quantize/architecture/expr_node.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace json = boost::json;

namespace modeld::quantize {
namespace {

using Arguments = std::vector<json::value>;

constexpr std::size_t k_any = std::numeric_limits<std::size_t>::max();
constexpr std::int64_t k_max_range = 1 << 20;

constexpr std::array k_functions{
    FunctionInfo{"int"},
    FunctionInfo{"float"},
    FunctionInfo{"bool"},
    FunctionInfo{"str"},
    FunctionInfo{"len"},
    FunctionInfo{"abs"},
    FunctionInfo{"sum"},
    FunctionInfo{"sqrt"},
    FunctionInfo{"exp"},
    FunctionInfo{"log"},
    FunctionInfo{"floor"},
    FunctionInfo{"ceil"},
    FunctionInfo{"round"},
    FunctionInfo{"lower"},
    FunctionInfo{"sorted"},
    FunctionInfo{"unique"},
    FunctionInfo{"range"},
    FunctionInfo{"keys"},
    FunctionInfo{"values"},
    FunctionInfo{"min", 1, k_any},
    FunctionInfo{"max", 1, k_any},
    FunctionInfo{"split", 2, 2},
    FunctionInfo{"join", 2, 2},
    FunctionInfo{"starts_with", 2, 2},
    FunctionInfo{"ends_with", 2, 2},
    FunctionInfo{"contains", 2, 2},
    FunctionInfo{"merge", 2, 2},
    FunctionInfo{"object", 0, k_any},
    FunctionInfo{"slice", 3, 3},
    FunctionInfo{"is_array"},
    FunctionInfo{"is_object"},
    FunctionInfo{"is_text"},
    FunctionInfo{"number"},
};

tl::unexpected<Error> no_fit(const std::string& function, const Arguments& arguments) {
  return fail(Errc::unsupported,
              fmt::format("{}() cannot take {}", function,
                          json::serialize(json::array(arguments.begin(), arguments.end()))));
}

/// Round half to even, as Python does.
double round_even(double x) {
  return std::nearbyint(x);
}

Result<json::value> of_number(const std::string& f, const Arguments& a) {
  const auto x = as_number(a[0]);
  if (!x) return no_fit(f, a);
  const auto whole = [&](double v) -> Result<json::value> {
    if (!(std::abs(v) < 0x1p63)) return no_fit(f, a);
    return json::value(static_cast<std::int64_t>(v));
  };
  if (f == "int") {
    if (const auto i = as_integer(a[0])) return json::value(*i);
    return whole(std::trunc(*x));
  }
  if (f == "float") return json::value(*x);
  if (f == "abs") {
    if (const auto i = as_integer(a[0])) return json::value(*i < 0 ? -*i : *i);
    return json::value(std::abs(*x));
  }
  if (f == "floor") return whole(std::floor(*x));
  if (f == "ceil") return whole(std::ceil(*x));
  if (f == "round") return whole(round_even(*x));
  if (f == "sqrt" && *x >= 0) return json::value(std::sqrt(*x));
  if (f == "exp") return json::value(std::exp(*x));
  if (f == "log" && *x > 0) return json::value(std::log(*x));
  return no_fit(f, a);
}

Result<json::value> of_text(const std::string& f, const Arguments& a) {
  if (f == "contains" && a[0].is_array()) {
    const json::array& items = a[0].get_array();
    return json::value(std::any_of(items.begin(), items.end(),
                                   [&](const json::value& item) { return equal(item, a[1]); }));
  }
  if (f == "join") {
    if (!a[0].is_array() || !a[1].is_string()) return no_fit(f, a);
    std::string out;
    for (const json::value& item : a[0].get_array()) {
      if (!item.is_string()) return no_fit(f, a);
      if (!out.empty()) out += std::string(a[1].get_string());
      out += std::string(item.get_string());
    }
    return json::value(out);
  }
  if (!a[0].is_string() || (a.size() > 1 && !a[1].is_string())) return no_fit(f, a);
  const std::string_view text = a[0].get_string();
  if (f == "lower") {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return json::value(out);
  }
  const std::string_view other = a[1].get_string();
  if (f == "starts_with") return json::value(text.starts_with(other));
  if (f == "ends_with") return json::value(text.ends_with(other));
  if (f == "contains") return json::value(text.find(other) != std::string_view::npos);
  json::array parts;
  if (other.empty()) return no_fit(f, a);
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find(other, at);
    parts.emplace_back(text.substr(at, end == std::string_view::npos ? end : end - at));
    if (end == std::string_view::npos) return json::value(std::move(parts));
    at = end + other.size();
  }
}

Result<json::value> extreme(const std::string& f, const Arguments& a) {
  json::array items;
  if (a.size() == 1 && a[0].is_array()) {
    items = a[0].get_array();
  } else {
    items = json::array(a.begin(), a.end());
  }
  if (items.empty()) return no_fit(f, a);
  json::value best = items[0];
  for (const json::value& item : items) {
    const auto better = f == "min" ? less(item, best) : less(best, item);
    if (!better) return no_fit(f, a);
    if (*better) best = item;
  }
  return best;
}

Result<json::value> sum(const Arguments& a) {
  if (!a[0].is_array()) return no_fit("sum", a);
  std::int64_t whole = 0;
  double real = 0;
  bool all_whole = true;
  for (const json::value& item : a[0].get_array()) {
    const auto x = as_number(item);
    if (!x) return no_fit("sum", a);
    const auto i = as_integer(item);
    if (!i || __builtin_add_overflow(whole, *i, &whole)) all_whole = false;
    real += *x;
  }
  return all_whole ? json::value(whole) : json::value(real);
}

Result<json::value> ordered(const std::string& f, const Arguments& a) {
  if (!a[0].is_array()) return no_fit(f, a);
  json::array items = a[0].get_array();
  for (std::size_t i = 1; i < items.size(); ++i) {
    if (!less(items[i - 1], items[i])) return no_fit(f, a);
  }
  if (f == "sorted") {
    std::stable_sort(items.begin(), items.end(), [](const json::value& x, const json::value& y) {
      return less(x, y).value_or(false);
    });
    return json::value(std::move(items));
  }
  json::array out;
  for (const json::value& item : items) {
    if (std::none_of(out.begin(), out.end(), [&](const auto& seen) { return equal(seen, item); }))
      out.push_back(item);
  }
  return json::value(std::move(out));
}

Result<json::value> of_container(const std::string& f, const Arguments& a) {
  if (f == "len") {
    if (a[0].is_array()) return json::value(static_cast<std::int64_t>(a[0].get_array().size()));
    if (a[0].is_object()) return json::value(static_cast<std::int64_t>(a[0].get_object().size()));
    if (a[0].is_string()) return json::value(static_cast<std::int64_t>(a[0].get_string().size()));
    return no_fit(f, a);
  }
  if (f == "keys" || f == "values") {
    if (!a[0].is_object()) return no_fit(f, a);
    json::array out;
    for (const auto& member : a[0].get_object()) {
      out.push_back(f == "keys" ? json::value(member.key()) : member.value());
    }
    return json::value(std::move(out));
  }
  if (f == "merge") {
    if (!a[0].is_object() || !a[1].is_object()) return no_fit(f, a);
    json::object out = a[0].get_object();
    for (const auto& member : a[1].get_object()) {
      out[member.key()] = member.value();
    }
    return json::value(std::move(out));
  }
  if (f == "range") {
    const auto n = as_integer(a[0]);
    if (!n || *n > k_max_range) return no_fit(f, a);
    json::array out;
    for (std::int64_t i = 0; i < *n; ++i) {
      out.emplace_back(i);
    }
    return json::value(std::move(out));
  }
  const auto from = as_integer(a[1]);
  const auto to = as_integer(a[2]);
  if (!a[0].is_array() || !from || !to) return no_fit(f, a);
  const json::array& items = a[0].get_array();
  const auto clamp = [&](std::int64_t at) {
    const auto size = static_cast<std::int64_t>(items.size());
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
  };
  json::array out;
  for (std::int64_t i = clamp(*from); i < clamp(*to); ++i) {
    out.push_back(items[static_cast<std::size_t>(i)]);
  }
  return json::value(std::move(out));
}

/// A whole number that is written as text.
Result<json::value> number_of(const Arguments& a) {
  if (!a[0].is_string()) return no_fit("number", a);
  std::string_view text = a[0].get_string();
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
  }
  while (!text.empty() && text.back() == ' ') {
    text.remove_suffix(1);
  }
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return no_fit("number", a);
  return json::value(value);
}

/// Names and values in turn.
Result<json::value> object_of(const Arguments& a) {
  json::object out;
  for (std::size_t i = 0; i < a.size(); i += 2) {
    if (!a[i].is_string() || i + 1 == a.size()) return no_fit("object", a);
    out[a[i].get_string()] = a[i + 1];
  }
  return json::value(std::move(out));
}

Result<json::value> text_of(const Arguments& a) {
  if (a[0].is_string()) return a[0];
  if (const auto i = as_integer(a[0]); i && !a[0].is_bool()) {
    return json::value(std::to_string(*i));
  }
  return no_fit("str", a);
}

} // namespace

const FunctionInfo* find_function(std::string_view name) {
  const auto at = std::find_if(k_functions.begin(), k_functions.end(),
                               [name](const FunctionInfo& f) { return f.name == name; });
  return at == k_functions.end() ? nullptr : &*at;
}

Result<json::value> call_function(const std::string& function, const Arguments& arguments) {
  const std::string& f = function;
  if (f == "bool") return json::value(truthy(arguments[0]));
  if (f == "is_array") return json::value(arguments[0].is_array());
  if (f == "is_object") return json::value(arguments[0].is_object());
  if (f == "object") return object_of(arguments);
  if (f == "is_text") return json::value(arguments[0].is_string());
  if (f == "str") return text_of(arguments);
  if (f == "number") return number_of(arguments);
  if (f == "min" || f == "max") return extreme(f, arguments);
  if (f == "sum") return sum(arguments);
  if (f == "sorted" || f == "unique") return ordered(f, arguments);
  if (f == "len" || f == "keys" || f == "values" || f == "merge" || f == "range" || f == "slice") {
    return of_container(f, arguments);
  }
  if (f == "lower" || f == "split" || f == "join" || f == "starts_with" || f == "ends_with" ||
      f == "contains") {
    return of_text(f, arguments);
  }
  return of_number(f, arguments);
}

bool truthy(const json::value& value) {
  if (value.is_null()) return false;
  if (value.is_string()) return !value.get_string().empty();
  if (value.is_array()) return !value.get_array().empty();
  if (value.is_object()) return !value.get_object().empty();
  return as_number(value).value_or(0) != 0;
}

std::optional<double> as_number(const json::value& value) {
  if (value.is_bool()) return value.get_bool() ? 1.0 : 0.0;
  if (value.is_int64()) return static_cast<double>(value.get_int64());
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  if (value.is_double()) return value.get_double();
  return std::nullopt;
}

std::optional<std::int64_t> as_integer(const json::value& value) {
  if (value.is_bool()) return value.get_bool() ? 1 : 0;
  if (value.is_int64()) return value.get_int64();
  if (value.is_uint64() && value.get_uint64() <= std::uint64_t{INT64_MAX}) {
    return static_cast<std::int64_t>(value.get_uint64());
  }
  return std::nullopt;
}

bool equal(const json::value& a, const json::value& b) {
  const auto x = as_number(a);
  const auto y = as_number(b);
  if (x && y) return *x == *y;
  return a == b;
}

std::optional<bool> less(const json::value& a, const json::value& b) {
  const auto x = as_number(a);
  const auto y = as_number(b);
  if (x && y) return *x < *y;
  if (a.is_string() && b.is_string()) {
    return std::string_view(a.get_string()) < std::string_view(b.get_string());
  }
  return std::nullopt;
}

} // namespace modeld::quantize
