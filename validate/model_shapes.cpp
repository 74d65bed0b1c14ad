// SPDX-License-Identifier: Apache-2.0
// Shapes by schema/gguf_tensors.txt: what the letters there stand for, and their arithmetic.
#include "validate/model_tensors.hpp"

#include <array>
#include <set>

namespace modeld::validate {
namespace {

using Number = std::optional<std::uint64_t>;

struct Symbol {
  char letter;
  std::string_view key;
};

constexpr std::array k_symbols{
    Symbol{'E', "embedding_length"},
    Symbol{'H', "attention.head_count"},
    Symbol{'G', "attention.head_count_kv"},
    Symbol{'K', "attention.key_length"},
    Symbol{'W', "attention.value_length"},
    Symbol{'F', "feed_forward_length"},
    Symbol{'X', "expert_count"},
    Symbol{'R', "rope.dimension_count"},
    Symbol{'C', "context_length"},
    Symbol{'c', "ssm.conv_kernel"},
    Symbol{'I', "ssm.inner_size"},
    Symbol{'S', "ssm.state_size"},
    Symbol{'D', "ssm.time_step_rank"},
    Symbol{'g', "ssm.group_count"},
    Symbol{'f', "expert_feed_forward_length"},
    Symbol{'s', "expert_shared_feed_forward_length"},
    Symbol{'q', "attention.q_lora_rank"},
    Symbol{'l', "attention.kv_lora_rank"},
    Symbol{'k', "attention.key_length_mla"},
    Symbol{'v', "attention.value_length_mla"},
    Symbol{'L', "shortconv.l_cache"},
    Symbol{'i', "attention.indexer.head_count"},
    Symbol{'j', "attention.indexer.key_length"},
    Symbol{'b', "attention.relative_buckets_count"},
    Symbol{'d', "kda.head_dim"},
    Symbol{'w', "wkv.head_size"},
    Symbol{'h', "expert_shared_count"},
    Symbol{'m', "time_mix_extra_dim"},
    Symbol{'n', "time_decay_extra_dim"},
    Symbol{'o', "attention.decay_lora_rank"},
    Symbol{'p', "attention.iclr_lora_rank"},
    Symbol{'z', "attention.gate_lora_rank"},
};

std::string_view key_of(char letter) {
  for (const Symbol& symbol : k_symbols)
    if (symbol.letter == letter) return symbol.key;
  return letter == 'V' ? "tokenizer.ggml.tokens" : "tokenizer.ggml.token_type_count";
}

/// Values of letters for one block of a model; nothing where the metadata do not tell.
class Values {
public:
  Values(const GgufModelView& model, std::uint64_t block) : model_(model), block_(block) {}

  Number of(char letter) const {
    switch (letter) {
    case 'V':
      return vocabulary();
    case 'T':
      return number(model_.key("tokenizer.ggml.token_type_count"));
    case 'G': {
      const Number own = plain('G');
      return model_.model_key(key_of('G')) == nullptr ? plain('H') : own;
    }
    case 'K':
      // Sliding windows with heads of another size: which layers have them, is not told.
      if (model_.model_key("attention.key_length_swa") != nullptr) return std::nullopt;
      return head_length('K');
    case 'W':
      if (model_.model_key("attention.value_length_swa") != nullptr) return std::nullopt;
      return head_length('W');
    case 'R':
      if (model_.model_key("rope.dimension_count_swa") != nullptr) return std::nullopt;
      return plain('R');
    default:
      return plain(letter);
    }
  }

private:
  static Number number(const GgufValueView* value) {
    return value == nullptr ? std::nullopt : value->as_u64();
  }

  /// Zero tells as little as nothing does.
  Number plain(char letter) const {
    const Number value = model_.layer_number(key_of(letter), block_);
    return value == std::uint64_t{0} ? std::nullopt : value;
  }

  Number head_length(char letter) const {
    if (const GgufValueView* value = model_.model_key(key_of(letter))) return value->as_u64();
    const Number width = plain('E');
    const Number heads = model_.layer_number(key_of('H'), 0);
    if (!width || !heads || *heads == 0) return std::nullopt;
    return *width / *heads;
  }

  Number vocabulary() const {
    const GgufValueView* kind = model_.key("tokenizer.ggml.model");
    const GgufValueView* tokens = model_.key("tokenizer.ggml.tokens");
    if (tokens != nullptr && tokens->is_array() &&
        (kind == nullptr || kind->as_string() != "no_vocab"))
      return tokens->count;
    return std::nullopt;
  }

  const GgufModelView& model_;
  std::uint64_t block_;
};

/// Sums of products with letters, numbers and brackets; nothing where a part is not known.
class Arithmetic {
public:
  Arithmetic(std::string_view text, const Values& values) : text_(text), values_(values) {}

  Number run() {
    const Number value = sum();
    // A size of zero belongs to something that is not there.
    return text_.empty() && value != std::uint64_t{0} ? value : std::nullopt;
  }

private:
  bool take(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }

  static Number apply(char op, Number a, Number b) {
    std::uint64_t out = 0;
    if (!a || !b) return std::nullopt;
    switch (op) {
    case '+':
      return __builtin_add_overflow(*a, *b, &out) ? std::nullopt : Number(out);
    case '-':
      return *b > *a ? std::nullopt : Number(*a - *b);
    case '*':
      return __builtin_mul_overflow(*a, *b, &out) ? std::nullopt : Number(out);
    default:
      return *b == 0 ? std::nullopt : Number(*a / *b);
    }
  }

  Number sum() {
    Number value = product();
    while (text_.starts_with('+') || text_.starts_with('-')) {
      const char op = text_.front();
      text_.remove_prefix(1);
      value = apply(op, value, product());
    }
    return value;
  }

  Number product() {
    Number value = atom();
    while (text_.starts_with('*') || text_.starts_with('/')) {
      const char op = text_.front();
      text_.remove_prefix(1);
      value = apply(op, value, atom());
    }
    return value;
  }

  Number atom() {
    if (take('(')) {
      const Number value = sum();
      take(')');
      return value;
    }
    std::uint64_t number = 0;
    bool digits = false;
    for (; !text_.empty() && text_.front() >= '0' && text_.front() <= '9'; text_.remove_prefix(1)) {
      number = number * 10 + static_cast<std::uint64_t>(text_.front() - '0');
      digits = true;
    }
    if (digits) return number;
    if (text_.empty() || text_.front() == '_') {
      text_ = {};
      return std::nullopt;
    }
    const char letter = text_.front();
    text_.remove_prefix(1);
    return values_.of(letter);
  }

  std::string_view text_;
  const Values& values_;
};

std::string keys_in(std::string_view dims) {
  std::set<std::string_view> seen;
  std::string out;
  for (const char c : dims) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter || !seen.insert(key_of(c)).second) continue;
    if (!out.empty()) out += ", ";
    out += key_of(c);
  }
  return out;
}

} // namespace

std::vector<TensorMisfit> find_misfits(const GgufModelView& model, const ModelTensors& table) {
  std::vector<TensorMisfit> out;
  for (const GgufTensorInfo* tensor : model.tensors()) {
    const LocalName local = LocalName::of(tensor->name);
    std::string_view dims = table.dims(local.name, local.block.has_value()).value_or("");
    if (dims.empty()) continue;
    TensorMisfit misfit{tensor, {}, keys_in(dims)};
    const Values values(model, local.block.value_or(0));
    while (!dims.empty()) {
      const std::size_t comma = std::min(dims.find(','), dims.size());
      misfit.expected.push_back(Arithmetic(dims.substr(0, comma), values).run());
      dims.remove_prefix(std::min(comma + 1, dims.size()));
    }
    bool fits = true;
    for (std::size_t i = 0; i < tensor->ne.size(); ++i) {
      const Number expected = i < misfit.expected.size() ? misfit.expected[i] : Number(1);
      fits = fits && (!expected || *expected == tensor->ne[i]);
    }
    if (!fits) out.push_back(std::move(misfit));
    if (out.size() > Report::k_cap) break;
  }
  return out;
}

std::string shape_text(const std::vector<Number>& dims) {
  std::string out;
  for (const Number& dim : dims)
    out += (out.empty() ? "[" : ", ") + (dim ? std::to_string(*dim) : "?");
  return (out.empty() ? "[" : out) + "]";
}

} // namespace modeld::validate
