// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/special_tokens_loader.hpp"

#include "quantize/encoder/utf8_text.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>

// A template processor is read for its first and last special token, and for the separator
// between two texts. More the format of GGUF cannot say.

namespace modeld::quantize {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

tl::unexpected<Error> broken(std::string_view cause) {
  return fail(Errc::malformed, fmt::format("reading 'tokenizer.json': {}", cause));
}

const object* object_member(const object& in, std::string_view name) {
  const auto* found = in.if_contains(name);
  return found == nullptr ? nullptr : found->if_object();
}

const array* array_member(const object& in, std::string_view name) {
  const auto* found = in.if_contains(name);
  return found == nullptr ? nullptr : found->if_array();
}

/// {"SpecialToken": {"id": "<s>"}} gives "<s>"; anything else an empty text.
std::string_view entry_id(const value& entry, std::string_view kind) {
  const auto* outer = entry.if_object();
  const auto* inner = outer == nullptr ? nullptr : object_member(*outer, kind);
  return inner == nullptr ? std::string_view() : text_member(*inner, "id").value_or("");
}

bool is_text(const value& held, std::string_view text) {
  return held.is_string() && std::string_view(held.get_string()) == text;
}

/// A space inside one side of a merge is written as the byte-level letter for it.
void append_part(std::string& out, std::string_view part) {
  for (const char c : part) {
    if (c == ' ') {
      out += "\xC4\xA0"; // U+0120
    } else {
      out += c;
    }
  }
}

} // namespace

const value* SpecialTokens::Loader::setting(std::string_view key) const {
  if (const auto at = changed_.find(key); at != changed_.end()) return &at->second;
  return config_ == nullptr ? nullptr : config_->if_contains(key);
}

void SpecialTokens::Loader::set_flag(std::string_view type, bool flag) {
  auto& flags = out_.flags_;
  const auto at = std::find_if(flags.begin(), flags.end(),
                               [&](const auto& each) { return each.first == type; });
  if (at != flags.end()) {
    at->second = flag;
  } else {
    flags.emplace_back(type, flag);
  }
}

bool SpecialTokens::Loader::has_type(std::string_view type) const {
  return std::find(out_.types_.begin(), out_.types_.end(), type) != out_.types_.end();
}

Result<void> SpecialTokens::Loader::run() {
  MODELD_ASSIGN(tokenizer_, files_.object("tokenizer.json"));
  MODELD_ASSIGN(config_, files_.object("tokenizer_config.json"));
  if (tokenizer_ != nullptr) {
    if (merges_ == Merges::load) MODELD_TRY(read_merges(*tokenizer_));
    if (const auto* normalizer = object_member(*tokenizer_, "normalizer")) {
      read_normalizer(*normalizer, 0);
    }
  }
  if (tokenizer_ != nullptr && !tokenizer_->empty()) {
    stand_in_for_missing();
    const auto* processor = object_member(*tokenizer_, "post_processor");
    if (processor != nullptr && !processor->empty()) MODELD_TRY(read_post_processor(*processor));
  }
  if (has_config()) {
    MODELD_ASSIGN(out_.chat_template_, load_chat_template(files_, *config_, out_.warnings_));
    MODELD_TRY(read_ids_by_text());
  }
  MODELD_TRY(read_ids_of_config());
  if (merges_ == Merges::load && out_.merges_.empty()) MODELD_TRY(read_merges_txt());
  return {};
}

Result<void> SpecialTokens::Loader::read_merges(const object& tokenizer) {
  const auto* model = object_member(tokenizer, "model");
  const auto* list = model == nullptr ? nullptr : array_member(*model, "merges");
  if (list == nullptr || list->empty()) return {};
  const bool pairs = list->front().is_array();
  if (!pairs && !list->front().is_string()) return broken("merges are neither texts nor pairs");
  out_.merges_.reserve(list->size());
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto& merge = (*list)[i];
    if (!pairs && merge.is_string()) {
      out_.merges_.emplace_back(merge.get_string());
      continue;
    }
    const auto* pair = pairs ? merge.if_array() : nullptr;
    if (pair == nullptr || pair->size() != 2 || !(*pair)[0].is_string() ||
        !(*pair)[1].is_string()) {
      return broken(fmt::format("merge {} is not of the form of the first", i));
    }
    std::string& text = out_.merges_.emplace_back();
    append_part(text, (*pair)[0].get_string());
    text += ' ';
    append_part(text, (*pair)[1].get_string());
  }
  return {};
}

Result<void> SpecialTokens::Loader::read_merges_txt() {
  if (!files_.has("merges.txt")) return {};
  MODELD_ASSIGN(const auto text, files_.text("merges.txt"));
  bool first = true;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const std::string_view line = stripped(std::string_view(text).substr(at, end - at));
    at = end + 1;
    const bool heading = std::exchange(first, false) && line.starts_with('#');
    const auto parts = split_at_spaces(line);
    // Anything but two parts is no merge; such lines are passed over.
    if (!heading && parts.size() == 2) {
      out_.merges_.push_back(fmt::format("{} {}", parts[0], parts[1]));
    }
  }
  return {};
}

void SpecialTokens::Loader::read_normalizer(const object& normalizer, unsigned depth) {
  constexpr unsigned k_max_depth = 32;
  const auto type = text_member(normalizer, "type").value_or("");
  const auto take = [&](std::string_view name, std::optional<bool>& into) {
    if (const auto* found = normalizer.if_contains(name)) {
      into = found->is_bool() ? std::optional(found->get_bool()) : std::nullopt;
    }
  };
  if (type == "Lowercase") {
    out_.lowercase_ = true;
  } else if (type == "StripAccents") {
    out_.strip_accents_ = true;
  } else if (type == "BertNormalizer") {
    take("lowercase", out_.lowercase_);
    take("strip_accents", out_.strip_accents_);
  } else if (type == "Sequence" && depth < k_max_depth) {
    const auto* parts = array_member(normalizer, "normalizers");
    if (parts == nullptr) return;
    for (const auto& part : *parts) {
      if (const auto* inner = part.if_object()) read_normalizer(*inner, depth + 1);
    }
  }
}

/// cls and sep stand in for bos and eos.
void SpecialTokens::Loader::stand_in_for_missing() {
  const auto copy = [this](std::string_view key) {
    const auto* found = config_ == nullptr ? nullptr : config_->if_contains(key);
    return found == nullptr ? value() : *found;
  };
  bos_ = copy("bos_token");
  cls_ = copy("cls_token");
  eos_ = copy("eos_token");
  sep_ = copy("sep_token");
  if (!has_config()) return;
  if (!is_truthy(&bos_) && is_truthy(&cls_)) changed_["bos_token"] = bos_ = cls_;
  if (!is_truthy(&eos_) && is_truthy(&sep_)) changed_["eos_token"] = eos_ = sep_;
}

Result<void> SpecialTokens::Loader::read_post_processor(const object& post_processor) {
  const auto read_one = [this](const object& processor) -> Result<void> {
    const auto type = text_member(processor, "type").value_or("");
    if (type == "RobertaProcessing") read_roberta(processor);
    if (type == "TemplateProcessing") return read_template(processor);
    return {};
  };
  const auto* parts = array_member(post_processor, "processors");
  if (parts == nullptr) return read_one(post_processor);
  for (const auto& part : *parts) {
    if (const auto* inner = part.if_object()) MODELD_TRY(read_one(*inner));
  }
  return {};
}

void SpecialTokens::Loader::read_roberta(const object& processor) {
  set_flag("bos", true);
  set_flag("eos", true);
  set_flag("sep", true);
  const auto stand_in = [&](std::string_view name, value& held, const value& other) {
    if (is_truthy(&held) || !has_config()) return;
    const auto* pair = array_member(processor, name);
    held = pair != nullptr && !pair->empty() ? pair->front() : other;
    changed_[fmt::format("{}_token", name)] = held;
  };
  stand_in("cls", cls_, bos_);
  stand_in("sep", sep_, eos_);
}

Result<void> SpecialTokens::Loader::read_template(const object& processor) {
  first_.clear();
  last_.clear();
  const auto* single = array_member(processor, "single");
  const auto* pair = array_member(processor, "pair");
  if (single != nullptr && single->size() > 1) MODELD_TRY(read_single(*single));
  if (pair != nullptr && !pair->empty()) MODELD_TRY(read_pair(*pair));
  return {};
}

Result<void> SpecialTokens::Loader::read_single(const array& single) {
  first_ = entry_id(single.front(), "SpecialToken");
  if (!first_.empty()) {
    const bool known = is_text(bos_, first_) || is_text(cls_, first_);
    if (!has_config()) {
      bos_ = boost::json::string(first_);
    } else if (!known) {
      const value first = boost::json::string(first_);
      if (!is_truthy(&bos_)) changed_["bos_token"] = bos_ = first;
      if (!is_truthy(&cls_)) changed_["cls_token"] = cls_ = first;
    }
    set_flag("bos", is_text(bos_, first_) || is_text(cls_, first_));
  }
  last_ = entry_id(single.back(), "SpecialToken");
  if (!last_.empty()) {
    if (!has_config()) {
      eos_ = boost::json::string(last_);
    } else if (!is_text(eos_, last_)) {
      replace_eos(last_);
    }
    set_flag("eos", is_text(eos_, last_));
  }
  return {};
}

/// The template ends in another token than the configured eos: that one becomes eot (or eom).
void SpecialTokens::Loader::replace_eos(std::string_view last) {
  for (const std::string_view type : {"eot", "eom"}) {
    if (has_type(type)) continue;
    out_.types_.emplace_back(type);
    changed_[fmt::format("{}_token", type)] = eos_;
    break;
  }
  changed_["eos_token"] = eos_ = boost::json::string(last);
}

/// [first] A sep [sep] B [last]: whether a separator is added between two texts.
Result<void> SpecialTokens::Loader::read_pair(const array& pair) {
  const bool skip_first = !first_.empty() && entry_id(pair.front(), "SpecialToken") == first_;
  const bool skip_last = !last_.empty() && entry_id(pair.back(), "SpecialToken") == last_;
  const std::size_t begin = skip_first ? 1 : 0;
  const std::size_t end = pair.size() - (skip_last ? 1 : 0);
  if (begin >= end || entry_id(pair[begin], "Sequence") != "A" ||
      entry_id(pair[end - 1], "Sequence") != "B" || end - begin < 3) {
    return {};
  }
  const auto is_separator = [&](std::size_t at) {
    const auto id = entry_id(pair[at], "SpecialToken");
    return !id.empty() && (is_text(sep_, id) || is_text(eos_, id));
  };
  const std::size_t middle = end - begin - 2;
  bool add = is_separator(begin + 1) && last_.empty();
  if (middle == 2 && is_separator(begin + 2)) add = true;
  set_flag("sep", add);
  if (add && !is_truthy(&sep_) && has_config()) changed_["sep_token"] = eos_;
  return {};
}

/// tokenizer_config.json names the token, the first of tokenizer.json's added tokens with that text
/// gives the id.
Result<void> SpecialTokens::Loader::read_ids_by_text() {
  const auto* added = tokenizer_ == nullptr ? nullptr : array_member(*tokenizer_, "added_tokens");
  // A copy: types_ is not touched below, but set_if_absent is a member of the same object.
  const Types types = out_.types_;
  for (const std::string& type : types) {
    const auto* flag = setting(fmt::format("add_{}_token", type));
    if (flag != nullptr && flag->is_bool()) set_flag(type, flag->get_bool());
    const auto* entry = setting(fmt::format("{}_token", type));
    if (entry == nullptr || added == nullptr) continue;
    std::optional<std::string_view> text;
    if (entry->is_string()) text = std::string_view(entry->get_string());
    if (const auto* inner = entry->if_object()) text = text_member(*inner, "content");
    if (!text) continue;
    for (const auto& each : *added) {
      const auto* token = each.if_object();
      if (token == nullptr || text_member(*token, "content") != text) continue;
      const auto id = whole_number(token->if_contains("id"));
      if (id) MODELD_TRY(out_.set_if_absent(type, *id));
      break;
    }
  }
  return {};
}

/// config.json fills in the types that are not set yet; a list of ids is left out.
Result<void> SpecialTokens::Loader::read_ids_of_config() {
  MODELD_ASSIGN(const auto* config, files_.object("config.json"));
  if (config == nullptr) return {};
  const Types types = out_.types_;
  for (const std::string& type : types) {
    const std::string key = fmt::format("{}_token_id", type);
    const auto* found = member(*config, key);
    const auto* nested = object_member(*config, "text_config");
    if (found == nullptr && nested != nullptr) found = member(*nested, key);
    if (const auto id = whole_number(found)) MODELD_TRY(out_.set_if_absent(type, *id));
  }
  return {};
}

} // namespace modeld::quantize
