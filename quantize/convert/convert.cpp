// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/convert.hpp"

#include "quantize/convert/config.hpp"
#include "quantize/convert/consistency.hpp"
#include "quantize/convert/dequant.hpp"
#include "quantize/convert/keys.hpp"
#include "quantize/convert/tensors.hpp"
#include "quantize/convert/weights.hpp"
#include "quantize/tokenizer/tokenizer.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace json = boost::json;

namespace modeld::quantize {
namespace {

FamilyKind kind_of(const ConvertOptions& options) {
  return options.mmproj ? FamilyKind::projector : FamilyKind::model;
}

/// One conversion, step by step.
class Conversion {
public:
  Conversion(const FileSet& files, const ConvertOptions& options,
             const ArchitectureSet& architectures)
      : files_(files), options_(options), architectures_(architectures) {}

  Result<ConvertResult> run() {
    json::object facts{{"no_mtp", options_.no_mtp}, {"mtp_only", options_.mtp_only}};
    facts["adapter"] = options_.adapter;
    facts["dense_modules"] = options_.dense_modules;
    facts["mistral_format"] = options_.mistral_format;
    MODELD_ASSIGN(config_,
                  load_config(files_, architectures_, kind_of(options_), std::move(facts)));
    MODELD_TRY(check_options());
    check_dense_modules();
    MODELD_TRY(open());
    MODELD_ASSIGN(file_type_, choose_file_type(options_.outtype, weights_));
    TensorPlan plan;
    if (!options_.vocab_only) {
      MODELD_ASSIGN(const auto source,
                    dequantize_weights(weights_, config_, files_, options_.force));
      PlanOptions planning;
      planning.overflow = options_.force ? Overflow::infinity : Overflow::refuse;
      planning.fp8_as_q8 = options_.fp8_as_q8;
      planning.fuse_gate_up = options_.fuse_gate_up;
      MODELD_ASSIGN(plan, plan_tensors(weights_, config_, files_, file_type_, planning));
      if (source.nvfp4) name_file_type("NVFP4", 39);
      if (source.mxfp4) name_file_type("MXFP4_MOE", 38);
      if (plan.tensors.empty() && options_.mmproj) MODELD_TRY(refuse_empty());
    }
    MODELD_ASSIGN(out_.metadata, read_general(plan.parameters));
    if (config_.family->kind == FamilyKind::adapter) {
      MODELD_TRY(write_adapter_keys());
    } else {
      MODELD_TRY(write_metadata());
      if (!options_.no_vocabulary && !options_.mmproj) MODELD_TRY(write_tokenizer());
    }
    out_.model.tensors = std::move(plan.tensors);
    if (whole_model()) MODELD_TRY(check_complete(out_.model, config_.family->arch));
    out_.model.big_endian = options_.big_endian;
    out_.model.vocabulary_only = options_.vocab_only;
    out_.file_type = file_type_.name;
    out_.family = config_.family->title;
    if (options_.mtp_only) out_.named_for = NamedFor::prediction;
    if (options_.mmproj) out_.named_for = NamedFor::projector;
    if (options_.vocab_only) out_.named_for = NamedFor::vocabulary;
    MODELD_TRY(name_adapters());
    out_.left_out = std::move(weights_.dropped);
    append(out_.left_out, plan.left_out);
    out_.origins = std::move(plan.origins);
    return std::move(out_);
  }

private:
  Result<void> check_options() const {
    if (options_.mmproj && options_.vocab_only) {
      return fail(Errc::invalid_argument, "converting: a projector has no vocabulary",
                  "give one of --mmproj and --vocab-only");
    }
    if (!options_.adapter.empty() && config_.family->kind != FamilyKind::adapter) {
      return fail(Errc::not_found,
                  fmt::format("converting '{}': it holds no adapters", files_.name()));
    }
    if (options_.no_mtp && options_.mtp_only) {
      return fail(Errc::invalid_argument, "converting: --mtp and --no-mtp exclude each other");
    }
    if ((options_.no_mtp || options_.mtp_only) && !config_.family->knows("mtp")) {
      return fail(Errc::unsupported,
                  fmt::format("converting '{}': {} is not supported for {}", files_.name(),
                              options_.no_mtp ? "--no-mtp" : "--mtp", config_.family->title),
                  "leave the option out: this family has no layers for multi-token prediction that "
                  "could be told apart");
    }
    return {};
  }

  /// The reference goes on without a word.
  void check_dense_modules() {
    if (!options_.dense_modules) return;
    const json::value* dense = config_.facts.if_contains("dense");
    if (!config_.family->knows("dense_modules")) {
      out_.warnings.push_back(
          fmt::format("{} takes no dense modules: they are left out", config_.family->title));
    } else if (dense == nullptr || dense->as_object().empty()) {
      out_.warnings.emplace_back("there are no dense modules in modules.json");
    }
  }

  /// The reference writes a file without tensors.
  Result<void> refuse_empty() const {
    if (options_.force) return {};
    return fail(Errc::unsupported,
                fmt::format("converting '{}': none of its {} tensors belongs to a vision or audio "
                            "tower",
                            files_.name(), weights_.dropped.size()),
                "the names of the tensors are of another form than the family's; --force writes "
                "the reference's file all the same");
  }

  /// Weights, or none where only the vocabulary is asked for or force accepts an empty file.
  Result<void> open() {
    auto opened = open_weights(files_, options_.mistral_format ? WeightForm::mistral
                                                               : WeightForm::hugging_face);
    if (!opened) {
      const bool none =
          opened.error().code == Errc::not_found && (options_.force || options_.vocab_only);
      if (!none) return fail(std::move(opened.error()));
      out_.warnings.emplace_back("there are no weights");
      config_.facts["tensors"] = json::array();
      return prepare_config(config_, files_);
    }
    weights_ = *std::move(opened);
    json::array names;
    for (const NamedSource& source : weights_.tensors) {
      names.emplace_back(source.name);
    }
    config_.facts["tensors"] = std::move(names);
    MODELD_TRY(prepare_config(config_, files_));
    for (const std::string& file : weights_.unlisted) {
      out_.warnings.push_back(fmt::format("'{}' is not part of the model and was left out", file));
    }
    if (config_.family->kind == FamilyKind::model) MODELD_TRY(report_contradictions());
    return rename_weights(weights_, config_, architectures_);
  }

  Result<void> report_contradictions() {
    append(out_.warnings, rotary_contradictions(config_.raw));
    const auto& drop = config_.family->drop;
    const bool dropped = std::any_of(drop.begin(), drop.end(), [](const DropRule& rule) {
      return !rule.when && rule.name.match("lm_head.weight");
    });
    const json::value* tied = config_.values.if_contains("tie_word_embeddings");
    MODELD_ASSIGN(const std::string differs,
                  tied_contradiction(weights_, dropped || (tied != nullptr && truthy(*tied))));
    if (differs.empty()) return {};
    out_.warnings.push_back(differs +
                            (dropped ? "; it is left out, as this family has no output of its own"
                                     : "; both are kept"));
    return {};
  }

  /// Whether the file has to hold a whole model.
  bool whole_model() const {
    return config_.family->kind == FamilyKind::model && !options_.vocab_only &&
           !options_.mtp_only && !options_.force;
  }

  /// Kept blocks name the file, unless another quantization was asked for.
  void name_file_type(std::string_view name, std::uint32_t number) {
    const std::string_view plain = file_type_.name;
    if (plain != "F32" && plain != "F16" && plain != "BF16") return;
    file_type_.name = name;
    file_type_.number = number;
  }

  Result<MetadataResult> read_general(const ParameterCount& parameters) {
    MetadataRequest request;
    request.parameters = parameters;
    request.override_file = options_.metadata;
    request.model_name = options_.model_name;
    request.ignore_card = options_.ignore_card;
    return read_metadata(files_, request);
  }

  ConfigScope scope() const {
    ConfigScope names(config_, &files_);
    names.set("file_type", json::value(std::int64_t{file_type_.number}));
    return names;
  }

  Result<void> write_metadata() {
    std::vector<GgufKv>& kv = out_.model.kv;
    set_kv(kv, {"general.architecture", config_.family->arch});
    if (!options_.vocab_only) {
      MODELD_TRY(write_keys(config_.family->early, scope(), {config_.values, kv, options_.force}));
    }
    set_kv(kv, {"general.type", options_.mmproj ? "mmproj" : "model"});
    for (const GgufKv& entry : out_.metadata.kv) {
      set_kv(kv, entry);
    }
    append(out_.warnings, out_.metadata.warnings);
    MODELD_TRY(write_keys(config_.family->keys, scope(), {config_.values, kv, options_.force}));
    set_kv(kv, {"general.quantization_version", k_quantization_version});
    return {};
  }

  /// The file of an adapter tells nothing about the model beside it.
  Result<void> write_adapter_keys() {
    std::vector<GgufKv>& kv = out_.model.kv;
    set_kv(kv, {"general.architecture", config_.family->arch});
    set_kv(kv, {"general.type", "adapter"});
    return write_keys(config_.family->keys, scope(), {config_.values, kv, options_.force});
  }

  Result<void> name_adapters() {
    if (!config_.family->adapters || options_.vocab_only) return {};
    MODELD_ASSIGN(const json::value names, config_.family->adapters->evaluate(scope()));
    if (!names.is_array()) return {};
    for (const json::value& name : names.get_array()) {
      if (!name.is_string() || name.get_string().find('/') != json::string::npos) {
        return fail(Errc::malformed,
                    fmt::format("converting '{}': an adapter is named {}, expected a text that can "
                                "be part of a file name",
                                files_.name(), json::serialize(name)));
      }
      out_.adapters.emplace_back(name.get_string());
    }
    return {};
  }

  Result<const TokenizerPart*> tokenizer_part() const {
    for (const TokenizerPart& part : config_.family->tokenizers) {
      if (!part.when) return &part;
      MODELD_ASSIGN(const json::value holds, part.when->evaluate(scope()));
      if (truthy(holds)) return &part;
    }
    return fail(Errc::internal, "choosing a tokenizer: no part of the family's file applies");
  }

  Result<TokenizerRule> tokenizer_rule(const TokenizerPart& part) {
    TokenizerRule rule;
    rule.kind = part.kind;
    MODELD_TRY(write_keys(part.before, scope(), {config_.values, rule.before, options_.force}));
    MODELD_TRY(write_keys(part.after, scope(), {config_.values, rule.after, options_.force}));
    for (const auto& [type, value] : part.by_text) {
      MODELD_ASSIGN(const json::value text, value.evaluate(scope()));
      if (text.is_string()) rule.by_text.emplace_back(type, std::string(text.get_string()));
    }
    MODELD_ASSIGN(rule.by_id, ids(part.by_id));
    MODELD_ASSIGN(rule.second_round, ids(part.second_round));
    if (part.pad_multiple) {
      MODELD_ASSIGN(const json::value multiple, part.pad_multiple->evaluate(scope()));
      rule.pad_multiple = static_cast<std::uint32_t>(as_integer(multiple).value_or(0));
    }
    rule.pad_multiple_from_config = part.pad_multiple_from_config;
    rule.per_layer_vocab_first = part.per_layer_vocab_first;
    return rule;
  }

  Result<std::vector<SpecialById>>
  ids(const std::vector<std::pair<std::string, Expr>>& from) const {
    std::vector<SpecialById> out;
    for (const auto& [type, value] : from) {
      MODELD_ASSIGN(const json::value number, value.evaluate(scope()));
      const auto id = as_integer(number);
      if (id && *id >= 0) out.emplace_back(type, static_cast<std::uint32_t>(*id));
    }
    return out;
  }

  Result<void> write_tokenizer() {
    MODELD_ASSIGN(const TokenizerPart* part, tokenizer_part());
    MODELD_ASSIGN(const TokenizerRule rule, tokenizer_rule(*part));
    TokenizerRequest request;
    request.architecture = config_.family->arch;
    request.pre = options_.pre;
    request.force = options_.force;
    request.mistral_format = options_.mistral_format;
    request.community_template = options_.community_template;
    MODELD_ASSIGN(TokenizerResult result, read_tokenizer(files_, config_.values, rule, request));
    for (GgufKv& entry : result.kv) {
      set_kv(out_.model.kv, std::move(entry));
    }
    append(out_.warnings, result.warnings);
    return {};
  }

  static void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  const FileSet& files_;
  const ConvertOptions& options_;
  const ArchitectureSet& architectures_;
  ModelConfig config_;
  Weights weights_;
  OutputType file_type_;
  ConvertResult out_;
};

} // namespace

std::string ConvertResult::file_name() const {
  return default_file_name(metadata, file_type, named_for);
}

Result<ConvertResult> convert(const FileSet& files, const ConvertOptions& options) {
  MODELD_ASSIGN(const ArchitectureSet* architectures, ArchitectureSet::builtin());
  return convert(files, options, *architectures);
}

Result<ConvertResult> convert(const FileSet& files, const ConvertOptions& options,
                              const ArchitectureSet& architectures) {
  return Conversion(files, options, architectures).run();
}

Result<void> check_architecture(const FileSet& files, const ConvertOptions& options) {
  MODELD_ASSIGN(const ArchitectureSet* architectures, ArchitectureSet::builtin());
  MODELD_TRY(load_config(files, *architectures, kind_of(options)));
  return {};
}

Result<std::vector<SupportedClass>> supported_classes() {
  MODELD_ASSIGN(const ArchitectureSet* architectures, ArchitectureSet::builtin());
  std::vector<SupportedClass> out;
  for (const FamilyKind kind : {FamilyKind::model, FamilyKind::projector}) {
    for (const std::string_view name : architectures->class_names(kind)) {
      const Architecture& family = *architectures->find(name, kind)[0];
      out.push_back({std::string(name), family.arch, family.title, kind == FamilyKind::projector});
    }
  }
  return out;
}

} // namespace modeld::quantize
