// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/progress.hpp"
#include "schema/result.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>

// Checks of files on this machine, without the daemon: the files are opened here and read in a
// worker (design rule 4).

namespace modeld::daemon {

struct LocalCheck {
  std::string name; ///< of the model, where it is not that of its folder
  bool findings = true;
  std::string profile = "strict"; ///< or "compat"
  bool data = false;              ///< tensor data too
  unsigned threads = 1;
  bool estimate = false;
  std::uint64_t context = 0; ///< tokens, for the estimate; 0: the usual
};

/// {"files":[...],"estimate"|"no_estimate":{...}} about a file or folder (check_report.hpp,
/// estimate.hpp). A path that is there but cannot be checked is a finding. not_found where nothing
/// is there; cancelled.
Result<boost::json::object> check_local(const std::string& path, const LocalCheck& how,
                                        Progress& progress);

} // namespace modeld::daemon
