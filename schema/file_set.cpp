// SPDX-License-Identifier: Apache-2.0
#include "schema/file_set.hpp"

#include <algorithm>

namespace modeld {

bool FileSet::contains(std::string_view path) const {
  const auto& all = entries();
  const auto at = std::lower_bound(all.begin(), all.end(), path,
                                   [](const Entry& e, std::string_view p) { return e.path < p; });
  return at != all.end() && at->path == path;
}

} // namespace modeld
