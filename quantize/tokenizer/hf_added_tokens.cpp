// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/hf_added_tokens.hpp"

#include "quantize/tokenizer/files.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace modeld::quantize {

Result<AddedToken> AddedToken::parse(const boost::json::object& entry, std::string_view where) {
  const auto content = text_member(entry, "content");
  if (!content) {
    return fail(Errc::malformed,
                fmt::format("reading '{}': an added token without a content", where));
  }
  const auto flag = [&](std::string_view name) { return is_truthy(entry.if_contains(name)); };
  AddedToken token;
  token.content = *content;
  token.special = flag("special");
  token.normalized = entry.contains("normalized") ? flag("normalized") : !token.special;
  token.lstrip = flag("lstrip");
  token.rstrip = flag("rstrip");
  token.single_word = flag("single_word");
  return token;
}

void AddedTokens::add(AddedToken token, const ModelIds& model) {
  if (token.content.empty()) return;
  const auto is_special = [&] {
    return std::any_of(special_.begin(), special_.end(),
                       [&](const AddedToken& t) { return t.content == token.content; });
  };
  if (token.special && !is_special()) special_.push_back(token);
  if (holds(token)) return;
  std::uint32_t id = 0;
  if (const auto known = id_of(token.content)) {
    id = *known;
  } else if (const auto own = model.find(token.content); own != model.end()) {
    id = own->second;
  } else {
    const auto next = static_cast<std::uint32_t>(model.size());
    const std::uint32_t last = by_id_.empty() ? 0 : by_id_.rbegin()->first;
    id = by_id_.empty() || (last < next && next != 0) ? next : last + 1;
  }
  if (!is_special()) others_.push_back(token);
  ids_.insert_or_assign(token.content, id);
  by_id_.insert_or_assign(id, std::move(token));
}

std::vector<AddedToken> AddedTokens::to_search() const {
  std::vector<AddedToken> out = special_;
  out.insert(out.end(), others_.begin(), others_.end());
  return out;
}

std::optional<std::uint32_t> AddedTokens::id_of(std::string_view content) const {
  const auto at = ids_.find(std::string(content));
  return at == ids_.end() ? std::nullopt : std::optional(at->second);
}

bool AddedTokens::holds(const AddedToken& token) const {
  const auto id = id_of(token.content);
  if (!id) return false;
  const auto at = by_id_.find(*id);
  return at != by_id_.end() && at->second == token;
}

} // namespace modeld::quantize
