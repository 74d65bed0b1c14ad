// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/architecture/expr.hpp"

#include <optional>
#include <string>
#include <vector>

// Shared by the parser and the evaluator of architecture expressions only.

namespace modeld::quantize {

struct Expr::Node {
  enum class Kind {
    constant, ///< text: a number, true, false or null
    text,
    name,
    array,
    member, ///< text: the member's name
    index,
    call, ///< text: the function
    conditional,
    choice,
    either,
    both,
    negated,
    comparison, ///< text: the sign
    arithmetic, ///< text: the sign
  };
  Kind kind = Kind::constant;
  std::string text;
  std::vector<std::shared_ptr<const Node>> parts;
};

/// Why a function cannot be called so, or nothing.
std::optional<std::string> check_call(const std::string& function,
                                      const std::vector<std::shared_ptr<const Expr::Node>>& parts);

Result<boost::json::value> evaluate_node(const Expr::Node& node, const ExprScope& scope);

/// A function whose arguments are plain values.
Result<boost::json::value> call_function(const std::string& function,
                                         const std::vector<boost::json::value>& arguments);
/// Whether there is such a function, and how many arguments it takes at least and at most.
struct FunctionInfo {
  std::string_view name;
  std::size_t least = 1;
  std::size_t most = 1;
};
const FunctionInfo* find_function(std::string_view name);

bool equal(const boost::json::value& a, const boost::json::value& b);
/// Less, for numbers and texts; nothing where they do not compare.
std::optional<bool> less(const boost::json::value& a, const boost::json::value& b);

} // namespace modeld::quantize
