// SPDX-License-Identifier: Apache-2.0
#include "quantize/golden_case.hpp"

#include "quantize/recipe/imatrix.hpp"
#include "quantize/recipe/quantize_options.hpp"
#include "schema/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <regex>

namespace modeld::test {
namespace {

namespace json = boost::json;
using quantize::GgufArray;
using quantize::GgufValue;

std::string read_text(const std::filesystem::path& path) {
  std::string text(file_size(path), '\0');
  std::ifstream(path, std::ios::binary)
      .read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

std::string_view text_of(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string_view(value->get_string())
                                                : std::string_view{};
}

template <class T>
GgufArray array_of(const json::object& kv) {
  std::vector<T> items(kv.at("n").to_number<std::size_t>());
  if (const auto* values = kv.if_contains("value"); values != nullptr && values->is_array()) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      const json::value& value = values->get_array().at(i);
      if constexpr (std::is_same_v<T, std::string>) {
        items[i] = std::string(value.as_string());
      } else if constexpr (std::is_same_v<T, bool>) {
        items[i] = value.as_bool();
      } else {
        items[i] = value.to_number<T>();
      }
    }
  }
  return items;
}

GgufValue value_of(const json::object& kv) {
  const std::string_view type = text_of(kv, "type");
  if (type == "ARRAY") {
    const std::string_view element = text_of(kv, "element");
    if (element == "STRING") return array_of<std::string>(kv);
    if (element == "BOOL") return array_of<bool>(kv);
    if (element == "FLOAT32") return array_of<float>(kv);
    if (element == "UINT32") return array_of<std::uint32_t>(kv);
    return array_of<std::int32_t>(kv);
  }
  // Long texts are given by their digest.
  if (!kv.contains("value")) return std::string(text_of(kv, "sha256"));
  const json::value& value = kv.at("value");
  if (type == "STRING") return std::string(value.as_string());
  if (type == "BOOL") return value.as_bool();
  if (type == "FLOAT32") return value.is_number() ? value.to_number<float>() : 0.0F;
  if (type == "UINT16") return value.to_number<std::uint16_t>();
  if (type == "INT32") return value.to_number<std::int32_t>();
  if (type == "UINT64") return value.to_number<std::uint64_t>();
  return value.to_number<std::uint32_t>();
}

/// Reads the options one by one.
class ArgvReader {
public:
  ArgvReader(const GoldenCase& golden, const json::array& argv) : golden_(golden) {
    for (const json::value& word : argv) {
      words_.emplace_back(word.as_string());
    }
  }

  Result<void> read(quantize::QuantizeRequest& request, bool& dry_run) {
    while (at_ < words_.size()) {
      const std::string option = words_[at_++];
      if (option == "--dry-run") {
        dry_run = true;
      } else if (!flag(option, request)) {
        MODELD_TRY(valued(option, request));
      }
    }
    return read_importance(request);
  }

private:
  static bool flag(std::string_view option, quantize::QuantizeRequest& request) {
    if (option == "--pure") return request.recipe.pure = true;
    if (option == "--leave-output-tensor") return request.recipe.leave_output_tensor = true;
    if (option == "--allow-requantize") return request.allow_requantize = true;
    if (option == "--keep-split") return request.recipe.keep_split = true;
    return false;
  }

  Result<void> valued(std::string_view option, quantize::QuantizeRequest& request) {
    if (at_ == words_.size()) return fail(Errc::invalid_argument, "value missing");
    const std::string& value = words_[at_++];
    if (option == "--output-tensor-type") {
      MODELD_ASSIGN(request.recipe.output_type, quantize::parse_tensor_type(value));
    } else if (option == "--token-embedding-type") {
      MODELD_ASSIGN(request.recipe.embedding_type, quantize::parse_tensor_type(value));
    } else if (option == "--tensor-type") {
      MODELD_ASSIGN(auto rule, quantize::parse_tensor_rule(value));
      request.recipe.tensor_types.push_back(std::move(rule));
    } else if (option == "--tensor-type-file") {
      if (!exists(golden_.folder() / value)) return fail(Errc::not_found, "no such file");
      MODELD_ASSIGN(auto rules, quantize::parse_tensor_rules(read_text(golden_.folder() / value)));
      request.recipe.tensor_types.insert(request.recipe.tensor_types.end(), rules.begin(),
                                         rules.end());
    } else if (option == "--override-kv") {
      MODELD_ASSIGN(auto kv, quantize::parse_kv_override(value));
      request.overrides.push_back(std::move(kv));
    } else if (option == "--imatrix") {
      imatrix_ = value;
    } else if (option == "--include-weights") {
      filter_.include.push_back(value);
    } else if (option == "--exclude-weights") {
      filter_.exclude.push_back(value);
    } else if (option == "--prune-layers") {
      MODELD_ASSIGN(request.prune_layers, quantize::parse_layer_list(value));
    } else if (option != "--max-buffer-size" || value == "0") {
      return fail(Errc::invalid_argument, fmt::format("unknown option {}", option));
    }
    return {};
  }

  Result<void> read_importance(quantize::QuantizeRequest& request) const {
    if (!filter_.include.empty() && !filter_.exclude.empty()) {
      return fail(Errc::invalid_argument, "include and exclude");
    }
    if (imatrix_.empty()) return {};
    const auto path = golden_.folder() / imatrix_;
    if (!exists(path)) return fail(Errc::not_found, "no such importance matrix");
    const std::string text = read_text(path);
    MODELD_ASSIGN(const auto file,
                  quantize::read_imatrix(std::as_bytes(std::span(text)), imatrix_));
    MODELD_ASSIGN(auto importance, quantize::make_importance(file, imatrix_, filter_));
    request.importance = std::make_shared<quantize::Importance>(std::move(importance));
    return {};
  }

  const GoldenCase& golden_;
  std::string imatrix_;
  quantize::ImatrixFilter filter_;
  std::vector<std::string> words_;
  std::size_t at_ = 0;
};

} // namespace

GoldenCase::GoldenCase(std::filesystem::path folder)
    : folder_(std::move(folder)), name_(folder_.filename()),
      expected_(json::parse(read_text(folder_ / "expected.json"))) {}

std::string GoldenCase::model_dir() const {
  return std::string(text_of(expected_.as_object(), "model_dir"));
}

std::string GoldenCase::pre() const {
  return std::string(text_of(expected_.as_object(), "pre"));
}

std::vector<std::vector<const json::object*>> GoldenCase::quantize_runs() const {
  std::vector<std::vector<const json::object*>> runs;
  for (const json::value& output : expected_.at("outputs").as_array()) {
    const json::object& object = output.as_object();
    if (text_of(object, "tool") != "quantize") continue;
    static const std::regex later_part(".*-(?!00001)[0-9]{5}-of-[0-9]{5}\\.gguf");
    const std::string file(text_of(object, "file"));
    if (std::regex_match(file, later_part)) {
      runs.back().push_back(&object);
    } else {
      runs.push_back({&object});
    }
  }
  return runs;
}

std::vector<const json::object*> GoldenCase::input_files(std::string_view input) const {
  std::string prefix(input);
  const std::size_t part = prefix.find("-00001-of-");
  if (part != std::string::npos) prefix.resize(part + 1);
  std::vector<const json::object*> files;
  for (const json::value& output : expected_.at("outputs").as_array()) {
    const std::string_view file = text_of(output.as_object(), "file");
    const bool same = part == std::string::npos ? file == input : file.starts_with(prefix);
    if (same) files.push_back(&output.as_object());
  }
  return files;
}

std::vector<GoldenCase> golden_quantize_cases() {
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(MODELD_GOLDEN)) {
    if (exists(entry.path() / "expected.json")) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  std::vector<GoldenCase> cases;
  for (const auto& folder : folders) {
    GoldenCase golden(folder);
    if (!golden.quantize_runs().empty()) cases.push_back(std::move(golden));
  }
  return cases;
}

quantize::GgufModel described_model(const json::object& output) {
  quantize::GgufModel model;
  for (const json::value& kv : output.at("kv").as_array()) {
    model.kv.push_back({std::string(text_of(kv.as_object(), "key")), value_of(kv.as_object())});
  }
  for (const json::value& item : output.at("tensors").as_array()) {
    const json::object& tensor = item.as_object();
    quantize::GgufTensor made{std::string(text_of(tensor, "name")),
                              *tensor_type_from_name(text_of(tensor, "type")),
                              {},
                              nullptr};
    for (const json::value& n : tensor.at("ne").as_array()) {
      made.ne.push_back(n.to_number<std::uint64_t>());
    }
    model.tensors.push_back(std::move(made));
  }
  return model;
}

Result<quantize::QuantizeRequest> request_of(const GoldenCase& golden, const json::object& run,
                                             bool& dry_run) {
  quantize::QuantizeRequest request;
  const auto target = quantize::parse_target_name(text_of(run, "type"));
  if (!target) return fail(Errc::invalid_argument, "no such target");
  request.recipe.target = *target;
  request.only_copy = *target == "COPY";
  MODELD_TRY(ArgvReader(golden, run.at("argv").as_array()).read(request, dry_run));
  return request;
}

} // namespace modeld::test
