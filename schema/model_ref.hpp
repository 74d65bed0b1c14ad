// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <compare>
#include <string>
#include <string_view>

namespace modeld {

/// A repository on the Hub: "org/name", or one part for the oldest ones ("gpt2").
struct RepoId {
  std::string text;

  auto operator<=>(const RepoId&) const = default;

  /// Hub rules (hub-protocol.md 1.1): one or two parts of 1 to 96 characters of [A-Za-z0-9_.-],
  /// without "--" or "..", starting and ending on a word character, not ending in ".git".
  static Result<RepoId> parse(std::string_view text);

  std::string_view org() const;  ///< empty for a one-part name
  std::string_view name() const; ///< the last part
};

/// `org/name[@revision][:selector]`: what every command and route takes.
struct ModelRef {
  RepoId repo;
  std::string revision; ///< branch, tag, refs/pr/N, commit; empty means "main"
  std::string selector; ///< a recipe ("Q4_K_M") or a file; empty where none was given

  auto operator<=>(const ModelRef&) const = default;

  static Result<ModelRef> parse(std::string_view text);
  std::string str() const;
  std::string_view revision_or_main() const;
};

/// 40 lower-case hexadecimal digits: a revision that can never move.
bool is_commit(std::string_view revision);

/// Whether a path of a repository may be joined to a folder: relative, '/' between parts, no empty,
/// "." or ".." part, no backslash, no drive letter (C:x) in front, no control character, at most
/// 255 bytes a part, 4096 in all (hub-protocol.md 7, 13 and 15; C13). The error names the rule.
Result<void> check_repo_path(std::string_view path);

} // namespace modeld
