// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/digest.hpp"
#include "schema/model_ref.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld {

/// A file as the Hub lists it. Large files come with their SHA-256, small ones with the git id of
/// their content only.
struct ListedFile {
  std::string path;
  std::uint64_t size = 0;
  GitOid git_oid;                     ///< of the pointer file where sha256 is set
  std::optional<Sha256Digest> sha256; ///< LFS object id

  bool operator==(const ListedFile&) const = default;
};

/// A file that we hold and have proved.
struct SnapshotFile {
  std::string path;
  std::uint64_t size = 0;
  GitOid git_oid;
  Sha256Digest sha256; ///< always known: the blob's name

  bool operator==(const SnapshotFile&) const = default;
};

/// One repository at one commit: the files that are here, all proved, and those of the Hub's list
/// that nobody asked for yet. What is here is whole by the choice of whoever pulled; it never
/// stands for a pull that failed half way.
struct Snapshot {
  RepoId repo;
  GitOid commit;
  std::vector<SnapshotFile> files;     ///< sorted by path, each path once
  std::vector<ListedFile> absent = {}; ///< sorted by path, none of them in `files`

  bool operator==(const Snapshot&) const = default;

  std::uint64_t bytes() const; ///< of the files that are here
  const SnapshotFile* find(std::string_view path) const;
  const ListedFile* find_absent(std::string_view path) const;
  bool complete() const { return absent.empty(); }
  /// Every file of the commit, sorted by path. Of those that are here the SHA-256 is set even where
  /// the Hub lists only the git id.
  std::vector<ListedFile> listing() const;
  /// What both have together. conflict where they list different files: a commit never changes.
  Result<Snapshot> merged_with(const Snapshot& other) const;

  /// The manifest: canonical JSON, so that equal snapshots are equal files. A complete one has
  /// version 1, one with absent files version 2.
  std::string to_json() const;
  /// Checks everything: version, names, order, digests, sizes.
  static Result<Snapshot> from_json(std::string_view text);
};

} // namespace modeld
