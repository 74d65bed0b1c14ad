// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/config.hpp"
#include "quantize/convert/facts.hpp"

#include <boost/json.hpp>

#include <utility>

namespace json = boost::json;

namespace modeld::quantize {

const json::value* ConfigScope::find(std::string_view name) const {
  if (const auto at = locals_.find(name); at != locals_.end()) return &at->second;
  if (facts_ != nullptr) {
    if (const json::value* fact = facts_->if_contains(name)) return fact;
  }
  if (const json::value* value = values_->if_contains(name)) return value;
  return files_ == nullptr ? nullptr : find_large(name);
}

const json::value* ConfigScope::find_large(std::string_view name) const {
  const auto keep = [&](json::value value) {
    return &locals_.insert_or_assign(std::string(name), std::move(value)).first->second;
  };
  if (name == "readme" && files_->contains("README.md")) {
    const auto bytes = files_->bytes("README.md");
    if (!bytes) return nullptr;
    return keep(
        json::value(std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size())));
  }
  if (name == "added_tokens") return keep(added_tokens(*facts_, *files_));
  if (name == "tekken_special") return keep(tekken_special(*files_));
  const bool vocabulary = name == "tokenizer_vocab";
  if ((!vocabulary && name != "tokenizer_json_tokens") || !files_->contains("tokenizer.json")) {
    return nullptr;
  }
  const auto file = read_json_file(*files_, "tokenizer.json");
  if (!file) return nullptr;
  const json::object* model = member_object(*file, "model");
  const json::object* vocab = model == nullptr ? nullptr : member_object(*model, "vocab");
  if (vocabulary) return keep(vocab == nullptr ? json::value(nullptr) : json::value(*vocab));
  std::int64_t count = vocab == nullptr ? 0 : static_cast<std::int64_t>(vocab->size());
  const json::value* added = file->if_contains("added_tokens");
  if (added != nullptr && added->is_array()) {
    count += static_cast<std::int64_t>(added->get_array().size());
  }
  return keep(json::value(count));
}

void ConfigScope::set(std::string name, json::value value) {
  locals_.insert_or_assign(std::move(name), std::move(value));
}

} // namespace modeld::quantize
