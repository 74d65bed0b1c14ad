// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"
#include "schema/snapshot.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::fetch {

/// Which files of a listing to fetch. Pure functions over the listing, before any byte is asked
/// for.

/// Shell patterns as `--include` and `--exclude` take them, with huggingface_hub's meaning: '*' and
/// '?' match '/' too, [abc] and [!abc] are sets, a pattern that ends in '/' means all below. No
/// include pattern: everything. not_found where nothing is left of a listing that had files (C12).
Result<std::vector<ListedFile>> select_by_patterns(std::span<const ListedFile> files,
                                                   std::span<const std::string> include,
                                                   std::span<const std::string> exclude);
bool matches_pattern(std::string_view pattern, std::string_view path);

/// What a conversion needs.
struct ConversionFiles {
  std::vector<ListedFile> files;    ///< weights, config, tokenizer, templates, licence; sorted
  std::vector<std::string> weights; ///< paths of the weights among them
  std::vector<std::string> left;    ///< weight files that were left out, for the record
};

/// Path of the shard index that select_for_conversion wants to see, if the repository has one.
std::optional<std::string> weight_index_of(std::span<const ListedFile> files);

/// With an index: exactly the files that it names (A14), malformed or not_found (with all the
/// missing names) otherwise. Without: model.safetensors, or one complete set of
/// model-NNNNN-of-MMMMM.safetensors; several candidates are refused as conflict. unsupported where
/// the weights exist in pickle only or in GGUF only; not_found where there are none.
Result<ConversionFiles> select_for_conversion(std::span<const ListedFile> files,
                                              std::optional<std::string_view> index_json);

/// What a GGUF repository offers for a tag.
struct GgufFiles {
  std::vector<ListedFile> parts;       ///< one file, or all parts of a split, in order
  std::optional<ListedFile> projector; ///< the mmproj file that belongs to it, where there is one
};

/// `user/repo:tag` as llama.cpp's -hf reads it (hub-protocol.md 5.1, 5.5, C21, C22): the tag is a
/// whole token of the name between '-', '.' or '/', in any case; the file's last token wins over
/// others. Without a tag: Q4_K_M, then Q8_0, then the only model. A tag that ends in .gguf is a
/// path, and any part of a split means all of it. not_found with the choice listed where nothing
/// fits or a part is missing, conflict where several do.
Result<GgufFiles> select_gguf(std::span<const ListedFile> files, std::string_view tag);

/// Whether the repository holds model files in GGUF.
bool has_gguf(std::span<const ListedFile> files);

/// Paths that a view on a file system may not tell apart: equal when case is folded (ASCII). Each
/// group has two or more.
std::vector<std::vector<std::string>> case_collisions(std::span<const ListedFile> files);

} // namespace modeld::fetch
