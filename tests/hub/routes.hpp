// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/hub/http_message.hpp"
#include "tests/hub/repositories.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace modeld::test {

/// What the routes need to know of the Hub that they answer for.
struct RouteContext {
  std::string endpoint;      ///< "http://127.0.0.1:1234/prefix"
  std::string prefix;        ///< path of the endpoint, "" or "/hf"
  std::string data_endpoint; ///< origin of the storage
  std::size_t page_size = 1000;
  std::int64_t signed_ttl = 3600;    ///< seconds that a signed address is good for
  std::function<std::int64_t()> now; ///< Unix seconds
};

/// The Hub's read routes (hub-protocol.md sections 1 and 2) over one state of the repositories.
/// Pure: a request in, an answer out.
class Routes {
public:
  Routes(const RouteContext& context, std::shared_ptr<const Repositories> repositories)
      : context_(context), repositories_(std::move(repositories)) {}

  Answer answer(const Request& request) const;

private:
  /// A repository that the caller may see, or the answer that says why not.
  struct Access {
    const HubRepository* repository = nullptr;
    Answer refusal;
  };
  enum class Need { metadata, content };

  Access open(const Request& request, const std::string& id, Need need) const;
  Answer api(const Request& request, std::string_view rest) const;
  Answer repo_route(const Request& request, const std::string& id, std::string_view marker,
                    std::string_view rest) const;
  Answer info(const Request& request, const HubRepository& repository,
              std::string_view revision) const;
  Answer tree(const Request& request, const HubRepository& repository, std::string_view rest) const;
  Answer refs(const Request& request, const HubRepository& repository) const;
  Answer paths_info(const Request& request, const HubRepository& repository,
                    std::string_view revision) const;
  Answer commits(const HubRepository& repository, std::string_view revision) const;
  Answer resolve(const Request& request, const std::string& id, std::string_view rest) const;
  Answer raw(const Request& request, const std::string& id, std::string_view rest) const;
  Answer resolve_cache(const Request& request, std::string_view rest) const;
  Answer data(const Request& request) const;
  Answer moved(const Request& request, const std::string& from, const std::string& to) const;
  std::string sign(const HubRepository& repository, const HubFile& file) const;

  const RouteContext& context_;
  std::shared_ptr<const Repositories> repositories_;
};

/// JSON {"error": message} with X-Error-Code (where not empty) and X-Error-Message.
Answer error_answer(unsigned status, std::string_view code, std::string_view message);
/// Revision and path out of "rev/pa/th": the longest known name first, then one part. The path is
/// decoded; nothing where an escape is broken.
std::optional<std::pair<std::string, std::string>> split_revision(const HubRepository& repository,
                                                                  std::string_view rest);
/// 200, 206, 304 or 416 for a file, as If-None-Match, If-Range and Range ask for.
Answer file_answer(const Request& request, const HubFile& file, const std::string& etag);

} // namespace modeld::test
