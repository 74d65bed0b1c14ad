// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/file_set.hpp"
#include "schema/result.hpp"
#include "validate/checkpoint_plan.hpp"

namespace modeld::quantize {

/// A checkpoint as the rules of its family see it, also where parts of it are missing or of the
/// wrong shape. Reads headers and small files, no weights. Errors are those of convert(), but for
/// what becomes a fault of the plan.
Result<validate::CheckpointPlan> describe_checkpoint(const FileSet& files);

} // namespace modeld::quantize
