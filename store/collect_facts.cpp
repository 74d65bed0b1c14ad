// SPDX-License-Identifier: Apache-2.0
#include "store/collect_facts.hpp"

#include "store/layout.hpp"
#include "store/open_files.hpp"
#include "store/state.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <unordered_set>

namespace modeld::store {
namespace {

std::string describe(const Lease& lease) {
  const std::string note = lease.note.empty() ? "" : fmt::format(" ({})", lease.note);
  switch (lease.holder.kind) {
  case LeaseHolder::Kind::connection:
    return fmt::format("lease of connection {}{}", lease.holder.connection, note);
  case LeaseHolder::Kind::process:
    return fmt::format("lease of process {}{}", lease.holder.pid, note);
  default:
    return fmt::format("lease until {}{}", lease.holder.deadline, note);
  }
}

std::string describe(const std::vector<FileUser>& users) {
  std::string text;
  for (const FileUser& user : users) {
    if (!text.empty()) text += ", ";
    text += fmt::format("process {} ({})", user.pid, user.command);
  }
  return text;
}

/// The first user of a blob counts; the order of calls below is the order of weight.
void add_user(CollectFacts& facts, const Sha256Digest& blob, Reason reason, std::string who) {
  facts.users.try_emplace(blob, CollectFacts::User{reason, std::move(who)});
}

Result<void> read_index(Store::State& s, CollectFacts& facts) {
  auto index = s.writer.lock();
  // One transaction: every list is of the same moment.
  MODELD_ASSIGN(auto txn, index->begin());
  MODELD_ASSIGN(facts.blobs, index->list_blobs());
  MODELD_ASSIGN(auto snapshots, index->list_snapshots());
  MODELD_ASSIGN(auto files, index->list_snapshot_blobs());
  auto file = files.begin();
  for (SnapshotInfo& info : snapshots) {
    std::vector<Sha256Digest> blobs;
    if (file != files.end() && file->repo == info.repo && file->commit == info.commit) {
      blobs = std::move(file++->blobs);
    }
    facts.snapshots.emplace_back(std::move(info), std::move(blobs));
  }
  MODELD_ASSIGN(facts.variants, index->list_variants());
  MODELD_ASSIGN(const auto pins, index->list_pins());
  for (const Pin& pin : pins) {
    facts.pins[{pin.repo, pin.commit}].push_back(pin);
  }
  MODELD_ASSIGN(const auto uses, index->list_uses());
  facts.uses.insert(uses.begin(), uses.end());
  MODELD_ASSIGN(const auto jobs, index->list_job_blobs());
  for (const auto& [job, blob] : jobs) {
    add_user(facts, blob, Reason::job, "job " + job);
  }
  MODELD_ASSIGN(const auto links, index->list_link_blobs());
  for (const auto& [where, blob] : links) {
    add_user(facts, blob, Reason::linked, where);
  }
  return {};
}

Result<void> read_leases(Store& store, CollectFacts& facts) {
  {
    auto contents = store.internals().holds->contents.lock();
    for (const auto& [digest, count] : contents->counts) {
      add_user(facts, digest, Reason::held, "a request or a build");
    }
  }
  MODELD_ASSIGN(const auto leases, store.list_leases());
  for (const Lease& lease : leases) {
    add_user(facts, lease.blob, Reason::leased, describe(lease));
  }
  return {};
}

/// A file's number by stat; 0 where it is gone.
Inode inode_of(const Disk& disk, const std::string& path) {
  struct stat info {};
  if (fstatat(disk.fd(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return {};
  return {info.st_dev, info.st_ino};
}

/// Where the number in a folder's entry is that of the file; layered file systems may differ.
bool folders_tell_numbers(const Disk& disk) {
  struct statfs info {};
  if (fstatfs(disk.fd(), &info) != 0) return false;
  constexpr std::array<std::uint32_t, 5> k_plain{EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,
                                                 BTRFS_SUPER_MAGIC, TMPFS_MAGIC, F2FS_SUPER_MAGIC};
  const auto type = static_cast<std::uint32_t>(info.f_type);
  return std::find(k_plain.begin(), k_plain.end(), type) != k_plain.end();
}

/// `numbers` are those of the blobs' files, where known.
void read_open_files(const Disk& disk, CollectFacts& facts, std::vector<ino_t> numbers) {
  numbers.resize(facts.blobs.size());
  const bool known = folders_tell_numbers(disk);
  std::unordered_set<ino_t> wanted;
  wanted.reserve(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!known || numbers[i] == 0) {
      numbers[i] = inode_of(disk, layout::blob(facts.blobs[i].info.sha256)).number;
    }
    wanted.insert(numbers[i]);
  }
  const OpenFiles open = find_open_files(wanted);
  facts.unseen = open.unseen;
  std::unordered_set<ino_t> opened;
  for (const auto& [inode, users] : open.users) {
    opened.insert(inode.number);
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!opened.contains(numbers[i])) continue;
    const Sha256Digest& digest = facts.blobs[i].info.sha256;
    const auto users = open.users.find(inode_of(disk, layout::blob(digest)));
    if (users != open.users.end()) add_user(facts, digest, Reason::open, describe(users->second));
  }
}

Result<StrayFile> look_at(const Disk& disk, std::string path) {
  struct stat info {};
  if (fstatat(disk.fd(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return StrayFile{std::move(path), 0, 0, false}; // gone meanwhile
  }
  return StrayFile{std::move(path), static_cast<std::uint64_t>(info.st_size), info.st_mtime, false};
}

/// Damaged blobs, kept for a while as evidence.
Result<void> read_quarantine(Store::State& s, CollectFacts& facts) {
  if (!s.disk.exists(layout::k_quarantine)) return {};
  MODELD_ASSIGN(const auto files, s.disk.list(layout::k_quarantine));
  for (const FolderEntry& file : files) {
    MODELD_ASSIGN(auto stray,
                  look_at(s.disk, fmt::format("{}/{}", layout::k_quarantine, file.name)));
    facts.strays.push_back(std::move(stray));
  }
  return {};
}

/// The parts beside a partial file go and stay with it: its size and its age are theirs too.
Result<void> add_shelf(const Disk& disk, const std::vector<FolderEntry>& entries,
                       const std::string& partial, StrayFile& file) {
  for (const FolderEntry& entry : entries) {
    const auto name = layout::parse_shelved(entry.name);
    if (!name || name->partial != partial) continue;
    MODELD_ASSIGN(const auto part, look_at(disk, fmt::format("{}/{}", layout::k_tmp, entry.name)));
    file.bytes += part.bytes;
    file.changed = std::max(file.changed, part.changed);
  }
  return {};
}

Result<void> read_files(Store::State& s, CollectFacts& facts) {
  MODELD_ASSIGN(const auto unfinished, s.disk.list(layout::k_tmp));
  for (const FolderEntry& entry : unfinished) {
    if (!layout::is_partial(entry.name)) continue;
    MODELD_ASSIGN(auto file, look_at(s.disk, fmt::format("{}/{}", layout::k_tmp, entry.name)));
    MODELD_TRY(add_shelf(s.disk, unfinished, entry.name, file));
    auto active = s.active_partials.lock();
    file.active = std::any_of(active->begin(), active->end(), [&file](const std::string& key) {
      return layout::partial(key) == file.path;
    });
    facts.partials.push_back(std::move(file));
  }
  return read_quarantine(s, facts);
}

/// Files under blobs/ that no row knows, and the numbers of those that one does.
Result<std::vector<ino_t>> read_blob_files(Store::State& s, CollectFacts& facts) {
  std::vector<ino_t> numbers(facts.blobs.size());
  MODELD_ASSIGN(const auto folders, s.disk.list(layout::k_blobs));
  for (const FolderEntry& folder : folders) {
    if (!folder.folder) continue;
    const std::string path = fmt::format("{}/{}", layout::k_blobs, folder.name);
    MODELD_ASSIGN(const auto files, s.disk.list(path));
    for (const FolderEntry& file : files) {
      const auto row = facts.row_of(file.name);
      if (row) {
        numbers[*row] = file.inode;
      } else {
        MODELD_ASSIGN(auto stray, look_at(s.disk, path + '/' + file.name));
        facts.strays.push_back(std::move(stray));
      }
    }
  }
  return numbers;
}

} // namespace

std::optional<std::size_t> CollectFacts::row_of(std::string_view name) const {
  const auto digest = Sha256Digest::parse(name);
  if (!digest) return std::nullopt;
  const auto at = std::lower_bound(
      blobs.begin(), blobs.end(), *digest,
      [](const BlobRow& row, const Sha256Digest& wanted) { return row.info.sha256 < wanted; });
  if (at == blobs.end() || at->info.sha256 != *digest) return std::nullopt;
  return static_cast<std::size_t>(at - blobs.begin());
}

const CollectFacts::User* CollectFacts::user_of(const Sha256Digest& digest) const {
  const auto at = users.find(digest);
  return at == users.end() ? nullptr : &at->second;
}

UnixTime CollectFacts::used(const Sha256Digest& digest) const {
  const auto at = uses.find(digest);
  return at == uses.end() ? 0 : at->second;
}

bool CollectFacts::has_snapshot(const RepoId& repo, const GitOid& commit) const {
  // Sorted by repository and commit.
  const auto at = std::lower_bound(snapshots.begin(), snapshots.end(), std::pair(repo, commit),
                                   [](const auto& row, const auto& wanted) {
                                     return std::pair(row.first.repo, row.first.commit) < wanted;
                                   });
  return at != snapshots.end() && at->first.repo == repo && at->first.commit == commit;
}

std::optional<std::string> CollectFacts::pin_of(const RepoId& repo, const GitOid& commit) const {
  const auto at = pins.find({repo, commit});
  return at == pins.end() ? std::nullopt : std::optional(at->second.front().name);
}

std::optional<std::string> CollectFacts::pin_of(const Variant& variant) const {
  const auto all = pins.find({variant.repo, variant.commit});
  if (all == pins.end()) return std::nullopt;
  const auto at = std::find_if(all->second.begin(), all->second.end(), [&variant](const Pin& pin) {
    return std::binary_search(pin.recipes.begin(), pin.recipes.end(), variant.recipe);
  });
  return at == all->second.end() ? std::nullopt : std::optional(at->name);
}

Result<std::vector<std::string>> users_of(Store& store, const std::vector<Sha256Digest>& digests) {
  CollectFacts facts;
  for (const Sha256Digest& digest : digests) {
    facts.blobs.push_back({{digest, 0, std::nullopt}, 0, false});
  }
  MODELD_TRY(read_leases(store, facts));
  read_open_files(store.internals().disk, facts, {});
  std::vector<std::string> users;
  for (const Sha256Digest& digest : digests) {
    if (const auto* user = facts.user_of(digest)) users.push_back(user->who);
  }
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());
  return users;
}

Result<CollectFacts> gather_facts(Store& store) {
  MODELD_TRY(store.flush_uses());
  CollectFacts facts;
  facts.now = now();
  MODELD_ASSIGN(const auto usage, store.usage());
  facts.free = usage.free;
  Store::State& s = store.internals();
  // Files are listed last: one that arrives in between looks like a stray, but is young, and is
  // looked up again before it is removed.
  MODELD_TRY(read_leases(store, facts));
  MODELD_TRY(read_index(s, facts));
  MODELD_TRY(read_files(s, facts));
  MODELD_ASSIGN(auto numbers, read_blob_files(s, facts));
  read_open_files(s.disk, facts, std::move(numbers));
  return facts;
}

} // namespace modeld::store
