// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/collect.hpp"
#include "store/index.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace modeld::store {

/// A file under the root that no row speaks of.
struct StrayFile {
  std::string path; ///< relative to the root
  std::uint64_t bytes = 0;
  UnixTime changed = 0;
  bool active = false; ///< a transfer writes it now
};

/// Everything that a collection decides by, at one moment.
struct CollectFacts {
  struct User {
    Reason reason = Reason::held;
    std::string who;
  };

  UnixTime now = 0;
  std::uint64_t free = 0;
  std::uint64_t unseen = 0;
  std::vector<BlobRow> blobs;
  std::vector<std::pair<SnapshotInfo, std::vector<Sha256Digest>>> snapshots;
  std::vector<Variant> variants;
  std::map<std::pair<RepoId, GitOid>, std::vector<Pin>> pins; ///< each list by name
  std::map<Sha256Digest, User> users;
  std::map<Sha256Digest, UnixTime> uses;
  std::vector<StrayFile> partials;
  std::vector<StrayFile> strays;

  /// Where the blob with this name is in `blobs`, which are sorted.
  std::optional<std::size_t> row_of(std::string_view name) const;
  const User* user_of(const Sha256Digest& digest) const;
  UnixTime used(const Sha256Digest& digest) const;
  bool has_snapshot(const RepoId& repo, const GitOid& commit) const;
  std::optional<std::string> pin_of(const RepoId& repo, const GitOid& commit) const;
  std::optional<std::string> pin_of(const Variant& variant) const;
};

Result<CollectFacts> gather_facts(Store& store);

} // namespace modeld::store
