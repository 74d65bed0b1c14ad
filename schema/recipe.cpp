// SPDX-License-Identifier: Apache-2.0
#include "schema/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace modeld {
namespace {

using enum TensorType;

// Names, file type numbers and base types of the reference's quantizer (llama.cpp v0.4.0). The
// first name with a number is the one that is written down; the others are aliases.
constexpr std::array k_targets{
    TargetInfo{"F32", 0, f32, false},       TargetInfo{"F16", 1, f16, false},
    TargetInfo{"BF16", 32, bf16, false},    TargetInfo{"Q4_0", 2, q4_0, true},
    TargetInfo{"Q4_1", 3, q4_1, true},      TargetInfo{"Q5_0", 8, q5_0, true},
    TargetInfo{"Q5_1", 9, q5_1, true},      TargetInfo{"Q8_0", 7, q8_0, true},
    TargetInfo{"Q2_K", 10, q2_k, true},     TargetInfo{"Q2_K_S", 21, q2_k, true},
    TargetInfo{"Q3_K_M", 12, q3_k, true},   TargetInfo{"Q3_K", 12, q3_k, true},
    TargetInfo{"Q3_K_S", 11, q3_k, true},   TargetInfo{"Q3_K_L", 13, q3_k, true},
    TargetInfo{"Q4_K_M", 15, q4_k, true},   TargetInfo{"Q4_K", 15, q4_k, true},
    TargetInfo{"Q4_K_S", 14, q4_k, true},   TargetInfo{"Q5_K_M", 17, q5_k, true},
    TargetInfo{"Q5_K", 17, q5_k, true},     TargetInfo{"Q5_K_S", 16, q5_k, true},
    TargetInfo{"Q6_K", 18, q6_k, true},     TargetInfo{"IQ1_S", 24, iq1_s, true},
    TargetInfo{"IQ1_M", 31, iq1_m, true},   TargetInfo{"IQ2_XXS", 19, iq2_xxs, true},
    TargetInfo{"IQ2_XS", 20, iq2_xs, true}, TargetInfo{"IQ2_S", 28, iq2_xs, true},
    TargetInfo{"IQ2_M", 29, iq2_s, true},   TargetInfo{"IQ3_XXS", 23, iq3_xxs, true},
    TargetInfo{"IQ3_XS", 22, iq3_s, true},  TargetInfo{"IQ3_S", 26, iq3_s, true},
    TargetInfo{"IQ3_M", 27, iq3_s, true},   TargetInfo{"IQ4_NL", 25, iq4_nl, true},
    TargetInfo{"IQ4_XS", 30, iq4_xs, true}, TargetInfo{"TQ1_0", 36, tq1_0, true},
    TargetInfo{"TQ2_0", 37, tq2_0, true},   TargetInfo{"MXFP4_MOE", 38, mxfp4, true},
    TargetInfo{"Q1_0", 40, q1_0, true},     TargetInfo{"Q2_0", 41, q2_0, true},
};

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

} // namespace

const TargetInfo* find_target(std::string_view name) {
  const std::string wanted = upper(name);
  const auto at = std::find_if(k_targets.begin(), k_targets.end(),
                               [&](const TargetInfo& t) { return t.name == wanted; });
  return at == k_targets.end() ? nullptr : &*at;
}

std::vector<std::string_view> all_target_names() {
  std::vector<std::string_view> names;
  names.reserve(k_targets.size());
  for (const TargetInfo& target : k_targets) {
    names.push_back(target.name);
  }
  return names;
}

Result<Recipe> Recipe::parse_target(std::string_view name) {
  Recipe recipe;
  if (upper(name) == "AUTO") return recipe;
  const TargetInfo* found = find_target(name);
  if (found == nullptr) {
    return fail(Errc::invalid_argument,
                fmt::format("reading recipe '{}': no such type; known are AUTO {}", name,
                            fmt::join(all_target_names(), " ")));
  }
  const auto first = std::find_if(k_targets.begin(), k_targets.end(), [&](const TargetInfo& t) {
    return t.file_type == found->file_type;
  });
  recipe.target = first->name;
  if (found->quantizer) recipe.via = "AUTO";
  return recipe;
}

std::string Recipe::canonical() const {
  std::string text = target;
  const auto add = [&text](std::string_view key, std::string_view value) {
    text += fmt::format(";{}={}", key, value);
  };
  if (!via.empty()) add("via", via);
  if (output_type) add("output", info(*output_type).name);
  if (embedding_type) add("embedding", info(*embedding_type).name);
  for (const auto& [pattern, type] : tensor_types) {
    add("tensor", fmt::format("{}:{}:{}", pattern.size(), pattern, info(type).name));
  }
  if (pure) add("pure", "1");
  if (leave_output_tensor) add("leave-output", "1");
  if (keep_split) add("keep-split", "1");
  if (force) add("force", "1");
  if (!pre.empty()) add("pre", pre);
  if (!model_name.empty()) add("name", fmt::format("{}:{}", model_name.size(), model_name));
  if (mmproj) add("mmproj", "1"); // last: keys from before it stay
  return text;
}

} // namespace modeld
