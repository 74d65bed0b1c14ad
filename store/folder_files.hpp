// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/file_set.hpp"
#include "schema/result.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace modeld::store {

/// A file of a set, and where its bytes are.
struct FilePlace {
  std::string path;            ///< in the set
  std::filesystem::path where; ///< on the disk, absolute
  std::uint64_t size = 0;
};

/// A FileSet over files anywhere on the disk, each mapped on first use. Sorts by path; the caller
/// gives each path once.
std::unique_ptr<FileSet> make_file_set(std::string name, std::vector<FilePlace> places);

/// The files below a folder, hidden ones left out. Symbolic links are followed only to files that
/// stay inside the folder, or from `snapshots/<commit>/` of a Hugging Face cache into its `blobs/`;
/// others are an error that names link and target (denied). At most 100,000 files, 32 levels. name:
/// the folder's own name; for a Hugging Face cache the repository's.
Result<std::unique_ptr<FileSet>> open_folder(const std::filesystem::path& folder);

/// Something in a folder that is no file of the set, and why.
struct LeftOut {
  std::string path; ///< relative to the folder
  Error why;
};
/// The same, for one who wants the rest all the same: links that lead out or nowhere, subfolders
/// that cannot be read, and what is neither file nor folder are listed instead.
Result<std::unique_ptr<FileSet>> open_folder(const std::filesystem::path& folder,
                                             std::vector<LeftOut>& left_out);

} // namespace modeld::store
