// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/error.hpp"

#include <tl/expected.hpp>

#include <string>
#include <utility>

namespace modeld {

/// A value, or why there is none. Named once, here: std::expected is absent from C++20.
template <class T>
using Result = tl::expected<T, Error>;

/// `return fail(Errc::malformed, "reading 'x': ...");`
inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}
inline tl::unexpected<Error> fail(Errc code, std::string message, std::string hint = {}) {
  return fail(Error{code, std::move(message), std::move(hint), {}, 0});
}

} // namespace modeld

// Returns the error of a Result<...> expression from the calling function.
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): a return cannot be written as a function.
#define MODELD_TRY(expression)                                                                     \
  do {                                                                                             \
    if (auto modeld_try_result = (expression); !modeld_try_result)                                 \
      return ::modeld::fail(std::move(modeld_try_result).error());                                 \
  } while (false)

// NOLINTBEGIN(bugprone-macro-parentheses): a declaration cannot stand in parentheses.
// `MODELD_ASSIGN(auto header, parse(bytes));` declares or assigns the value, or returns the error.
#define MODELD_ASSIGN(target, expression)                                                          \
  MODELD_ASSIGN_IMPL(MODELD_ASSIGN_NAME(modeld_result_, __LINE__), target, expression)
#define MODELD_ASSIGN_NAME(prefix, line) MODELD_ASSIGN_NAME_IMPL(prefix, line)
#define MODELD_ASSIGN_NAME_IMPL(prefix, line) prefix##line
#define MODELD_ASSIGN_IMPL(name, target, expression)                                               \
  auto name = (expression);                                                                        \
  if (!name) return ::modeld::fail(std::move(name).error());                                       \
  target = std::move(*name)
// NOLINTEND(bugprone-macro-parentheses)
