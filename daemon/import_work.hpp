// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/services.hpp"
#include "store/adopt.hpp"

#include <boost/json/object.hpp>

#include <filesystem>
#include <optional>

namespace modeld::daemon {

/// ImportRequest of the contract, checked as far as that needs no disk.
struct ImportRequest {
  std::filesystem::path path;               ///< absolute
  bool bundle = false;                      ///< a file that modelctl export made
  std::optional<store::AdoptSource> source; ///< nothing: to be recognised
  store::AdoptOptions options;

  static Result<ImportRequest> from_json(const boost::json::object& body);
};

/// The job. Result: ImportAnswer.
Result<boost::json::object> run_import(Services& services, Job& job);

} // namespace modeld::daemon
