// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/file_set.hpp"
#include "schema/recipe.hpp"
#include "schema/result.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::daemon {

/// What a worker is asked to do. Goes over the channel as JSON, in pieces, closed by an empty one.
struct WorkerRequest {
  enum class Task {
    check,        ///< headers and index of the weights, as a pull does
    check_each,   ///< headers of weights of which a part is absent, each file alone
    architecture, ///< whether config.json names one that can be converted
    build,        ///< convert, quantize and write
    report,       ///< all findings, and on request an estimate: CheckReport as JSON
    inspect,      ///< what one file says about itself, as text
    measure,      ///< how long the headers of files are of which only a beginning is there
    audit,        ///< an account of every tensor of a checkpoint and of its conversion: audit.hpp
    facts,        ///< what other programs want to be told about one GGUF file: GgufFacts as JSON
  };
  Task task = Task::check;
  std::string name;                  ///< of the repository, without the organisation
  std::vector<FileSet::Entry> files; ///< sorted by path
  Recipe recipe;                     ///< of a build
  boost::json::object options;       ///< of the other tasks: what they read (worker_tasks.hpp)
  std::uint32_t threads = 1;
  std::uint64_t memory = 4ULL << 30U; ///< bytes that the process may have of its own

  std::string to_json() const;
  static Result<WorkerRequest> from_json(std::string_view text);
};

/// Longest request: the listing of a million files.
inline constexpr std::size_t k_max_worker_request = 256U << 20;

} // namespace modeld::daemon
