// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/hf_tokenizer_loader.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>

// What a tokenizer's class changes in the definition that it was given, silently.

namespace modeld::quantize {
namespace {

using boost::json::object;
using boost::json::value;

/// Every "add_prefix_space": false below becomes true.
void set_prefix_space(value& part, unsigned depth = 0) {
  constexpr unsigned k_max_depth = 32;
  if (depth > k_max_depth) return;
  if (auto* list = part.if_array()) {
    for (auto& each : *list) {
      set_prefix_space(each, depth + 1);
    }
  }
  auto* members = part.if_object();
  if (members == nullptr) return;
  for (auto& [name, each] : *members) {
    if (name == "add_prefix_space" && each.is_bool()) each = true;
    set_prefix_space(each, depth + 1);
  }
}

} // namespace

void HfTokenizerLoader::change_prefix_space() {
  const auto* given = setting("add_prefix_space");
  if (class_->contains("prefix_space_everywhere") && is_truthy(given)) {
    set_prefix_space(out_.pre_tokenizer_);
    set_prefix_space(out_.decoder_);
  }
  // Llama's class has no default here, and its attempt to set "none" fails unseen.
  if (given == nullptr && out_.class_name_ == "LlamaTokenizerFast") return;
  auto* top = out_.pre_tokenizer_.if_object();
  if (top == nullptr || !top->contains("add_prefix_space")) return;
  (*top)["add_prefix_space"] = is_truthy(given);
}

/// The Llama kind throws the file's post-processor away and makes a template of its own.
Result<void> HfTokenizerLoader::change_template() {
  const auto* row = class_->if_contains("template");
  if (row == nullptr) return {};
  const auto& defaults = row->as_object();
  boost::json::array single;
  object ids;
  const auto add = [&](std::string_view role) -> Result<void> {
    const auto at = std::find_if(special_.begin(), special_.end(),
                                 [&](const Special& s) { return s.role == role; });
    const auto* given = setting(fmt::format("{}_token", role));
    // Two roles may share one token; only the first role is listed then.
    std::string content = at != special_.end() ? at->token.content : std::string();
    if (given != nullptr && given->is_string()) content = given->get_string();
    if (given != nullptr && given->is_object()) {
      content = text_member(given->get_object(), "content").value_or("");
    }
    if (content.empty()) {
      const auto* standard = class_->at("special").as_object().if_contains(role);
      if (standard != nullptr && standard->is_string() && given == nullptr) {
        content = standard->get_string();
      }
    }
    const auto id = content.empty() ? std::nullopt : out_.id_of(content);
    if (!id) {
      return fail(Errc::conflict,
                  fmt::format("reading the tokenizer: add_{}_token is true but there is no such "
                              "token",
                              role),
                  "correct tokenizer_config.json");
    }
    single.push_back(object{{"SpecialToken", object{{"id", content}, {"type_id", 0}}}});
    ids[content] = object{
        {"id", content}, {"ids", boost::json::array{*id}}, {"tokens", boost::json::array{content}}};
    return {};
  };
  if (flag("add_bos_token", defaults.at("bos").as_bool())) MODELD_TRY(add("bos"));
  single.push_back(object{{"Sequence", object{{"id", "A"}, {"type_id", 0}}}});
  if (flag("add_eos_token", defaults.at("eos").as_bool())) MODELD_TRY(add("eos"));
  out_.post_processor_ =
      object{{"type", "TemplateProcessing"}, {"single", single}, {"special_tokens", ids}};
  return {};
}

void HfTokenizerLoader::change_bert_normalizer() {
  auto* normalizer = out_.normalizer_.if_object();
  if (normalizer == nullptr || !class_->contains("bert_normalizer")) return;
  if (text_member(*normalizer, "type") != "BertNormalizer") return;
  (*normalizer)["lowercase"] = flag("do_lower_case", true);
  const auto* accents = setting("strip_accents");
  (*normalizer)["strip_accents"] = accents == nullptr ? value() : *accents;
  if (out_.class_name_ != "MPNetTokenizerFast") {
    (*normalizer)["handle_chinese_chars"] = flag("tokenize_chinese_chars", true);
  }
}

/// fix_mistral_regex replaces the first Split where the repository can be one of those with the
/// wrong pattern.
void HfTokenizerLoader::change_mistral_regex() {
  constexpr std::size_t k_large_vocabulary = 100000;
  constexpr std::string_view k_pattern =
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}|)"
      R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  if (!flag("fix_mistral_regex", false) || out_.ids_.size() <= k_large_vocabulary) return;
  const auto config = files_.object("config.json");
  if (!config || *config == nullptr) return;
  constexpr std::array<std::string_view, 5> k_types{"mistral", "mistral3", "voxtral", "ministral",
                                                    "pixtral"};
  const auto type = text_member(**config, "model_type");
  const auto version = text_member(**config, "transformers_version").value_or("");
  const bool other = type && std::find(k_types.begin(), k_types.end(), *type) == k_types.end();
  if (!version.empty() && (version >= "5" || (other && version <= "4.57.2"))) return;
  auto* top = out_.pre_tokenizer_.if_object();
  auto* parts = top == nullptr ? nullptr : top->if_contains("pretokenizers");
  if (parts == nullptr || !parts->is_array() || parts->get_array().empty()) return;
  parts->get_array().front() = object{{"type", "Split"},
                                      {"pattern", object{{"Regex", k_pattern}}},
                                      {"behavior", "Isolated"},
                                      {"invert", false}};
}

} // namespace modeld::quantize
