// SPDX-License-Identifier: Apache-2.0
#include "validate/sniff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace modeld::validate {
namespace {

using K = ContentKind;

constexpr std::string_view k_convert =
    "look for a safetensors copy, or convert it in an isolated place";
constexpr std::string_view k_old_ggml =
    "re-download the model as GGUF; an unquantized one can be converted from GGML to GGUF";

struct KindInfo {
  ContentKind kind;
  std::string_view what;
  std::string_view rule; ///< of the finding where the kind is not the one expected
  std::string_view hint;
};

constexpr std::array k_kinds{
    KindInfo{K::unknown, "of an unknown kind", "GN-03", ""},
    KindInfo{K::empty, "empty", "GN-02", "download it again"},
    KindInfo{K::safetensors, "a safetensors file", "GN-03", ""},
    KindInfo{K::gguf, "a GGUF file", "GN-03", ""},
    KindInfo{K::json, "a JSON text", "GN-03", ""},
    KindInfo{K::text, "a plain text", "GN-03", ""},
    KindInfo{K::lfs_pointer, "a Git LFS pointer, not the file itself", "GN-04",
             "run `git lfs pull` in the folder, or download it with the Hub's own protocol"},
    KindInfo{K::error_page, "an error page that was saved as a file", "GN-05",
             "download it again; check the address and the token"},
    KindInfo{K::gzip, "a gzip archive", "GN-06", "unpack the archive first"},
    KindInfo{K::xz, "an xz archive", "GN-06", "unpack the archive first"},
    KindInfo{K::zstd, "a zstd archive", "GN-06", "unpack the archive first"},
    KindInfo{K::bzip2, "a bzip2 archive", "GN-06", "unpack the archive first"},
    KindInfo{K::lz4, "an lz4 archive", "GN-06", "unpack the archive first"},
    KindInfo{K::seven_zip, "a 7z archive", "GN-06", "unpack the archive first"},
    KindInfo{K::rar, "a rar archive", "GN-06", "unpack the archive first"},
    KindInfo{K::zip, "a zip archive", "GN-06", "unpack the archive first"},
    KindInfo{K::tar, "a tar archive", "GN-06", "unpack the archive first"},
    KindInfo{K::torch_zip, "a PyTorch checkpoint (a zip archive with a pickle)", "PK-01",
             k_convert},
    KindInfo{K::torch_legacy, "an old PyTorch checkpoint (a stream of pickles)", "PK-01",
             k_convert},
    KindInfo{K::torch_tar, "a PyTorch 0.1 checkpoint (a tar archive with pickles)", "PK-01",
             k_convert},
    KindInfo{K::pickle, "a Python pickle", "PK-01", k_convert},
    KindInfo{K::joblib, "a zlib stream, as joblib wraps around a pickle", "PK-01", k_convert},
    KindInfo{K::numpy, "a NumPy array file", "PK-01", k_convert},
    KindInfo{K::npz, "a zip archive of NumPy arrays", "PK-01", k_convert},
    KindInfo{K::hdf5, "an HDF5 file, as Keras writes it; it may carry code", "PK-01", k_convert},
    KindInfo{K::onnx, "an ONNX model, which is not supported", "GN-03", ""},
    KindInfo{K::llamafile, "a llamafile (a program and a zip archive in one)", "GN-03",
             "take the GGUF file that is inside of it"},
    KindInfo{K::executable, "a program", "GN-03", ""},
    KindInfo{K::ggml, "an unversioned GGML file from before GGUF, or a whisper.cpp model", "LM-01",
             "re-download the model as GGUF; a whisper model runs in whisper.cpp"},
    KindInfo{K::ggmf, "a GGMF file (GGML version 1) from before GGUF", "LM-01", k_old_ggml},
    KindInfo{K::ggjt, "a GGJT file from before GGUF", "LM-01", k_old_ggml},
    KindInfo{K::ggla, "an old LoRA adapter (GGLA)", "LM-01", "convert the adapter again"},
    KindInfo{K::ggml_state, "a saved session of a runtime, not a model", "LM-01",
             "never load such a file from somebody else"},
    KindInfo{K::gguf_swapped, "a GGUF file with a byte-swapped magic, from a broken writer",
             "GG-01", "big-endian files start with 'GGUF' too; write it again"},
};

const KindInfo& row(ContentKind kind) {
  return *std::find_if(k_kinds.begin(), k_kinds.end(),
                       [&](const KindInfo& info) { return info.kind == kind; });
}

/// The GGJT message names the version: some of them can be converted, some cannot.
std::string detail(const FileEnds& ends, ContentKind kind) {
  if (kind != K::ggjt || ends.head.size() < 8) return {};
  const auto version = std::to_integer<unsigned>(ends.head[4]);
  return fmt::format(", version {}: {}", version,
                     version >= 3 ? "it can be converted"
                                  : "its quantized tensors changed later and cannot be converted");
}

} // namespace

std::string_view describe(ContentKind kind) {
  return row(kind).what;
}

bool report_wrong_content(const FileEnds& ends, ContentKind expected, Report& report) {
  const ContentKind kind = sniff(ends);
  // What is not recognised goes to the parser, which says exactly where it stops.
  if (kind == expected || kind == K::unknown) return false;
  if (expected == K::safetensors && kind == K::text && ends.size < 8) return false;
  if (expected == K::json && (kind == K::text || kind == K::safetensors)) return false;
  const KindInfo& info = row(kind);
  report.error(info.rule, 0, fmt::format("the file is {}{}", info.what, detail(ends, kind)),
               std::string(info.hint));
  if (info.rule.starts_with("PK") && expected != K::unknown)
    report.error("GN-03", 0, fmt::format("the name promises {}", row(expected).what));
  return true;
}

bool is_unsafe_weight_name(std::string_view path) {
  // Not ".model": vocabularies have that name, and a pickle of that name is known by its content.
  constexpr std::array<std::string_view, 20> k_extensions{
      ".bin",    ".pt",   ".pth",      ".ckpt", ".pkl", ".pickle", ".p",
      ".joblib", ".dill", ".dat",      ".npy",  ".npz", ".h5",     ".hdf5",
      ".keras",  ".pb",   ".pdparams", ".ot",   ".mar", ".data"};
  return std::any_of(k_extensions.begin(), k_extensions.end(),
                     [&](std::string_view extension) { return path.ends_with(extension); });
}

} // namespace modeld::validate
