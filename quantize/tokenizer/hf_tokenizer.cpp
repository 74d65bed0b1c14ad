// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/hf_tokenizer.hpp"

#include "quantize/tokenizer/hf_decoder.hpp"
#include "quantize/tokenizer/hf_tokenizer_loader.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace modeld::quantize {
namespace {

// Far above any vocabulary in use; ids also index arrays.
constexpr std::int64_t k_max_id = 1 << 25;

tl::unexpected<Error> broken(std::string cause) {
  return fail(Errc::malformed, fmt::format("reading 'tokenizer.json': {}", cause));
}

Result<std::uint32_t> token_id(const boost::json::value& value, std::string_view token) {
  const auto id = value.is_int64() ? std::optional(value.get_int64()) : std::nullopt;
  if (!id || *id < 0 || *id > k_max_id) {
    return broken(fmt::format("token '{}' has the id {}", token, boost::json::serialize(value)));
  }
  return static_cast<std::uint32_t>(*id);
}

} // namespace

Result<void> HfTokenizer::read_model_ids() {
  const auto* vocab = model_->if_contains("vocab");
  if (vocab != nullptr && vocab->is_object()) {
    ids_.reserve(vocab->get_object().size());
    for (const auto& [token, value] : vocab->get_object()) {
      MODELD_ASSIGN(const auto id, token_id(value, token));
      ids_.emplace(std::string_view(token), id);
    }
    return {};
  }
  // Unigram: pairs of a text and a score, in the order of the ids.
  if (vocab == nullptr || !vocab->is_array()) return broken("the model has no vocab");
  const auto& list = vocab->get_array();
  ids_.reserve(list.size());
  for (std::size_t id = 0; id < list.size(); ++id) {
    const auto* pair = list[id].if_array();
    if (pair == nullptr || pair->size() != 2 || !(*pair)[0].is_string() ||
        !(*pair)[1].is_number()) {
      return broken(fmt::format("entry {} of vocab is not a text with a score", id));
    }
    ids_.insert_or_assign(std::string_view((*pair)[0].get_string()),
                          static_cast<std::uint32_t>(id));
  }
  return {};
}

Result<void> HfTokenizer::read_definition(const boost::json::object& tokenizer) {
  const auto* model = tokenizer.if_contains("model");
  if (model == nullptr || !model->is_object()) return broken("there is no model");
  model_ = &model->get_object();
  const auto part = [&](std::string_view name) {
    const auto* found = tokenizer.if_contains(name);
    return found == nullptr ? boost::json::value() : boost::json::value(*found);
  };
  normalizer_ = part("normalizer");
  pre_tokenizer_ = part("pre_tokenizer");
  post_processor_ = part("post_processor");
  decoder_ = part("decoder");
  MODELD_TRY(read_model_ids());
  const auto* added = tokenizer.if_contains("added_tokens");
  if (added == nullptr || added->is_null()) return {};
  if (!added->is_array()) return broken("added_tokens is not a list");
  for (const auto& each : added->get_array()) {
    const auto* entry = each.if_object();
    if (entry == nullptr) return broken("an added token is not an object");
    MODELD_ASSIGN(auto token, AddedToken::parse(*entry, "tokenizer.json"));
    added_.add(std::move(token), ids_);
  }
  return {};
}

Result<HfTokenizer> HfTokenizer::load(TokenizerFiles& files, std::vector<std::string>& warnings) {
  return HfTokenizerLoader(files, warnings).run();
}

Result<HfTokenizer> HfTokenizer::load_plain(const boost::json::object& tokenizer) {
  HfTokenizer out;
  MODELD_TRY(out.read_definition(tokenizer));
  return out;
}

std::optional<std::uint32_t> HfTokenizer::id_of(std::string_view token) const {
  if (const auto added = added_.id_of(token)) return added;
  const auto at = ids_.find(token);
  return at == ids_.end() ? std::nullopt : std::optional(at->second);
}

std::vector<std::pair<std::uint32_t, std::string_view>> HfTokenizer::all_tokens() const {
  std::vector<std::pair<std::uint32_t, std::string_view>> out;
  out.reserve(ids_.size() + added_.by_id().size());
  for (const auto& [token, id] : ids_) {
    out.emplace_back(id, token);
  }
  for (const auto& [id, token] : added_.by_id()) {
    out.emplace_back(id, token.content);
  }
  return out;
}

std::uint32_t HfTokenizer::largest_id() const {
  std::uint32_t largest = added_.by_id().empty() ? 0 : added_.by_id().rbegin()->first;
  for (const auto& [token, id] : ids_) {
    largest = std::max(largest, id);
  }
  return largest;
}

std::string HfTokenizer::decode_one(std::string_view token) const {
  std::string text = decode_tokens(decoder_, {std::string(token)});
  return clean_up_ ? without_token_spaces(std::move(text)) : text;
}

} // namespace modeld::quantize
