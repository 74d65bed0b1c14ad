// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/hub/hub_commit.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::test {

/// One repository: commits, the names that point at them, and who may read.
struct HubRepository {
  std::string id;
  std::map<std::string, std::shared_ptr<const HubCommit>> commits; ///< by hexadecimal id
  std::map<std::string, std::string> branches;                     ///< name -> commit
  std::map<std::string, std::string> tags;                         ///< name -> commit
  std::map<std::string, std::string> other_refs;                   ///< "refs/pr/1" -> commit
  bool is_private = false;
  std::string gated; ///< empty, "auto" or "manual"
  bool disabled = false;

  /// A branch, a tag, a full ref name, "HEAD", a commit or seven or more first digits of one.
  std::shared_ptr<const HubCommit> find(std::string_view revision) const;
  /// Every name that find() knows except commits; longest first.
  std::vector<std::string> ref_names() const;
};

/// All repositories of a Hub, and its users' tokens. A value: the routes work on a copy that was
/// taken when the request came, so a test may change it at any time.
class Repositories {
public:
  /// Makes the commit the newest of the branch (or of "refs/pr/N"); the older ones stay reachable
  /// by id.
  void add(const std::string& id, std::string_view branch, std::shared_ptr<const HubCommit> commit);
  void rename(const std::string& from, const std::string& to) { renamed_[from] = to; }
  /// A token that the Hub knows, and the private or gated repositories that it opens.
  void add_token(const std::string& token, std::set<std::string> repos) {
    tokens_[token] = std::move(repos);
  }

  HubRepository* find(const std::string& id);
  const HubRepository* find(const std::string& id) const;
  /// The name that a repository has now, where it was renamed.
  std::optional<std::string> new_name(const std::string& id) const;
  /// Whether the Hub knows this token. With no token registered at all, any is taken as that of a
  /// user without rights, so that a demo runs on a machine where HF_TOKEN is set.
  bool knows(std::string_view token) const;
  bool opens(std::string_view token, const std::string& id) const;
  const std::map<std::string, HubRepository>& all() const { return repositories_; }

private:
  std::map<std::string, HubRepository> repositories_;
  std::map<std::string, std::string> renamed_;
  std::map<std::string, std::set<std::string>> tokens_;
};

} // namespace modeld::test
