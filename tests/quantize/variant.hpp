// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/memory_files.hpp"

#include <boost/json/object.hpp>

#include <filesystem>
#include <string>

// A variant of a golden case: the same repository with another configuration, other tensors, other
// files. variants.json lists them with the digests of the reference's files; record_variants.py,
// which made those, reads the same fields:
//
//   case     the golden case's folder
//   edit     [file, path, value] ...: sets a member of a JSON file; the path's parts are parted by
//            "/"; objects that are missing are made. A file that is missing is an empty object
//   unset    [file, path] ...: removes a member
//   write    {file: text}      remove  [file ...]      dir  another name for the repository
//   tensors  in this order: {"drop": glob}, {"add": name, "dtype", "shape"}, {"set": glob, "dtype"
//            and/or "shape"}, {"replace": text, "with": text} in all names, {"copy": text, "to":
//            text} of all tensors whose names hold the text. A glob has "*" only
//   shards   how many files; 1 where tensors are given
//   argv     options of the converter
//   sha256   of the reference's file, or error: the reference refuses
//   may_refuse  the reference's file is wrong; ours is equal with force

namespace modeld::test {

/// Throws where the variant does not fit its case.
MemoryFiles variant_snapshot(const std::filesystem::path& case_folder, const std::string& model_dir,
                             const boost::json::object& variant);

} // namespace modeld::test
