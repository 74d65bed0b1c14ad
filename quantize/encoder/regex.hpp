// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace modeld::quantize {

/// A compiled regular expression of tokenizer.json, in Oniguruma's syntax over UTF-8. Immutable;
/// any thread. A pattern that backtracks without end fails by a limit instead.
class EncoderRegex {
public:
  using Span = std::pair<std::size_t, std::size_t>; ///< begin and end in bytes

  static Result<EncoderRegex> compile(std::string_view pattern);
  /// All matches from left to right, without overlap; an empty one never right after another.
  Result<std::vector<Span>> find_all(std::string_view text) const;
  /// For patterns like "(a)|(b)": the number of the group that matches at the start, 0 for none.
  Result<int> first_group_at_start(std::string_view text) const;

private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

} // namespace modeld::quantize
