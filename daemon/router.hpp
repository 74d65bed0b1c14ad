// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/http.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::daemon {

/// What answers one method of one path. Called on a handler thread; may block on the index, not on
/// network, hashing or computing.
using Handler = std::function<Result<Response>(const Request&)>;

/// Finds the handler of a request. Filled before the first request, then only read: any thread.
///
/// A pattern is a path with `{name}` for one part and, at its end or before fixed parts,
/// `{name...}` for one or more parts (a ref has slashes). Matching is on the raw path; parts are
/// decoded once, afterwards. The first pattern that matches wins.
class Router {
public:
  void add(std::string method, std::string pattern, Handler handler);

  /// Exceptions of a handler become internal. not_found for a path without a pattern (404), 405
  /// with Allow for a method that the path does not have.
  Response handle(Request request) const;

  struct Entry {
    std::string method;
    std::string pattern;
  };
  /// All routes, for comparison with the contract.
  std::vector<Entry> entries() const;

private:
  struct Route {
    std::string method;
    std::string pattern;
    std::vector<std::string> parts;
    Handler handler;
  };
  std::vector<Route> routes_;
};

} // namespace modeld::daemon
