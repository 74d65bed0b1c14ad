// SPDX-License-Identifier: Apache-2.0
#include "store/show_ollama.hpp"

#include "validate/sha256.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <span>

namespace modeld::store {
namespace {

/// Ordered: a more special mark comes before one that it contains. Ours, written from the marks
/// that each model family documents.
const std::vector<PromptFormat>& prompt_formats() {
  static const std::vector<PromptFormat> formats{
      {"<|start_header_id|>",
       "{{- if .System }}<|start_header_id|>system<|end_header_id|>\n\n{{ .System }}<|eot_id|>"
       "{{ end }}{{- range .Messages }}<|start_header_id|>{{ .Role }}<|end_header_id|>\n\n"
       "{{ .Content }}<|eot_id|>{{ end }}<|start_header_id|>assistant<|end_header_id|>\n\n",
       {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}},
      {"<|im_start|>",
       "{{- if .System }}<|im_start|>system\n{{ .System }}<|im_end|>\n{{ end }}"
       "{{- range .Messages }}<|im_start|>{{ .Role }}\n{{ .Content }}<|im_end|>\n{{ end }}"
       "<|im_start|>assistant\n",
       {"<|im_start|>", "<|im_end|>"}},
      {"<start_of_turn>",
       "{{- if .System }}<start_of_turn>user\n{{ .System }}<end_of_turn>\n{{ end }}"
       "{{- range .Messages }}<start_of_turn>{{ if eq .Role \"assistant\" }}model{{ else }}user"
       "{{ end }}\n{{ .Content }}<end_of_turn>\n{{ end }}<start_of_turn>model\n",
       {"<start_of_turn>", "<end_of_turn>"}},
      {"<|assistant|>",
       "{{- if .System }}<|system|>\n{{ .System }}<|end|>\n{{ end }}"
       "{{- range .Messages }}<|{{ .Role }}|>\n{{ .Content }}<|end|>\n{{ end }}<|assistant|>\n",
       {"<|end|>", "<|user|>", "<|assistant|>", "<|system|>"}},
      {"[INST]",
       "{{- range $i, $m := .Messages }}{{- if eq .Role \"assistant\" }} {{ .Content }}</s>"
       "{{- else if eq .Role \"user\" }}[INST] {{ if and (eq $i 0) $.System }}{{ $.System }}\n\n"
       "{{ end }}{{ .Content }} [/INST]{{ end }}{{ end }}",
       {"[INST]", "[/INST]"}},
  };
  return formats;
}

boost::json::object layer(std::string_view type, const Sha256Digest& digest, std::uint64_t size) {
  return {{"mediaType", "application/vnd.ollama.image." + std::string(type)},
          {"digest", "sha256:" + digest.hex()},
          {"size", size}};
}

Sha256Digest digest_of(std::string_view text) {
  return validate::sha256_of(std::as_bytes(std::span(text)));
}

} // namespace

const PromptFormat* find_prompt_format(std::string_view chat_template) {
  for (const PromptFormat& format : prompt_formats()) {
    if (chat_template.find(format.mark) != std::string_view::npos) return &format;
  }
  return nullptr;
}

std::string parameter_count_text(std::uint64_t count) {
  const auto in_units = [count](std::uint64_t unit, int digits, char name) {
    const double value = static_cast<double>(count) / static_cast<double>(unit);
    return fmt::format("{:.{}f}{}", value, count % unit == 0 ? 0 : digits, name);
  };
  if (count >= 1'000'000'000) return in_units(1'000'000'000, 1, 'B');
  if (count >= 1'000'000) return in_units(1'000'000, 2, 'M');
  if (count >= 1'000) return in_units(1'000, 0, 'K');
  return std::to_string(count);
}

OllamaModel describe_for_ollama(const GgufFacts& facts, const Sha256Digest& blob,
                                std::uint64_t size,
                                const std::optional<OllamaProjector>& projector) {
  OllamaModel model;
  boost::json::array layers{layer("model", blob, size)};
  boost::json::array families{facts.architecture};
  if (projector) {
    layers.push_back(layer("projector", projector->blob, projector->size));
    families.emplace_back(k_projector_architecture);
  }
  const auto add = [&](std::string_view type, std::string text) {
    layers.push_back(layer(type, digest_of(text), text.size()));
    model.texts.push_back(std::move(text));
  };
  if (const auto* format = find_prompt_format(facts.chat_template)) {
    add("template", std::string(format->text));
    boost::json::array stops(format->stops.begin(), format->stops.end());
    add("params", boost::json::serialize(boost::json::object{{"stop", std::move(stops)}}));
  }
  if (!facts.license.empty()) add("license", facts.license);
  const boost::json::object config{
      {"model_format", "gguf"},
      {"model_family", facts.architecture},
      {"model_families", std::move(families)},
      {"model_type", parameter_count_text(facts.parameters)},
      {"file_type", facts.file_type.empty() ? "unknown" : facts.file_type},
      {"architecture", "amd64"},
      {"os", "linux"}};
  std::string config_text = boost::json::serialize(config);
  const boost::json::object manifest{
      {"schemaVersion", 2},
      {"mediaType", "application/vnd.docker.distribution.manifest.v2+json"},
      {"config",
       boost::json::object{{"mediaType", "application/vnd.docker.container.image.v1+json"},
                           {"digest", "sha256:" + digest_of(config_text).hex()},
                           {"size", config_text.size()}}},
      {"layers", std::move(layers)}};
  model.texts.push_back(std::move(config_text));
  model.manifest = boost::json::serialize(manifest);
  return model;
}

} // namespace modeld::store
