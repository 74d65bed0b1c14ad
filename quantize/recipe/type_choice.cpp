// SPDX-License-Identifier: Apache-2.0
#include "quantize/recipe/type_choice.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace modeld::quantize {
namespace {

using enum TensorType;
using F = FileType;
using Role = TensorRole;

bool divides(TensorType type, const GgufTensor& tensor) {
  return tensor.row_elements() % info(type).block == 0;
}

/// The first and last eighth, and every third layer between.
bool use_more_bits(int layer, int layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

/// What stands in for a type whose block does not divide the row. Nothing: no substitute known.
std::optional<TensorType> substitute(TensorType type) {
  switch (type) {
  case iq1_s:
  case iq1_m:
  case iq2_xxs:
  case iq2_xs:
  case iq2_s:
  case iq3_xxs:
  case iq3_s:
  case iq4_xs:
    return iq4_nl;
  case q2_0:
  case q2_k:
  case q3_k:
  case tq1_0:
  case tq2_0:
    return q4_0;
  case q4_k:
    return q5_0;
  case q5_k:
    return q5_1;
  case q6_k:
    return q8_0;
  default:
    if (info(type).block <= 32) return type; // does not fit either, so F16 below
    return std::nullopt;
  }
}

Result<TensorType> fitting(const GgufTensor& tensor, TensorType wanted) {
  if (divides(wanted, tensor)) return wanted;
  const auto other = substitute(wanted);
  if (!other) {
    return fail(Errc::unsupported,
                fmt::format("quantizing tensor '{}': rows of {} elements are not whole blocks of "
                            "{} ({}), and there is no substitute for {}",
                            tensor.name, tensor.row_elements(), info(wanted).name,
                            info(wanted).block, info(wanted).name),
                "give the tensor another type by --tensor-type, or choose another recipe");
  }
  return divides(*other, tensor) ? *other : f16;
}

Result<TypeChoice> by_hand(const GgufTensor& tensor, TensorType type, std::string_view option) {
  if (!divides(type, tensor)) {
    return fail(Errc::unsupported,
                fmt::format("quantizing tensor '{}': {} gives it {}, in blocks of {}, but its rows "
                            "have {} elements",
                            tensor.name, option, info(type).name, info(type).block,
                            tensor.row_elements()),
                "choose a type whose block divides the row: Q8_0 and Q4_0 have 32, F16 has 1");
  }
  return TypeChoice{type, type};
}

} // namespace

Result<std::vector<TypeRule>>
compile_rules(std::span<const std::pair<std::string, TensorType>> rules) {
  std::vector<TypeRule> compiled;
  compiled.reserve(rules.size());
  for (const auto& [pattern, type] : rules) {
    try {
      compiled.push_back({pattern, std::regex(pattern), type});
    } catch (const std::regex_error& error) {
      return fail(Errc::invalid_argument,
                  fmt::format("reading tensor type rule '{}': no regular expression: {}", pattern,
                              error.what()));
    }
  }
  return compiled;
}

TypeChooser::TypeChooser(const ModelFacts& facts, const TypeOptions& options,
                         std::span<const std::string> names)
    : facts_(facts), options_(options) {
  for (const std::string& name : names) {
    const Role role = tensor_role(name);
    if (is_value_like(role)) ++values_;
    if (role == Role::output) tied_ = false;
  }
}

const TypeRule* TypeChooser::rule_for(std::string_view name) const {
  const auto at =
      std::find_if(options_.rules.begin(), options_.rules.end(), [&](const TypeRule& rule) {
        return std::regex_search(name.begin(), name.end(), rule.expression);
      });
  return at == options_.rules.end() ? nullptr : &*at;
}

Result<TypeChoice> TypeChooser::choose(const GgufTensor& tensor) {
  const Role role = tensor_role(tensor.name);
  if (!is_quantizable(tensor) || (options_.leave_output && role == Role::output)) {
    return TypeChoice{tensor.type, tensor.type};
  }
  const TypeRule* rule = rule_for(tensor.name);
  if (role == Role::token_embedding && options_.embedding_type &&
      !(tensor.name == "per_layer_token_embd.weight" && rule != nullptr)) {
    return by_hand(tensor, *options_.embedding_type, "the token embedding type");
  }
  if (role == Role::output && options_.output_type) {
    return by_hand(tensor, *options_.output_type, "the output tensor type");
  }
  TensorType wanted = options_.default_type;
  if (!info(wanted).quantized) return TypeChoice{wanted, wanted};
  if (rule != nullptr) {
    wanted = rule->type;
  } else if (!options_.pure) {
    MODELD_ASSIGN(wanted, mixture(tensor, role));
  }
  MODELD_ASSIGN(const TensorType type, fitting(tensor, wanted));
  return TypeChoice{type, wanted};
}

Result<TensorType> TypeChooser::mixture(const GgufTensor& tensor, TensorRole role) {
  if (role == Role::output || (tied_ && role == Role::token_embedding)) return output(tensor);
  if (is(F::mxfp4_moe)) return moe_fp4(tensor, role);
  if (role == Role::token_embedding) return embedding();
  if (is_any(F::iq2_xxs, F::iq2_xs, F::iq1_s, F::iq2_s, F::iq2_m, F::iq1_m)) return low_bit(role);
  if (is_value_like(role)) return value();
  switch (role) {
  case Role::attention_k:
  case Role::attention_q:
    return key_or_query(role);
  case Role::ffn_down:
    return down(tensor);
  case Role::attention_output:
    return attention_output();
  case Role::ffn_gate:
    return gate_or_up(tensor, gate_);
  case Role::ffn_up:
    return gate_or_up(tensor, up_);
  default:
    return options_.default_type;
  }
}

TensorType TypeChooser::output(const GgufTensor& tensor) const {
  if (options_.output_type) return *options_.output_type;
  if (is(F::mxfp4_moe) || facts_.architecture == "falcon" ||
      !divides(options_.default_type, tensor)) {
    return q8_0;
  }
  if (is_any(F::iq2_xxs, F::iq2_xs, F::iq3_xxs, F::iq1_s, F::iq2_s, F::iq2_m, F::iq1_m)) {
    return q5_k;
  }
  return options_.default_type == q8_0 ? q8_0 : q6_k;
}

TensorType TypeChooser::moe_fp4(const GgufTensor& tensor, TensorRole role) const {
  // MLA projections have three dimensions too; one family has experts told by their role.
  const bool expert_role = role == Role::ffn_up || role == Role::ffn_gate || role == Role::ffn_down;
  const bool stacked = tensor.ne.size() > 2 && tensor.ne[2] > 1;
  return stacked && (facts_.architecture != "bailingmoe3" || expert_role) ? mxfp4 : q8_0;
}

TensorType TypeChooser::embedding() const {
  if (is_any(F::iq2_xxs, F::iq2_xs, F::iq1_s, F::iq1_m)) return q2_k;
  if (is_any(F::iq2_s, F::iq2_m, F::iq3_xxs)) return iq3_s;
  if (is_any(F::tq1_0, F::tq2_0, F::q2_0)) return q4_k;
  return options_.default_type;
}

TensorType TypeChooser::low_bit(TensorRole role) {
  const bool two_bits = is_any(F::iq2_s, F::iq2_m);
  if (is_value_like(role)) {
    ++value_;
    if (facts_.grouping() >= 4 || facts_.experts >= 4) return q4_k;
    return two_bits ? iq3_s : q2_k;
  }
  if (facts_.experts == 8 && role == Role::attention_k) return q4_k;
  if (role == Role::ffn_down) {
    const int layer = down_++;
    if (layer < facts_.layers / 8) return two_bits ? iq3_s : q2_k;
  }
  if (role == Role::attention_output) {
    if (facts_.experts == 8) return q5_k;
    if (is_any(F::iq1_s, F::iq1_m)) return iq2_xxs;
    if (two_bits) return iq3_s;
  }
  return options_.default_type;
}

TensorType TypeChooser::value() {
  const int layer = value_++;
  const bool grouped = facts_.grouping() >= 4;
  TensorType type = options_.default_type;
  if (is(F::q2_k)) {
    type = grouped ? q4_k : q3_k;
  } else if (is(F::q2_k_s) && grouped) {
    type = q4_k;
  } else if (is(F::iq3_xxs)) {
    type = grouped ? q4_k : options_.has_importance ? iq3_xxs : iq3_s;
  } else if (is_any(F::iq3_xs, F::iq3_s) && grouped) {
    type = q4_k;
  } else if (is(F::iq3_m)) {
    type = q4_k;
  } else if (is(F::q3_k_m)) {
    type = layer < 2 ? q5_k : q4_k;
  } else if (is(F::q3_k_l)) {
    type = q5_k;
  } else if (is_any(F::iq4_nl, F::iq4_xs) && grouped) {
    type = q5_k;
  } else if (is_any(F::q4_k_m, F::q5_k_m) && use_more_bits(layer, values_)) {
    type = q6_k;
  } else if (is(F::q4_k_s) && layer < 4) {
    type = q5_k;
  }
  // Eight heads share one V there, so more bits for it cost little.
  if (facts_.is_70b && (type == q3_k || type == q4_k)) type = q5_k;
  return facts_.experts == 8 ? q8_0 : type;
}

TensorType TypeChooser::key_or_query(TensorRole role) const {
  if (role == Role::attention_k && facts_.experts == 8) return q8_0;
  if (is(F::iq3_xs)) return iq3_xxs;
  if (is(F::iq3_xxs)) return iq2_s;
  return options_.default_type;
}

Result<int> TypeChooser::layer_of(const GgufTensor& tensor, int counter) const {
  // Stacked or sprinkled experts are not in step with the layers: the name tells.
  if (facts_.experts <= 1) return counter;
  const auto layer = layer_number(tensor.name);
  if (!layer) {
    return fail(Errc::malformed,
                fmt::format("quantizing tensor '{}': no layer number in the name", tensor.name));
  }
  if (*layer < 0 || *layer >= facts_.layers) {
    return fail(Errc::malformed,
                fmt::format("quantizing tensor '{}': layer {} of a model with {} layers",
                            tensor.name, *layer, facts_.layers));
  }
  return *layer;
}

Result<TensorType> TypeChooser::down(const GgufTensor& tensor) {
  MODELD_ASSIGN(const int layer, layer_of(tensor, down_++));
  const int layers = facts_.layers;
  const bool falcon = facts_.architecture == "falcon";
  const bool first_eighth = layer < layers / 8;
  const bool more = use_more_bits(layer, layers);
  const TensorType plain = options_.default_type;
  switch (options_.file_type) {
  case F::q2_k:
    return q3_k;
  case F::q2_k_s:
    return first_eighth ? q4_k : plain;
  case F::iq3_xxs:
    if (options_.has_importance) return plain;
    return first_eighth ? q4_k : q3_k;
  case F::q3_k_m:
    if (layer < layers / 16) return q5_k;
    return !falcon || more ? q4_k : q3_k;
  case F::iq3_m:
    return first_eighth || (facts_.experts == 8 && more) ? q4_k : plain;
  case F::q3_k_l:
    return falcon ? q4_k : q5_k;
  case F::q4_k_m:
    if (!falcon) return more ? q6_k : plain;
    if (layer < layers / 16) return q6_k;
    return more ? q5_k : q4_k;
  case F::iq4_nl:
  case F::iq4_xs:
    return first_eighth && !options_.has_importance ? q5_k : plain;
  case F::q5_k_m:
    return more ? q6_k : plain;
  case F::q4_k_s:
    return !falcon && first_eighth ? q5_k : plain;
  case F::q4_0: // with importance the first layers may go wild; without, Q4_1 does
    return options_.has_importance && first_eighth ? q4_1 : plain;
  case F::q5_0:
    return options_.has_importance && first_eighth ? q5_1 : plain;
  default:
    return plain;
  }
}

TensorType TypeChooser::attention_output() const {
  const TensorType plain = options_.default_type;
  if (facts_.architecture == "falcon") return is(F::q3_k_l) ? q4_k : plain;
  if (facts_.experts == 8) {
    return is_any(F::q2_k, F::iq3_xs, F::iq3_xxs, F::q3_k_s, F::q3_k_m, F::iq4_nl, F::q4_k_s,
                  F::q4_k_m, F::iq3_s, F::iq3_m, F::iq4_xs)
               ? q5_k
               : plain;
  }
  if (is(F::q2_k)) return q3_k;
  if (is(F::iq3_xxs)) return iq3_s;
  if (is_any(F::q3_k_m, F::iq3_m)) return q4_k;
  if (is(F::q3_k_l)) return q5_k;
  return plain;
}

Result<TensorType> TypeChooser::gate_or_up(const GgufTensor& tensor, int& counter) const {
  MODELD_ASSIGN(const int layer, layer_of(tensor, counter++));
  const int layers = facts_.layers;
  if (is(F::iq3_xs) && layer >= layers / 8 && layer < 7 * layers / 8) return iq3_xxs;
  return options_.default_type;
}

bool needs_importance(std::string_view name, TensorType type, FileType file_type) {
  if (is_token_embedding(name) || name == "output.weight") return false;
  switch (type) {
  case iq3_xxs:
  case iq2_xxs:
  case iq2_xs:
  case iq2_s:
  case iq1_m:
  case iq1_s:
    return true;
  case q2_k:
    return file_type == F::q2_k_s;
  default:
    return false;
  }
}

} // namespace modeld::quantize
