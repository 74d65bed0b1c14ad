// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <boost/json/object.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace modeld::quantize {

/// A token that is cut out of the text before the model sees it.
struct AddedToken {
  std::string content;
  bool special = false;
  bool normalized = true; ///< searched in the normalized text, not in the raw one
  bool lstrip = false;    ///< swallows the white space before it
  bool rstrip = false;
  bool single_word = false;

  bool operator==(const AddedToken&) const = default;
  /// Of tokenizer.json or of added_tokens_decoder: absent flags are false, absent "normalized"
  /// means that it is not special.
  static Result<AddedToken> parse(const boost::json::object& entry, std::string_view where);
};

/// Ids of a model's own tokens. Texts are borrowed.
using ModelIds = boost::unordered_flat_map<std::string_view, std::uint32_t>;

/// The added tokens, with the ids that the library gives them: a token that the model knows keeps
/// the model's id, any other gets the next one in the order of adding. Ids in files do not count.
class AddedTokens {
public:
  /// Adds, or changes the flags of one that is there. Does nothing for an empty content.
  void add(AddedToken token, const ModelIds& model);
  std::optional<std::uint32_t> id_of(std::string_view content) const;
  const std::map<std::uint32_t, AddedToken>& by_id() const { return by_id_; }
  bool holds(const AddedToken& token) const;
  /// Those to be searched in a text, special ones first, with the flags that they were first added
  /// with: where to search is not changed later, what a match swallows is.
  std::vector<AddedToken> to_search() const;

private:
  std::map<std::uint32_t, AddedToken> by_id_;
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<AddedToken> special_, others_;
};

} // namespace modeld::quantize
