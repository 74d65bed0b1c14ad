// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/digest.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace modeld::test {

/// Which files the Hub keeps as LFS objects: those of at least this size, and those whose names
/// end as weights do.
struct LfsRule {
  std::uint64_t threshold = 10ull << 20;
  bool by_name = true;

  bool applies(std::string_view path, std::uint64_t size) const;
};

/// A file of a commit. Its bytes live as long as it does: mapped from disk, or owned.
struct HubFile {
  std::string path;
  std::string_view bytes;
  GitOid git_oid;                     ///< of the pointer where sha256 is set
  std::optional<Sha256Digest> sha256; ///< LFS only
  std::string pointer;                ///< LFS only
  std::shared_ptr<const void> owner;

  /// What the Hub sends as (linked) ETag, without quotes.
  std::string etag() const { return sha256 ? sha256->hex() : git_oid.hex(); }
};

/// Files at one moment: immutable once made.
class HubCommit {
public:
  /// Every regular file under `folder`, without ".git" at the top.
  static std::shared_ptr<const HubCommit> from_folder(const std::filesystem::path& folder,
                                                      const LfsRule& rule);
  /// Files out of memory, with any names, even those that no folder could hold.
  static std::shared_ptr<const HubCommit>
  from_bytes(const std::vector<std::pair<std::string, std::string>>& files, const LfsRule& rule);

  const GitOid& id() const { return id_; }
  /// Sorted by path.
  const std::vector<HubFile>& files() const { return files_; }
  /// Path of each folder and its git tree id; not the root.
  const std::map<std::string, GitOid>& folders() const { return folders_; }
  const HubFile* find(std::string_view path) const;

private:
  explicit HubCommit(std::vector<HubFile> files);
  GitOid tree_of(const std::string& folder, std::size_t first, std::size_t last);

  std::vector<HubFile> files_;
  std::map<std::string, GitOid> folders_;
  GitOid id_;
};

} // namespace modeld::test
