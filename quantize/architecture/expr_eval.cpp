// SPDX-License-Identifier: Apache-2.0
#include "quantize/architecture/expr_node.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

namespace json = boost::json;

namespace modeld::quantize {
namespace {

using Node = Expr::Node;
using Kind = Node::Kind;

// each() makes one element for a layer, a head or a token; a configuration that asks for more than
// this is no model.
constexpr std::int64_t k_max_elements = 1 << 20;

tl::unexpected<Error> mismatch(std::string_view what, const json::value& a, const json::value& b) {
  return fail(Errc::unsupported,
              fmt::format("cannot {} {} and {}", what, json::serialize(a), json::serialize(b)));
}

json::value constant(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  if (text == "null") return nullptr;
  std::int64_t whole = 0;
  const char* end = text.data() + text.size();
  if (const auto r = std::from_chars(text.data(), end, whole); r.ec == std::errc() && r.ptr == end)
    return whole;
  double real = 0;
  std::from_chars(text.data(), end, real);
  return real;
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

Result<json::value> whole(const std::string& sign, std::int64_t a, std::int64_t b,
                          const json::value& left, const json::value& right) {
  std::int64_t out = 0;
  bool overflow = false;
  if (sign == "+") overflow = __builtin_add_overflow(a, b, &out);
  if (sign == "-") overflow = __builtin_sub_overflow(a, b, &out);
  if (sign == "*") overflow = __builtin_mul_overflow(a, b, &out);
  if (sign == "//") out = floor_divide(a, b);
  if (sign == "%") out = a - floor_divide(a, b) * b;
  if (overflow) return mismatch("compute", left, right);
  return out;
}

Result<json::value> arithmetic(const std::string& sign, const json::value& left,
                               const json::value& right) {
  if (sign == "+" && left.is_string() && right.is_string()) {
    return json::value(std::string(left.get_string()) + std::string(right.get_string()));
  }
  if (sign == "+" && left.is_array() && right.is_array()) {
    json::array both = left.get_array();
    both.insert(both.end(), right.get_array().begin(), right.get_array().end());
    return json::value(std::move(both));
  }
  const auto a = as_number(left);
  const auto b = as_number(right);
  if (!a || !b) return mismatch(sign, left, right);
  const bool divides = sign == "/" || sign == "//" || sign == "%";
  if (divides && *b == 0) return mismatch("divide", left, right);
  const auto ia = as_integer(left);
  const auto ib = as_integer(right);
  if (ia && ib && sign != "/" && sign != "**") return whole(sign, *ia, *ib, left, right);
  if (sign == "+") return json::value(*a + *b);
  if (sign == "-") return json::value(*a - *b);
  if (sign == "*") return json::value(*a * *b);
  if (sign == "/") return json::value(*a / *b);
  if (sign == "//") return json::value(std::floor(*a / *b));
  if (sign == "%") return json::value(*a - std::floor(*a / *b) * *b);
  const double power = std::pow(*a, *b);
  if (ia && ib && *ib >= 0 && std::abs(power) < 0x1p53) {
    return json::value(static_cast<std::int64_t>(power));
  }
  return json::value(power);
}

Result<json::value> compare(const std::string& sign, const json::value& left,
                            const json::value& right) {
  if (sign == "==") return json::value(equal(left, right));
  if (sign == "!=") return json::value(!equal(left, right));
  if (sign == "in") {
    if (right.is_object() && left.is_string()) {
      return json::value(right.get_object().contains(left.get_string()));
    }
    if (!right.is_array()) return mismatch("look for", left, right);
    for (const json::value& item : right.get_array()) {
      if (equal(left, item)) return json::value(true);
    }
    return json::value(false);
  }
  const bool swap = sign == ">" || sign == "<=";
  const auto is_less = swap ? less(right, left) : less(left, right);
  if (!is_less) return mismatch("compare", left, right);
  const bool strict = sign == "<" || sign == ">";
  return json::value(strict ? *is_less : !*is_less);
}

/// A scope with one or two names more.
class InnerScope final : public ExprScope {
public:
  InnerScope(const ExprScope& outer, bool has_x) : outer_(outer), has_x_(has_x) {}
  const json::value* find(std::string_view name) const override {
    if (name == "i") return &i;
    if (has_x_ && name == "x") return &x;
    return outer_.find(name);
  }
  json::value i;
  json::value x;

private:
  const ExprScope& outer_;
  bool has_x_;
};

Result<json::value> each(const Node& node, const ExprScope& scope) {
  MODELD_ASSIGN(const json::value over, evaluate_node(*node.parts[0], scope));
  const bool map = node.text == "map";
  std::int64_t count = 0;
  if (map && over.is_array()) {
    count = static_cast<std::int64_t>(over.get_array().size());
  } else if (const auto n = as_integer(over); !map && n) {
    count = *n;
  } else {
    return fail(Errc::unsupported,
                fmt::format("{} cannot run over {}", node.text, json::serialize(over)));
  }
  if (count > k_max_elements) {
    return fail(Errc::unsupported,
                fmt::format("{} elements, at most {} are allowed", count, k_max_elements));
  }
  InnerScope inner(scope, map);
  json::array out;
  for (std::int64_t i = 0; i < count; ++i) {
    inner.i = i;
    if (map) inner.x = over.get_array()[static_cast<std::size_t>(i)];
    MODELD_ASSIGN(json::value item, evaluate_node(*node.parts[1], inner));
    out.push_back(std::move(item));
  }
  return json::value(std::move(out));
}

/// Where a key, or a member of one, stands; null where it is not there.
const json::value* locate(const Node& node, const ExprScope& scope) {
  if (node.kind == Kind::name) return scope.find(node.text);
  const json::value* from = locate(*node.parts[0], scope);
  return from == nullptr || !from->is_object() ? nullptr
                                               : from->get_object().if_contains(node.text);
}

/// head_dim, vision.head_dim: what find() and has() look for.
bool is_path(const Node& node) {
  return node.kind == Kind::name || (node.kind == Kind::member && is_path(*node.parts[0]));
}

Result<json::value> call(const Node& node, const ExprScope& scope) {
  if (node.text == "find") {
    for (const auto& part : node.parts) {
      if (const json::value* found = locate(*part, scope)) return *found;
    }
    return json::value(nullptr);
  }
  if (node.text == "has") return json::value(locate(*node.parts[0], scope) != nullptr);
  if (node.text == "each" || node.text == "map") return each(node, scope);
  std::vector<json::value> arguments;
  for (const auto& part : node.parts) {
    MODELD_ASSIGN(json::value argument, evaluate_node(*part, scope));
    arguments.push_back(std::move(argument));
  }
  return call_function(node.text, arguments);
}

Result<json::value> index(const json::value& from, const json::value& at) {
  if (from.is_null()) return json::value(nullptr);
  if (from.is_object() && at.is_string()) {
    const json::value* member = from.get_object().if_contains(at.get_string());
    return member == nullptr ? json::value(nullptr) : *member;
  }
  const auto i = as_integer(at);
  if (!(from.is_array() || from.is_string()) || !i) return mismatch("index", from, at);
  const std::size_t count = from.is_array() ? from.get_array().size() : from.get_string().size();
  const auto size = static_cast<std::int64_t>(count);
  const std::int64_t where = *i < 0 ? *i + size : *i;
  if (where < 0 || where >= size) return mismatch("index", from, at);
  const auto place = static_cast<std::size_t>(where);
  if (from.is_array()) return from.get_array()[place];
  return json::value(std::string_view(from.get_string()).substr(place, 1));
}

Result<json::value> logic(const Node& node, const ExprScope& scope) {
  MODELD_ASSIGN(json::value left, evaluate_node(*node.parts[0], scope));
  switch (node.kind) {
  case Kind::negated:
    return json::value(!truthy(left));
  case Kind::choice:
    return left.is_null() ? evaluate_node(*node.parts[1], scope) : Result<json::value>(left);
  case Kind::either:
    return truthy(left) ? Result<json::value>(left) : evaluate_node(*node.parts[1], scope);
  case Kind::both:
    return truthy(left) ? evaluate_node(*node.parts[1], scope) : Result<json::value>(left);
  default:
    return evaluate_node(*node.parts[truthy(left) ? 1 : 2], scope);
  }
}

} // namespace

std::optional<std::string> check_call(const std::string& function,
                                      const std::vector<std::shared_ptr<const Node>>& parts) {
  if (function == "find" || function == "has") {
    const bool names = !parts.empty() && std::all_of(parts.begin(), parts.end(),
                                                     [](const auto& p) { return is_path(*p); });
    if (names && (function == "find" || parts.size() == 1)) return std::nullopt;
    return fmt::format("{}() takes names of keys", function);
  }
  if (function == "each" || function == "map") {
    if (parts.size() == 2) return std::nullopt;
    return fmt::format("{}() takes two arguments", function);
  }
  const FunctionInfo* info = find_function(function);
  if (info == nullptr) return fmt::format("there is no function '{}'", function);
  if (parts.size() >= info->least && parts.size() <= info->most) return std::nullopt;
  return fmt::format("{}() takes {} to {} arguments, not {}", function, info->least, info->most,
                     parts.size());
}

Result<json::value> evaluate_node(const Node& node, const ExprScope& scope) {
  switch (node.kind) {
  case Kind::constant:
    return constant(node.text);
  case Kind::text:
    return json::value(node.text);
  case Kind::name: {
    const json::value* found = scope.find(node.text);
    return found == nullptr ? json::value(nullptr) : *found;
  }
  case Kind::array: {
    json::array items;
    for (const auto& part : node.parts) {
      MODELD_ASSIGN(json::value item, evaluate_node(*part, scope));
      items.push_back(std::move(item));
    }
    return json::value(std::move(items));
  }
  case Kind::call:
    return call(node, scope);
  case Kind::member: {
    MODELD_ASSIGN(const json::value from, evaluate_node(*node.parts[0], scope));
    return index(from, json::value(node.text));
  }
  case Kind::index:
  case Kind::comparison:
  case Kind::arithmetic: {
    MODELD_ASSIGN(const json::value left, evaluate_node(*node.parts[0], scope));
    MODELD_ASSIGN(const json::value right, evaluate_node(*node.parts[1], scope));
    if (node.kind == Kind::index) return index(left, right);
    return node.kind == Kind::comparison ? compare(node.text, left, right)
                                         : arithmetic(node.text, left, right);
  }
  default:
    return logic(node, scope);
  }
}

} // namespace modeld::quantize
