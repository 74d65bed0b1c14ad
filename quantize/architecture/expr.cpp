// SPDX-License-Identifier: Apache-2.0
#include "quantize/architecture/expr.hpp"

#include "quantize/architecture/expr_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

namespace modeld::quantize {
namespace {

using Node = Expr::Node;
using NodePtr = std::shared_ptr<const Node>;
using Kind = Node::Kind;

constexpr std::size_t k_max_depth = 64;

NodePtr make(Kind kind, std::string text, std::vector<NodePtr> parts = {}) {
  auto node = std::make_shared<Node>();
  node->kind = kind;
  node->text = std::move(text);
  node->parts = std::move(parts);
  return node;
}

bool word_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool word_char(char c) {
  return word_start(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// Recursive descent, one function for a level of precedence.
class Parser {
public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<NodePtr> all() {
    MODELD_ASSIGN(NodePtr root, expr());
    skip();
    if (at_ != text_.size()) return error("unexpected text");
    return root;
  }

private:
  tl::unexpected<Error> error(std::string_view why) const {
    return fail(Errc::malformed,
                fmt::format("reading expression '{}': {} at column {}", text_, why, at_ + 1));
  }

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') {
      ++at_;
    }
  }

  /// Takes a sign, or a word that ends there.
  bool take(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    const std::size_t end = at_ + token.size();
    if (word_char(token.back()) && end < text_.size() && word_char(text_[end])) return false;
    at_ = end;
    return true;
  }

  /// A sign that is not the start of a longer one.
  bool take_alone(std::string_view token, char not_before) {
    skip();
    const std::size_t end = at_ + token.size();
    if (end < text_.size() && text_[end] == not_before) return false;
    return take(token);
  }

  Result<NodePtr> expr() {
    if (++depth_ > k_max_depth) return error("nested too deep");
    MODELD_ASSIGN(NodePtr left, choice());
    if (take_alone("?", '?')) {
      MODELD_ASSIGN(NodePtr yes, expr());
      if (!take(":")) return error("expected ':'");
      MODELD_ASSIGN(NodePtr no, expr());
      left = make(Kind::conditional, "?", {left, yes, no});
    }
    --depth_;
    return left;
  }

  Result<NodePtr> choice() {
    MODELD_ASSIGN(NodePtr left, either());
    while (take("??")) {
      MODELD_ASSIGN(NodePtr right, either());
      left = make(Kind::choice, "??", {left, right});
    }
    return left;
  }

  Result<NodePtr> either() {
    MODELD_ASSIGN(NodePtr left, both());
    while (take("or")) {
      MODELD_ASSIGN(NodePtr right, both());
      left = make(Kind::either, "or", {left, right});
    }
    return left;
  }

  Result<NodePtr> both() {
    MODELD_ASSIGN(NodePtr left, negated());
    while (take("and")) {
      MODELD_ASSIGN(NodePtr right, negated());
      left = make(Kind::both, "and", {left, right});
    }
    return left;
  }

  Result<NodePtr> negated() {
    if (!take("not")) return comparison();
    MODELD_ASSIGN(NodePtr operand, negated());
    return make(Kind::negated, "not", {operand});
  }

  Result<NodePtr> comparison() {
    MODELD_ASSIGN(NodePtr left, sum());
    for (const std::string_view sign : {"==", "!=", "<=", ">=", "<", ">", "in"}) {
      if (!take(sign)) continue;
      MODELD_ASSIGN(NodePtr right, sum());
      return make(Kind::comparison, std::string(sign), {left, right});
    }
    return left;
  }

  Result<NodePtr> sum() {
    MODELD_ASSIGN(NodePtr left, product());
    for (;;) {
      const std::string sign = take("+") ? "+" : take("-") ? "-" : "";
      if (sign.empty()) return left;
      MODELD_ASSIGN(NodePtr right, product());
      left = make(Kind::arithmetic, sign, {left, right});
    }
  }

  Result<NodePtr> product() {
    MODELD_ASSIGN(NodePtr left, unary());
    for (;;) {
      const std::string sign = take("//")             ? "//"
                               : take_alone("*", '*') ? "*"
                               : take("/")            ? "/"
                               : take("%")            ? "%"
                                                      : "";
      if (sign.empty()) return left;
      MODELD_ASSIGN(NodePtr right, unary());
      left = make(Kind::arithmetic, sign, {left, right});
    }
  }

  Result<NodePtr> unary() {
    if (take("-")) {
      MODELD_ASSIGN(NodePtr operand, unary());
      return make(Kind::arithmetic, "-", {make(Kind::constant, "0"), operand});
    }
    MODELD_ASSIGN(NodePtr base, postfix());
    if (!take("**")) return base;
    MODELD_ASSIGN(NodePtr power, unary());
    return make(Kind::arithmetic, "**", {base, power});
  }

  Result<NodePtr> postfix() {
    MODELD_ASSIGN(NodePtr node, atom());
    for (;;) {
      if (take(".")) {
        const std::string name = word();
        if (name.empty()) return error("expected a name after '.'");
        node = make(Kind::member, name, {node});
      } else if (take("[")) {
        MODELD_ASSIGN(NodePtr index, expr());
        if (!take("]")) return error("expected ']'");
        node = make(Kind::index, "[]", {node, index});
      } else {
        return node;
      }
    }
  }

  std::string word() {
    skip();
    std::size_t end = at_;
    while (end < text_.size() && (end == at_ ? word_start(text_[end]) : word_char(text_[end]))) {
      ++end;
    }
    const std::string name(text_.substr(at_, end - at_));
    at_ = end;
    return name;
  }

  Result<NodePtr> atom() {
    skip();
    if (at_ == text_.size()) return error("expected a value");
    if (take("(")) {
      MODELD_ASSIGN(NodePtr inner, expr());
      if (!take(")")) return error("expected ')'");
      return inner;
    }
    if (take("[")) {
      MODELD_ASSIGN(auto items, list("]"));
      return make(Kind::array, "[]", std::move(items));
    }
    if (text_[at_] == '\'') return quoted();
    if (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) return number();
    const std::string name = word();
    if (name.empty()) return error("expected a value");
    if (name == "true" || name == "false" || name == "null") return make(Kind::constant, name);
    if (!take("(")) return make(Kind::name, name);
    MODELD_ASSIGN(auto arguments, list(")"));
    if (const auto fault = check_call(name, arguments)) return error(*fault);
    return make(Kind::call, name, std::move(arguments));
  }

  Result<std::vector<NodePtr>> list(std::string_view close) {
    std::vector<NodePtr> items;
    if (take(close)) return items;
    for (;;) {
      MODELD_ASSIGN(NodePtr item, expr());
      items.push_back(item);
      if (take(close)) return items;
      if (!take(",")) return error(fmt::format("expected ',' or '{}'", close));
    }
  }

  Result<NodePtr> quoted() {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) return error("the text has no end");
    NodePtr node = make(Kind::text, std::string(text_.substr(at_ + 1, end - at_ - 1)));
    at_ = end + 1;
    return node;
  }

  Result<NodePtr> number() {
    std::size_t end = at_;
    const auto exponent_sign = [&](std::size_t i) {
      return (text_[i] == '-' || text_[i] == '+') && (text_[i - 1] == 'e');
    };
    while (end < text_.size() &&
           (word_char(text_[end]) || text_[end] == '.' || (end > at_ && exponent_sign(end)))) {
      ++end;
    }
    const std::string digits(text_.substr(at_, end - at_));
    double unused = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), unused);
    if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) {
      return error("expected a number");
    }
    at_ = end;
    return make(Kind::constant, digits);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
};

void collect(const Node& node, std::vector<std::string>& names) {
  if (node.kind == Kind::name) names.push_back(node.text);
  for (const NodePtr& part : node.parts) {
    collect(*part, names);
  }
}

} // namespace

Result<Expr> Expr::parse(std::string_view text) {
  Expr expr;
  expr.text_ = text;
  MODELD_ASSIGN(expr.root_, Parser(expr.text_).all());
  return expr;
}

Result<boost::json::value> Expr::evaluate(const ExprScope& scope) const {
  auto value = evaluate_node(*root_, scope);
  if (!value) {
    return fail(std::move(value.error()).context(fmt::format("evaluating '{}'", text_)));
  }
  return value;
}

std::vector<std::string> Expr::names() const {
  std::vector<std::string> names;
  collect(*root_, names);
  return names;
}

} // namespace modeld::quantize
