// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/file_set.hpp"
#include "schema/result.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace modeld::validate {

/// What a checkpoint becomes by the rules of its family: names, shapes and metadata that its
/// configuration makes, so that one table of architectures serves checkpoints and GGUF files.
/// Whoever knows the families makes it.
struct CheckpointPlan {
  /// Something that the rules cannot do with a tensor.
  struct Fault {
    enum class Kind {
      unknown, ///< the family has no such tensor
      misfit,  ///< its shape is not one that the configuration allows for
      missing, ///< it belongs to others that are there
      unable,  ///< the rule does not work on it for a reason that is not the checkpoint's
      packed,  ///< a part of a quantized weight is missing
    };
    Kind kind = Kind::unknown;
    std::string tensor;  ///< name in the checkpoint; empty for a quantized weight
    std::string message; ///< of a misfit and a quantized weight: why
  };

  std::string family; ///< for people
  /// Of the GGUF file: metadata without vocabulary, tensors. Empty where faults left none.
  std::vector<std::byte> header;
  std::uint64_t size = 0; ///< of the whole GGUF file
  /// Of each tensor of the header: names in the checkpoint.
  std::vector<std::vector<std::string>> sources;
  std::vector<Fault> faults;
};

/// An error where the family is unknown or has no rules for such a checkpoint; that is no finding.
using PlanCheckpoint = std::function<Result<CheckpointPlan>(const FileSet& files)>;

} // namespace modeld::validate
