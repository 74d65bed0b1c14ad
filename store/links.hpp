// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/records.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::store {

/// How a blob is shown outside of the store.
enum class LinkForm {
  reflink,  ///< own inode, shared blocks: safest where the file system can
  hardlink, ///< the same inode: no space, same file system
  symlink,  ///< a path: works across file systems, dead outside of a container's mount
  copy,     ///< costs the space again
  written,  ///< a small file that was made for the target (a ref, a manifest)
};
std::string_view slug(LinkForm form);
std::optional<LinkForm> link_form_from_slug(std::string_view text);

struct LinkedFile {
  std::string path; ///< absolute
  LinkForm form = LinkForm::hardlink;
  std::optional<Sha256Digest> blob; ///< of our store; nothing for a written file or a link to one
  Sha256Digest content; ///< of a written file: what it has to be, or it is not ours any more. Of a
                        ///< symbolic link to another linked file: digest of its target's text

  bool operator==(const LinkedFile&) const = default;
};

/// What one snapshot (and its variants) shows in one place: links/<id>.json.
struct LinkRecord {
  std::string id;
  std::string target; ///< "huggingface", "ollama", "lmstudio", "llamacpp", "folder"
  std::string root;   ///< absolute
  RepoId repo;
  GitOid commit;
  std::uint32_t uid = 0;
  UnixTime created = 0;
  bool standing = false; ///< made by the daemon for a standing link: keeps nothing from collection
  std::vector<LinkedFile> files; ///< in the order in which they were made

  bool operator==(const LinkRecord&) const = default;

  std::string to_json() const;
  static Result<LinkRecord> from_json(std::string_view text);
};

class Disk;

/// Every record, from the manifests: only they know written files and relative links. Those that
/// cannot be read are left out. The caller holds State::manifests.
Result<std::vector<LinkRecord>> read_link_records(const Disk& disk);

} // namespace modeld::store
