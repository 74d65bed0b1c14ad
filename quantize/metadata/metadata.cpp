// SPDX-License-Identifier: Apache-2.0
#include "quantize/metadata/metadata.hpp"

#include "quantize/encoder/utf8_text.hpp"
#include "quantize/gguf/kv_list.hpp"
#include "quantize/metadata/fields.hpp"
#include "quantize/metadata/model_card.hpp"
#include "quantize/tokenizer/files.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace modeld::quantize {
namespace {

/// At least two digits, in thousands, millions, billions or trillions.
std::string rounded_count(double count) {
  double scaled = count * 1e-3;
  char suffix = 'K';
  if (count > 1e12) {
    scaled = count * 1e-12, suffix = 'T';
  } else if (count > 1e9) {
    scaled = count * 1e-9, suffix = 'B';
  } else if (count > 1e6) {
    scaled = count * 1e-6, suffix = 'M';
  }
  // Half to even, as the reference's round().
  const double rounded = std::nearbyint(scaled);
  const int digits = rounded == 0 ? 0 : static_cast<int>(fmt::format("{:.0f}", rounded).size());
  return fmt::format("{:.{}f}{}", scaled, std::max(2 - digits, 0), suffix);
}

Result<void> read_sources(const FileSet& files, const MetadataRequest& request,
                          MetadataFields& fields, std::vector<std::string>& warnings) {
  const std::int64_t total = request.parameters.total;
  auto card = read_model_card(files);
  if (!card && !request.ignore_card) return fail(std::move(card).error());
  if (!card) {
    warnings.push_back(fmt::format("the model card is left out: {}", card.error().message));
  } else {
    MODELD_TRY(apply_card(fields, *card, total));
  }

  TokenizerFiles json(files);
  MODELD_ASSIGN(const auto* config, json.object("config.json"));
  if (config != nullptr) {
    const auto* name = member(*config, "_name_or_path");
    if (name != nullptr && !name->is_string()) {
      return fail(Errc::malformed, "reading 'config.json': _name_or_path is not text");
    }
    // A deeper path is a place on somebody's disk, not a repository.
    if (name != nullptr &&
        std::count(name->get_string().begin(), name->get_string().end(), '/') < 2) {
      apply_model_id(fields, name->get_string(), total);
    }
  }
  apply_model_id(fields, files.name(), total);

  // Many repositories have a broken one; the reference goes on, and so do we.
  const auto generation = json.object("generation_config.json");
  if (!generation) {
    warnings.push_back(fmt::format("no sampling values: {}", generation.error().message));
  } else if (*generation != nullptr) {
    apply_generation_config(fields, **generation);
  }
  if (request.override_file) MODELD_TRY(apply_override(fields, *request.override_file));
  if (request.model_name) fields.set("name", boost::json::string(*request.model_name));
  return {};
}

std::string dashed(std::string_view text, bool slashes) {
  std::string out(stripped(text));
  std::replace(out.begin(), out.end(), ' ', '-');
  if (slashes) std::replace(out.begin(), out.end(), '/', '-');
  return out;
}

std::string cased(std::string_view text, int (*to)(int)) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [to](char c) { return static_cast<char>(to(static_cast<unsigned char>(c))); });
  return out;
}

} // namespace

std::string size_label(const ParameterCount& parameters) {
  if (parameters.expert_count > 0) {
    const auto each = std::abs(parameters.shared) + std::abs(parameters.expert);
    return fmt::format("{}x{}", parameters.expert_count, rounded_count(static_cast<double>(each)));
  }
  return rounded_count(static_cast<double>(std::abs(parameters.total)));
}

Result<MetadataResult> read_metadata(const FileSet& files, const MetadataRequest& request) {
  MetadataResult out;
  MetadataFields fields;
  MODELD_TRY(read_sources(files, request, fields, out.warnings));
  fields.set_if_absent("name", std::string(files.name()));
  if (request.parameters.total > 0) {
    fields.set_if_absent("size_label", size_label(request.parameters));
  }
  KvList kv;
  MODELD_TRY(write_fields(fields, kv));
  out.kv = std::move(kv).release();
  out.name = fields.text("name");
  out.basename = fields.text("basename");
  out.finetune = fields.text("finetune");
  out.version = fields.text("version");
  out.size_label = fields.text("size_label");
  return out;
}

std::string default_file_name(const MetadataResult& metadata, std::string_view output_type,
                              NamedFor kind) {
  const bool vocabulary = kind == NamedFor::vocabulary;
  std::string out = "ggml-model";
  if (metadata.basename) {
    out = dashed(*metadata.basename, true);
  } else if (metadata.name) {
    out = dashed(*metadata.name, true);
  }
  const bool sized = !vocabulary && kind != NamedFor::prediction && kind != NamedFor::projector;
  if (metadata.size_label && sized) out += fmt::format("-{}", *metadata.size_label);
  if (metadata.finetune) out += fmt::format("-{}", dashed(*metadata.finetune, false));
  if (metadata.version) out += fmt::format("-{}", dashed(*metadata.version, false));
  if (!vocabulary) out += fmt::format("-{}", cased(dashed(output_type, false), std::toupper));
  if (vocabulary) out += "-vocab";
  if (kind == NamedFor::adapter) out += "-LoRA";
  if (kind == NamedFor::prediction) out.insert(0, "mtp-");
  if (kind == NamedFor::projector) out.insert(0, "mmproj-");
  return out + ".gguf";
}

Result<std::string> fill_file_name(std::string_view pattern, std::string_view output_type) {
  std::string out;
  for (std::size_t at = 0; at < pattern.size();) {
    const char c = pattern[at];
    if (c != '{' && c != '}') {
      out += c;
      ++at;
      continue;
    }
    if (at + 1 < pattern.size() && pattern[at + 1] == c) {
      out += c;
      at += 2;
      continue;
    }
    const auto close = pattern.find('}', at);
    const auto name = c == '}' || close == std::string_view::npos
                          ? std::string_view("?")
                          : pattern.substr(at + 1, close - at - 1);
    if (name.empty() || name == "0" || name == "ftype" || name == "outtype") {
      out += cased(output_type, std::tolower);
    } else if (name == "FTYPE" || name == "OUTTYPE") {
      out += cased(output_type, std::toupper);
    } else {
      return fail(
          Errc::invalid_argument,
          fmt::format("filling the file name '{}': unknown field at byte {}", pattern, at),
          "the fields are {ftype}, {FTYPE}, {outtype}, {OUTTYPE}; a brace itself is {{ or }}");
    }
    at = close + 1;
  }
  return out;
}

} // namespace modeld::quantize
