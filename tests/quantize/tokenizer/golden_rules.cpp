// SPDX-License-Identifier: Apache-2.0
#include "tests/quantize/tokenizer/golden_rules.hpp"

#include <boost/json.hpp>

#include <map>
#include <string>

namespace modeld::test {
namespace {

using quantize::TokenizerKind;
using quantize::TokenizerRule;

const std::map<std::string_view, TokenizerKind> k_kinds{
    {"JambaForCausalLM", TokenizerKind::llama_hf_or_sentencepiece},
    {"BambaForCausalLM", TokenizerKind::sentencepiece_or_bpe},
    {"GraniteMoeHybridForCausalLM", TokenizerKind::sentencepiece_or_bpe},
    {"Mamba2ForCausalLM", TokenizerKind::sentencepiece_or_bpe},
    {"MambaForCausalLM", TokenizerKind::bpe_or_sentencepiece},
    {"FalconMambaForCausalLM", TokenizerKind::bpe_or_sentencepiece},
    {"DeepseekForCausalLM", TokenizerKind::sentencepiece_or_bpe},
    {"DeepseekV2ForCausalLM", TokenizerKind::kimi},
    {"DeepseekV3ForCausalLM", TokenizerKind::kimi},
    {"KimiLinearForCausalLM", TokenizerKind::kimi_linear},
    {"Ernie4_5ForCausalLM", TokenizerKind::sentencepiece},
    {"Ernie4_5_MoeForCausalLM", TokenizerKind::sentencepiece},
    {"GemmaForCausalLM", TokenizerKind::sentencepiece},
    {"Gemma2ForCausalLM", TokenizerKind::sentencepiece},
    {"Gemma3ForCausalLM", TokenizerKind::gemma3},
    {"Gemma3ForConditionalGeneration", TokenizerKind::gemma3},
    {"Gemma3TextModel", TokenizerKind::gemma3},
    {"HunYuanMoEV1ForCausalLM", TokenizerKind::hunyuan_moe},
    {"NemotronForCausalLM", TokenizerKind::sentencepiece},
    {"BitNetForCausalLM", TokenizerKind::sentencepiece},
    {"Phi3ForCausalLM", TokenizerKind::phi3},
    {"PhiMoEForCausalLM", TokenizerKind::phi3},
    {"ArcticForCausalLM", TokenizerKind::arctic},
    {"Grok1ForCausalLM", TokenizerKind::sentencepiece_or_bpe},
    {"BertModel", TokenizerKind::wordpiece},
    {"BertForMaskedLM", TokenizerKind::wordpiece},
    {"BertForSequenceClassification", TokenizerKind::wordpiece},
    {"DistilBertForMaskedLM", TokenizerKind::wordpiece},
    {"NeoBERTLMHead", TokenizerKind::wordpiece},
    {"RobertaModel", TokenizerKind::roberta},
    {"XLMRobertaModel", TokenizerKind::xlm_roberta},
    {"XLMRobertaForSequenceClassification", TokenizerKind::xlm_roberta},
    {"NomicBertModel", TokenizerKind::nomic_bert},
    {"JinaBertForMaskedLM", TokenizerKind::jina_bert},
    {"T5ForConditionalGeneration", TokenizerKind::t5},
    {"UMT5ForConditionalGeneration", TokenizerKind::t5},
    {"Rwkv6ForCausalLM", TokenizerKind::rwkv},
    {"RWKV7ForCausalLM", TokenizerKind::rwkv},
    {"Qwen2Model", TokenizerKind::sentencepiece_or_bpe},
    {"LlamaForCausalLM", TokenizerKind::llama},
    {"MistralForCausalLM", TokenizerKind::llama},
    {"MixtralForCausalLM", TokenizerKind::llama},
    {"LlavaForConditionalGeneration", TokenizerKind::llama},
    {"Mistral3ForConditionalGeneration", TokenizerKind::llama},
    {"VoxtralForConditionalGeneration", TokenizerKind::llama},
    {"GraniteForCausalLM", TokenizerKind::llama},
    {"GraniteMoeForCausalLM", TokenizerKind::llama},
    {"GraniteMoeSharedForCausalLM", TokenizerKind::llama},
    {"SmolLM3ForCausalLM", TokenizerKind::llama},
    {"AfmoeForCausalLM", TokenizerKind::llama},
    {"Idefics3ForConditionalGeneration", TokenizerKind::llama},
};

void add_padding(TokenizerRule& rule, std::string_view architecture,
                 const boost::json::object& config) {
  if (architecture == "MambaForCausalLM" || architecture == "FalconMambaForCausalLM") {
    rule.pad_multiple = 8;
    rule.pad_multiple_from_config = true;
  } else if (architecture == "Mamba2ForCausalLM") {
    rule.pad_multiple = 16;
    rule.pad_multiple_from_config = true;
  } else if (architecture == "NemotronHForCausalLM" || architecture == "BambaForCausalLM") {
    rule.pad_multiple = 8;
  } else if (architecture == "GraniteMoeHybridForCausalLM") {
    const auto* types = config.if_contains("layer_types");
    const bool ssm =
        types != nullptr && boost::json::serialize(*types).find("mamba") != std::string::npos;
    rule.pad_multiple = ssm ? 8 : 1;
  }
}

void add_ids(TokenizerRule& rule, std::string_view architecture,
             const boost::json::object& config) {
  if (architecture == "GlmForCausalLM") {
    rule.by_text = {{"eos", "<|endoftext|>"}, {"eot", "<|user|>"}, {"unk", "<|endoftext|>"}};
    rule.before = {{"tokenizer.ggml.add_bos_token", false}};
  } else if (architecture == "Glm4MoeForCausalLM" || architecture == "Glm4MoeLiteForCausalLM" ||
             architecture == "GlmMoeDsaForCausalLM") {
    rule.by_text = {{"bos", "[gMASK]"},
                    {"eot", "<|user|>"},
                    {"unk", "<|endoftext|>"},
                    {"eom", "<|observation|>"}};
  } else if (architecture == "GemmaForCausalLM") {
    rule.second_round = {
        {"prefix", 67}, {"suffix", 69}, {"middle", 68}, {"fsep", 70}, {"eot", 107}};
  } else if (architecture == "HunYuanMoEV1ForCausalLM") {
    rule.after = {{"tokenizer.ggml.bos_token_id", std::uint32_t{127959}}};
  } else if (architecture == "NemotronForCausalLM") {
    rule.after = {{"tokenizer.ggml.padding_token_id", std::uint32_t{0}},
                  {"tokenizer.ggml.unknown_token_id", std::uint32_t{1}}};
  } else if (architecture == "NemotronHForCausalLM" && !config.contains("num_experts_per_tok")) {
    rule.after = {{"tokenizer.ggml.add_bos_token", true}};
  } else if (architecture == "ModernBertModel") {
    rule.before = {{"tokenizer.ggml.add_bos_token", true},
                   {"tokenizer.ggml.add_eos_token", true},
                   {"tokenizer.ggml.add_sep_token", true}};
  } else if (architecture == "EuroBertModel" || architecture == "PhiForCausalLM") {
    rule.before = {{"tokenizer.ggml.add_bos_token", false}};
  }
  if (architecture == "GemmaForCausalLM" || architecture == "Gemma2ForCausalLM") {
    rule.after = {{"tokenizer.ggml.add_space_prefix", false}};
  }
}

} // namespace

TokenizerRule golden_rule(std::string_view architecture, const boost::json::object& config) {
  TokenizerRule rule;
  const auto at = k_kinds.find(architecture);
  rule.kind = at == k_kinds.end() ? TokenizerKind::sentencepiece_or_bpe : at->second;
  rule.prefix_space_from_config = architecture.starts_with("Ernie4_5");
  add_padding(rule, architecture, config);
  add_ids(rule, architecture, config);
  return rule;
}

boost::json::object golden_config(const boost::json::object& raw) {
  boost::json::object config = raw;
  for (const char* nested : {"llm_config", "thinker_config", "text_config"}) {
    const auto* inner = config.if_contains(nested);
    if (inner == nullptr || !inner->is_object()) continue;
    const boost::json::object copy = inner->get_object();
    for (const auto& [key, value] : copy) {
      config.insert_or_assign(key, value);
    }
  }
  if (!config.contains("vocab_size")) config["vocab_size"] = 32000;
  return config;
}

} // namespace modeld::test
