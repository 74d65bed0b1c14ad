// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/file_set.hpp"
#include "schema/progress.hpp"
#include "validate/checkpoint_plan.hpp"
#include "validate/finding.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::validate {

struct CheckOptions {
  Profile profile = Profile::strict;
  bool data = false;    ///< scan tensor data too (BD)
  unsigned threads = 1; ///< files at once
  Limits limits = {};
  Progress* progress = nullptr; ///< bytes of tensor data; cancel ends the scan
  PlanCheckpoint plan = {};     ///< of families that are known; empty: Llama's kind alone
};

/// What was found in one file of a set.
struct CheckedFile {
  std::string path; ///< in the set; "." for what concerns the set as a whole
  std::string
      format; ///< "safetensors", "gguf", "safetensors-index", "json", "pickle", "other", ...
  Report report;
};

/// Everything about a repository or folder: each file by itself, then shards against their index,
/// split files against each other, and configuration, tokenizer and weights against each other
/// (validation.md 1 to 5). Files with an error are left out of what builds on them. Sorted by path.
std::vector<CheckedFile> check_repository(const FileSet& files, const CheckOptions& options);

/// "accept", "warn", "reject".
std::string_view verdict(const Report& report);

} // namespace modeld::validate
