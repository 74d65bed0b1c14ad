// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/file_set.hpp"
#include "schema/recipe.hpp"
#include "schema/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::daemon {

/// What a worker is asked to do. Goes over the channel as JSON, in pieces, closed by an empty one.
struct WorkerRequest {
  enum class Task {
    check, ///< headers and index of the weights
    build, ///< convert, quantize and write
  };
  Task task = Task::check;
  std::string name;                   ///< of the repository, without the organisation
  std::vector<FileSet::Entry> files;  ///< sorted by path
  Recipe recipe;                      ///< of a build
  std::uint32_t threads = 1;          ///< of a build
  std::uint64_t memory = 4ULL << 30U; ///< bytes that the process may have of its own

  std::string to_json() const;
  static Result<WorkerRequest> from_json(std::string_view text);
};

/// Longest request: the listing of a million files.
inline constexpr std::size_t k_max_worker_request = 256U << 20;

} // namespace modeld::daemon
