// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/ops.hpp"

#include "quantize/convert/low_rank.hpp"
#include "quantize/convert/sinusoids.hpp"
#include "quantize/convert/transform_family.hpp"
#include "quantize/convert/transform_value.hpp"
#include "quantize/convert/transform_view.hpp"
#include "quantize/convert/weights.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace json = boost::json;

namespace modeld::quantize {
namespace {

/// The configuration, and the tensor at hand.
class TensorScope final : public ExprScope {
public:
  TensorScope(const ExprScope& outer, const SourceTensor& tensor) : outer_(outer) {
    json::array shape;
    for (const std::uint64_t n : tensor.shape()) {
      shape.emplace_back(static_cast<std::int64_t>(n));
    }
    rank_ = static_cast<std::int64_t>(shape.size());
    shape_ = std::move(shape);
  }
  const json::value* find(std::string_view name) const override {
    if (name == "shape") return &shape_;
    if (name == "rank") return &rank_;
    return outer_.find(name);
  }

private:
  const ExprScope& outer_;
  json::value shape_;
  json::value rank_;
};

/// Arguments of one operation, evaluated.
class Arguments {
public:
  static Result<Arguments> of(const OpRule& op, const ExprScope& scope) {
    Arguments out;
    out.name_ = &op.name;
    for (const Expr& one : op.arguments) {
      MODELD_ASSIGN(json::value value, one.evaluate(scope));
      out.values_.push_back(std::move(value));
    }
    return out;
  }

  Result<std::int64_t> whole(std::size_t i) const {
    if (i < values_.size()) {
      if (const auto value = as_integer(values_[i])) return *value;
    }
    return missing(i, "a whole number");
  }
  Result<double> number(std::size_t i) const {
    if (i < values_.size()) {
      if (const auto value = as_number(values_[i])) return *value;
    }
    return missing(i, "a number");
  }
  Result<float> real(std::size_t i) const {
    MODELD_ASSIGN(const double value, number(i));
    return static_cast<float>(value);
  }
  /// All arguments as whole numbers.
  Result<std::vector<std::int64_t>> wholes() const {
    std::vector<std::int64_t> out;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      MODELD_ASSIGN(const std::int64_t value, whole(i));
      out.push_back(value);
    }
    return out;
  }
  /// One argument that is a list of numbers.
  Result<std::vector<double>> list(std::size_t i) const {
    if (i >= values_.size() || !values_[i].is_array()) return missing(i, "a list of numbers");
    std::vector<double> out;
    for (const json::value& item : values_[i].get_array()) {
      const auto value = as_number(item);
      if (!value) return missing(i, "a list of numbers");
      out.push_back(*value);
    }
    return out;
  }
  Result<std::vector<std::uint64_t>> places(std::size_t i) const {
    MODELD_ASSIGN(const auto numbers, list(i));
    std::vector<std::uint64_t> out(numbers.size());
    std::transform(numbers.begin(), numbers.end(), out.begin(),
                   [](double x) { return static_cast<std::uint64_t>(x); });
    return out;
  }
  /// At least one.
  Result<std::vector<float>> factors(std::size_t i) const {
    MODELD_ASSIGN(const auto numbers, list(i));
    if (numbers.empty()) return missing(i, "a list of factors");
    std::vector<float> out(numbers.size());
    std::transform(numbers.begin(), numbers.end(), out.begin(),
                   [](double x) { return static_cast<float>(x); });
    return out;
  }
  Result<std::string> text(std::size_t i) const {
    if (i >= values_.size() || !values_[i].is_string()) return missing(i, "a text");
    return std::string(values_[i].get_string());
  }
  std::size_t size() const { return values_.size(); }

private:
  tl::unexpected<Error> missing(std::size_t i, std::string_view what) const {
    return fail(Errc::unsupported,
                fmt::format("{}(): argument {} is {}, expected {}", *name_, i + 1,
                            i < values_.size() ? json::serialize(values_[i]) : "missing", what));
  }

  const std::string* name_ = nullptr;
  std::vector<json::value> values_;
};

using OpFunction = Result<SourcePtr> (*)(const SourcePtr&, const Arguments&);
using PairFunction = Result<SourcePtr> (*)(const LowRank&, const Arguments&);
struct Op {
  std::string_view name;
  OpFunction run;
  PairFunction run_pair = nullptr; ///< for what an adapter changes; null: it cannot follow
};

Result<SourcePtr> op_rotary(const SourcePtr& t, const Arguments& a) {
  MODELD_ASSIGN(const auto heads, a.whole(0));
  return rotary_halves(t, heads);
}
Result<SourcePtr> op_regroup(const SourcePtr& t, const Arguments& a) {
  MODELD_ASSIGN(const auto first, a.whole(0));
  MODELD_ASSIGN(const auto second, a.whole(1));
  return regroup_rows(t, first, second);
}
Result<SourcePtr> op_ungroup(const SourcePtr& t, const Arguments& a) {
  MODELD_ASSIGN(const auto heads, a.whole(0));
  MODELD_ASSIGN(const auto kv_heads, a.whole(1));
  return ungroup_qkv(t, heads, kv_heads);
}
Result<SourcePtr> op_reshape(const SourcePtr& t, const Arguments& a) {
  MODELD_ASSIGN(auto shape, a.wholes());
  return reshape(t, std::move(shape));
}
Result<SourcePtr> op_permute(const SourcePtr& t, const Arguments& a) {
  MODELD_ASSIGN(const auto axes, a.wholes());
  return permute(t, axes);
}
Result<SourcePtr> op_transpose(const SourcePtr& t, const Arguments& a) {
  if (a.size() == 0) return transpose(t, -1, -2);
  MODELD_ASSIGN(const auto first, a.whole(0));
  MODELD_ASSIGN(const auto second, a.whole(1));
  return transpose(t, first, second);
}
Result<SourcePtr> op_transpose_matrix(const SourcePtr& t, const Arguments&) {
  return t->shape().size() < 2 ? Result<SourcePtr>(t) : transpose(t, 0, 1);
}
Result<SourcePtr> op_slice(const SourcePtr& t, const Arguments& a) {
  MODELD_ASSIGN(const auto axis, a.whole(0));
  MODELD_ASSIGN(const auto begin, a.whole(1));
  MODELD_ASSIGN(const auto end, a.whole(2));
  return slice(t, axis, begin, end);
}
Result<SourcePtr> op_take(const SourcePtr& t, const Arguments& a) {
  MODELD_ASSIGN(const auto axis, a.whole(0));
  MODELD_ASSIGN(auto places, a.places(1));
  return take(t, axis, std::move(places));
}
Result<SourcePtr> op_squeeze(const SourcePtr& t, const Arguments& a) {
  if (a.size() == 0) return squeeze(t);
  MODELD_ASSIGN(const auto axis, a.whole(0));
  return squeeze(t, axis);
}
Result<SourcePtr> op_unsqueeze(const SourcePtr& t, const Arguments& a) {
  MODELD_ASSIGN(const auto axis, a.whole(0));
  return unsqueeze(t, axis);
}
Result<SourcePtr> op_add(const SourcePtr& t, const Arguments& a) {
  MODELD_ASSIGN(const float value, a.real(0));
  return add(t, value);
}
Result<SourcePtr> op_multiply(const SourcePtr& t, const Arguments& a) {
  MODELD_ASSIGN(const float value, a.real(0));
  return multiply(t, value);
}
Result<SourcePtr> op_divide(const SourcePtr& t, const Arguments& a) {
  MODELD_ASSIGN(const float value, a.real(0));
  return divide(t, value);
}
Result<SourcePtr> op_negative_exp(const SourcePtr& t, const Arguments&) {
  return negative_exp(t);
}
Result<SourcePtr> op_negate(const SourcePtr& t, const Arguments&) {
  return negate(t);
}
Result<SourcePtr> op_f32(const SourcePtr& t, const Arguments&) {
  return as_f32(t);
}

Result<SourcePtr> op_column_norms(const SourcePtr& t, const Arguments& a) {
  MODELD_ASSIGN(const float epsilon, a.real(0));
  return divide_by_column_norms(t, epsilon);
}
Result<SourcePtr> op_ternary(const SourcePtr& t, const Arguments&) {
  return ternary(t);
}
Result<SourcePtr> op_multiply_each(const SourcePtr& t, const Arguments& a) {
  MODELD_ASSIGN(auto factors, a.factors(0));
  MODELD_ASSIGN(const auto repeat, a.whole(1));
  if (repeat <= 0) return fail(Errc::unsupported, "multiply_each() needs a number of repeats");
  return multiply_each(t, std::move(factors), static_cast<std::uint64_t>(repeat));
}

// The same for a pair of factors.

Result<SourcePtr> pair_rotary(const LowRank& t, const Arguments& a) {
  MODELD_ASSIGN(const auto heads, a.whole(0));
  const auto rows = [](const SourcePtr& b, std::int64_t n, std::int64_t) {
    return rotary_halves(b, n);
  };
  return low_rank_rows(t, rows, heads, 0);
}
Result<SourcePtr> pair_regroup(const LowRank& t, const Arguments& a) {
  MODELD_ASSIGN(const auto first, a.whole(0));
  MODELD_ASSIGN(const auto second, a.whole(1));
  return low_rank_rows(t, regroup_rows, first, second);
}
Result<SourcePtr> pair_ungroup(const LowRank& t, const Arguments& a) {
  MODELD_ASSIGN(const auto heads, a.whole(0));
  MODELD_ASSIGN(const auto kv_heads, a.whole(1));
  return low_rank_rows(t, ungroup_qkv, heads, kv_heads);
}
Result<SourcePtr> pair_reshape(const LowRank& t, const Arguments& a) {
  MODELD_ASSIGN(auto shape, a.wholes());
  return low_rank_reshape(t, std::move(shape));
}
Result<SourcePtr> pair_permute(const LowRank& t, const Arguments& a) {
  MODELD_ASSIGN(const auto axes, a.wholes());
  return low_rank_permute(t, axes);
}
Result<SourcePtr> pair_transpose(const LowRank& t, const Arguments& a) {
  if (a.size() == 0) return low_rank_transpose(t, -1, -2);
  MODELD_ASSIGN(const auto first, a.whole(0));
  MODELD_ASSIGN(const auto second, a.whole(1));
  return low_rank_transpose(t, first, second);
}
Result<SourcePtr> pair_transpose_matrix(const LowRank& t, const Arguments&) {
  return low_rank_transpose(t, 0, 1);
}
Result<SourcePtr> pair_slice(const LowRank& t, const Arguments& a) {
  MODELD_ASSIGN(const auto axis, a.whole(0));
  MODELD_ASSIGN(const auto begin, a.whole(1));
  MODELD_ASSIGN(const auto end, a.whole(2));
  return low_rank_slice(t, axis, begin, end);
}
Result<SourcePtr> pair_take(const LowRank& t, const Arguments& a) {
  MODELD_ASSIGN(const auto axis, a.whole(0));
  MODELD_ASSIGN(auto places, a.places(1));
  return low_rank_take(t, axis, std::move(places));
}
Result<SourcePtr> pair_multiply(const LowRank& t, const Arguments& a) {
  MODELD_ASSIGN(const float value, a.real(0));
  return low_rank_multiply(t, value);
}
Result<SourcePtr> pair_multiply_each(const LowRank& t, const Arguments& a) {
  MODELD_ASSIGN(auto factors, a.factors(0));
  MODELD_ASSIGN(const auto repeat, a.whole(1));
  if (repeat <= 0) return fail(Errc::unsupported, "multiply_each() needs a number of repeats");
  return low_rank_multiply_rows(t, std::move(factors), static_cast<std::uint64_t>(repeat));
}

// Alphabetical.
constexpr std::array k_ops{
    Op{"add", op_add},
    Op{"divide", op_divide},
    Op{"divide_by_column_norms", op_column_norms},
    Op{"f32", op_f32},
    Op{"multiply", op_multiply, pair_multiply},
    Op{"multiply_each", op_multiply_each, pair_multiply_each},
    Op{"negate", op_negate},
    Op{"negative_exp", op_negative_exp},
    Op{"permute", op_permute, pair_permute},
    Op{"regroup_rows", op_regroup, pair_regroup},
    Op{"reshape", op_reshape, pair_reshape},
    Op{"rotary_halves", op_rotary, pair_rotary},
    Op{"slice", op_slice, pair_slice},
    Op{"squeeze", op_squeeze},
    Op{"take", op_take, pair_take},
    Op{"ternary", op_ternary},
    Op{"transpose", op_transpose, pair_transpose},
    Op{"transpose_matrix", op_transpose_matrix, pair_transpose_matrix},
    Op{"ungroup_qkv", op_ungroup, pair_ungroup},
    Op{"unsqueeze", op_unsqueeze},
};

const Op* find_op(std::string_view name) {
  const auto at =
      std::find_if(k_ops.begin(), k_ops.end(), [name](const Op& op) { return op.name == name; });
  return at == k_ops.end() ? nullptr : &*at;
}

Result<SourcePtr> cannot_follow() {
  return fail(Errc::unsupported, "what the family does to this weight cannot be done to a low-rank "
                                 "change of it");
}

/// values(array): the numbers themselves.
Result<SourcePtr> generate_values(const OpRule& by, const ExprScope& scope) {
  MODELD_ASSIGN(const Arguments arguments, Arguments::of(by, scope));
  MODELD_ASSIGN(const auto numbers, arguments.list(0));
  std::vector<float> values(numbers.size());
  std::transform(numbers.begin(), numbers.end(), values.begin(),
                 [](double x) { return static_cast<float>(x); });
  const Shape shape{values.size()};
  return owned_tensor(shape, std::move(values));
}

} // namespace

bool known_op(std::string_view name) {
  return find_op(name) != nullptr;
}

bool known_generator(std::string_view name) {
  return name == "values" || name == "llama3_rope" || name == "llama3_rope_part" ||
         name == "module_weight" || name == "sinusoids";
}

Result<SourcePtr> run_ops(SourcePtr tensor, const std::vector<OpRule>& ops,
                          const ExprScope& scope) {
  for (const OpRule& rule : ops) {
    const TensorScope inner(scope, *tensor);
    MODELD_ASSIGN(const Arguments arguments, Arguments::of(rule, inner));
    const Op& op = *find_op(rule.name);
    const LowRank* pair = as_low_rank(*tensor);
    auto out = pair == nullptr          ? op.run(tensor, arguments)
               : op.run_pair == nullptr ? cannot_follow()
                                        : op.run_pair(*pair, arguments);
    if (!out) return fail(std::move(out.error()).context(rule.name));
    tensor = *std::move(out);
  }
  return tensor;
}

Result<SourcePtr> generate(const OpRule& by, const ExprScope& scope, const FileSet& files) {
  if (by.name == "llama3_rope") return llama3_rope(scope);
  if (by.name == "llama3_rope_part") {
    MODELD_ASSIGN(const Arguments arguments, Arguments::of(by, scope));
    MODELD_ASSIGN(const auto rotary, arguments.whole(0));
    MODELD_ASSIGN(const auto head, arguments.whole(1));
    MODELD_ASSIGN(const auto base, arguments.number(2));
    return llama3_rope_part(scope, rotary, head, base);
  }
  if (by.name == "module_weight") {
    MODELD_ASSIGN(const Arguments arguments, Arguments::of(by, scope));
    MODELD_ASSIGN(const std::string folder, arguments.text(0));
    return open_module_weight(files, folder);
  }
  if (by.name == "sinusoids") {
    MODELD_ASSIGN(const Arguments arguments, Arguments::of(by, scope));
    MODELD_ASSIGN(const auto length, arguments.whole(0));
    MODELD_ASSIGN(const auto channels, arguments.whole(1));
    return sinusoids(length, channels);
  }
  return generate_values(by, scope);
}

} // namespace modeld::quantize
