// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_model.hpp"
#include "schema/file_set.hpp"
#include "schema/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::quantize {

/// A GGUF file, or all parts of a split, as one model. The sources read from the files' bytes,
/// which must outlive them.
struct GgufSource {
  GgufModel model; ///< metadata of the first part; tensors in the order of the parts
  std::vector<std::uint16_t> parts; ///< the part that each tensor lies in
  std::vector<std::string> paths;   ///< of the parts
  std::uint64_t bytes = 0;          ///< of all parts
};

/// One file of any version and byte order; big-endian data comes out in our own order. malformed
/// where the file breaks the format.
Result<GgufModel> read_gguf_model(std::span<const std::byte> file, std::string_view path);

/// The file, and where split.count says so its other parts, which lie beside it under the usual
/// names. B08: a part that is missing, out of order or has other tensors than promised is an error
/// that names it; a start at any but the first part is refused.
Result<GgufSource> open_gguf_source(const FileSet& files, std::string_view path);

/// "name-00002-of-00003.gguf" for part 1 of 3.
std::string part_path(std::string_view prefix, std::size_t part, std::size_t count);

} // namespace modeld::quantize
