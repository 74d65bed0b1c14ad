// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/finding.hpp"
#include "validate/gguf.hpp"

#include <span>
#include <string_view>
#include <vector>

// Split files: `<prefix>-00001-of-00003.gguf` and the keys split.no, split.count and
// split.tensors.count. Rules SP-01 to SP-10 (validation.md 2.6).

namespace modeld::validate {

/// One file that may be a part of a split; its header was accepted.
struct SplitPart {
  std::string_view path;
  const GgufHeader* header = nullptr;
};

/// Whether the name is that of a piece of a file that was cut by bytes, not by tensors (SP-10).
bool is_byte_split_name(std::string_view path);

/// Sorts the files of a folder into sets and checks each set; findings go to the part that they are
/// about. Returns the sets that are whole, each in order, single files included.
std::vector<std::vector<SplitPart>> check_splits(std::span<const SplitPart> parts, Report& report);

} // namespace modeld::validate
