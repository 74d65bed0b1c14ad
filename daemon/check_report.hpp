// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/output.hpp"
#include "schema/file_set.hpp"
#include "schema/result.hpp"
#include "validate/repository.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Findings on their way from the worker that made them to the user: one JSON object for each file,
// {"path","format","verdict","findings":[{"id","severity","offset","message","hint"?}],
// "more_findings"?}. All text in them is escaped.

namespace modeld::daemon {

boost::json::object check_json(const validate::CheckedFile& file);

/// Adds a finding to a file's object, an error: it is rejected from then on.
void add_error(boost::json::object& file, std::string_view rule, std::string_view message,
               std::string_view hint);

struct CheckTotals {
  std::size_t files = 0;
  std::size_t rejected = 0;
  std::size_t warned = 0;
};
CheckTotals count(const boost::json::array& files);

/// For people; with `all` files without findings and notes too. malformed where the array is not
/// as above.
Result<void> print_check(Output& out, const boost::json::array& files, bool all);

} // namespace modeld::daemon
