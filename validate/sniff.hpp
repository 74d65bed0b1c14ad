// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/finding.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// What a file is by its first and last bytes: rules GN, PK and LM (validation.md 0.6 and 5).
// Nothing here unpickles, unpacks or follows anything.

namespace modeld::validate {

enum class ContentKind : std::uint8_t {
  unknown,
  empty,
  safetensors, ///< framing only
  gguf,
  json, ///< starts like a JSON object or array
  text, ///< plain text of another kind
  lfs_pointer,
  error_page, ///< HTML or an error body
  gzip,
  xz,
  zstd,
  bzip2,
  lz4,
  seven_zip,
  rar,
  zip,
  tar,
  torch_zip,
  torch_legacy,
  torch_tar,
  pickle,
  joblib, ///< zlib-wrapped pickle
  numpy,
  npz,
  hdf5,
  onnx,
  llamafile,
  executable,
  ggml,        ///< lmgg
  ggmf,        ///< fmgg
  ggjt,        ///< tjgg
  ggla,        ///< algg
  ggml_state,  ///< nsgg, qsgg
  gguf_swapped ///< FUGG
};

/// Name for messages: "a Git LFS pointer", "a zip archive".
std::string_view describe(ContentKind kind);

/// The ends of a file: what sniffing looks at. `head` up to 4 KiB or more, `tail` the last 64 KiB
/// or less; both may be the same span.
struct FileEnds {
  std::span<const std::byte> head;
  std::span<const std::byte> tail;
  std::uint64_t size = 0;

  static FileEnds of(std::span<const std::byte> file);
};

ContentKind sniff(const FileEnds& ends);

/// Whether the bytes are framed like safetensors: a length that the format allows, then the start
/// of an object. The file may still be cut short.
bool framed_as_safetensors(const FileEnds& ends);

/// Adds the GN, PK or LM finding for content that is not what `expected` says; false where it is
/// the expected kind and should be parsed.
bool report_wrong_content(const FileEnds& ends, ContentKind expected, Report& report);

/// Whether a name's extension promises pickled or otherwise executable weights (validation.md 5.1).
bool is_unsafe_weight_name(std::string_view path);

} // namespace modeld::validate
