// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <boost/json/value.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The small expressions of schema/architectures/*.toml: "head_dim ?? hidden_size // heads". Numbers
// behave as in Python, in which the reference is written: / gives a float, // and % round down,
// integers stay integers, a value that is not there is null.
//
//   expr   := choice | or ["?" expr ":" expr]
//   choice := or { "??" or }                 the first that is not null
//   or, and, not, comparison (== != < <= > >= in), + -, * / // %, unary -, **
//   atom   := number | 'text' | true | false | null | [ expr, ... ] | ( expr ) | name
//           | function( ... ) | atom.name | atom[expr]
//            an array's element, an object's member, a text's letter; null of null
//   name   := a local name, else a key of the configuration, else null
//
//   find(a, b.c, d)     the first of the keys (or members) that is there, null where none; a key
//                       that holds null ends the search
//   has(a)              whether the key is there
//   int float bool str number len abs min max sum sqrt exp log floor ceil round
//   each(n, expr)       the array of expr for i = 0 .. n - 1
//   map(array, expr)    the array of expr for x = its elements; i counts
//   split(text, by)  starts_with(a, b)  ends_with(a, b)  contains(a, b)  lower(a)  join(a, by)
//   object('a', 1, ...)  an object of names and values
//   merge(a, b)         object a with the members of b over it
//   is_array is_object is_text
//   sorted(array) unique(array) range(n) slice(array, from, to) keys(object) values(object)

namespace modeld::quantize {

/// Where names come from.
class ExprScope {
public:
  virtual ~ExprScope() = default;
  ExprScope& operator=(const ExprScope&) = delete;
  /// A value valid until the scope changes; null where there is no such name.
  virtual const boost::json::value* find(std::string_view name) const = 0;

protected:
  ExprScope() = default;
  ExprScope(const ExprScope&) = default;
};

/// A parsed expression. Immutable; any thread.
class Expr {
public:
  struct Node;

  /// malformed, with the column, for text that is no expression or calls an unknown function.
  static Result<Expr> parse(std::string_view text);

  /// unsupported where operands do not fit ("cannot divide text"), or on a division by zero.
  Result<boost::json::value> evaluate(const ExprScope& scope) const;

  /// Every name that is looked up, for the check of a family's file.
  std::vector<std::string> names() const;
  const std::string& text() const { return text_; }

private:
  std::string text_;
  std::shared_ptr<const Node> root_;
};

/// As Python sees it: null, false, 0, "", [] and {} are false.
bool truthy(const boost::json::value& value);
std::optional<double> as_number(const boost::json::value& value);
std::optional<std::int64_t> as_integer(const boost::json::value& value);

} // namespace modeld::quantize
