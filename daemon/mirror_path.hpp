// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Paths of the Hub's own read routes (hub-protocol.md, appendix B).

namespace modeld::daemon {

struct MirrorPath {
  enum class Kind {
    info,       ///< /api/models/R[/revision/REV]
    tree,       ///< /api/models/R/tree/REV[/SUB]
    refs,       ///< /api/models/R/refs
    paths_info, ///< /api/models/R/paths-info/REV
    auth_check, ///< /api/models/R/auth-check
    resolve,    ///< /R/resolve/REV/PATH
    raw,        ///< /R/raw/REV/PATH
    whoami,     ///< /api/whoami-v2
    other,      ///< nothing that we have; answered at once
  };
  Kind kind = Kind::other;
  std::string repo;              ///< decoded
  std::vector<std::string> rest; ///< parts behind the marker, each decoded once
};

/// Splits the raw path at its slashes first and decodes each part once afterwards, since a revision
/// may hold an encoded slash. Nothing for a broken escape.
std::optional<MirrorPath> parse_mirror_path(std::string_view raw);

} // namespace modeld::daemon
