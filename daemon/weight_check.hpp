// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/file_set.hpp"
#include "schema/snapshot.hpp"

#include <vector>

namespace modeld::daemon {

/// Whether a repository can have a model to build, judged by the names of its files before any of
/// them is downloaded: not_found without weights, unsupported where they are pickles only.
Result<void> check_listed_weights(const RepoId& repo, const std::vector<ListedFile>& files);

/// Whether there is something that check_weights looks at.
bool has_weights(const Snapshot& snapshot);
/// Whether some of the safetensors files at the top are absent.
bool lacks_weights(const Snapshot& snapshot);

/// The safetensors headers of a folder and their index (ST, IX), and the heads of all GGUF files
/// (GG), before anything maps them for work. malformed names file and rule. Of a part of a set each
/// file is checked alone.
enum class WeightSet { whole, part };
Result<void> check_weights(const FileSet& files, WeightSet set = WeightSet::whole);

/// Whether the weights are 32 bit floats: what a quantization then goes through (design section 6).
Result<bool> weights_are_f32(const FileSet& files);

} // namespace modeld::daemon
