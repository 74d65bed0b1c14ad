// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/model_ref.hpp"
#include "schema/snapshot.hpp"

#include <boost/json/object.hpp>

#include <string>
#include <string_view>
#include <vector>

// What a pull has to tell beside its result: what was chosen, what moved. In a job's result under
// "pull", so that it is kept with the job; modelctl prints it.

namespace modeld::daemon {

/// {"why","files","bytes","left","left_bytes","left_paths"}: what was taken of a listing, and why
/// ("conversion", "patterns").
boost::json::object choice_report(std::string_view why, const std::vector<ListedFile>& listing,
                                  const std::vector<ListedFile>& chosen);

/// {"revision","from","to","added","removed","changed"}: a branch or tag that meant another commit
/// at the last look. The lists of paths are empty where the old files are not known any more.
boost::json::object moved_report(std::string_view revision, const GitOid& from, const GitOid& to,
                                 const std::vector<ListedFile>& before,
                                 const std::vector<ListedFile>& after);

/// {"from","to"}
boost::json::object renamed_report(const RepoId& from, const RepoId& to);

/// The same for people: one line each. `result` is that of a pull or a variant.
std::vector<std::string> pull_report_lines(const boost::json::object& result);

} // namespace modeld::daemon
