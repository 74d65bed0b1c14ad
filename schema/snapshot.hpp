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

/// One repository at one commit: complete, or not there at all.
struct Snapshot {
  RepoId repo;
  GitOid commit;
  std::vector<SnapshotFile> files; ///< sorted by path, each path once

  bool operator==(const Snapshot&) const = default;

  std::uint64_t bytes() const;
  const SnapshotFile* find(std::string_view path) const;

  /// The manifest: canonical JSON, so that equal snapshots are equal files.
  std::string to_json() const;
  /// Checks everything: version, names, order, digests, sizes.
  static Result<Snapshot> from_json(std::string_view text);
};

} // namespace modeld
