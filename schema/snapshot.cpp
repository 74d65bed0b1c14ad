// SPDX-License-Identifier: Apache-2.0
#include "schema/snapshot.hpp"

#include "schema/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

// Manifest, version 1. Keys in this order, files sorted by path, one line feed at the end:
//   {"format":"modeld.snapshot","version":1,"repo":"org/name","commit":"<40 hex>",
//    "files":[{"path":"...","size":n,"git_oid":"<40 hex>","sha256":"<64 hex>"},...]}
// Version 2 has "absent" behind "files", with at least one entry: what the Hub lists and is not
// here. Its entries are those of "files", without "sha256" where the Hub does not tell it.

namespace modeld {
namespace {

constexpr std::string_view k_format = "modeld.snapshot";
constexpr std::uint64_t k_complete_version = 1;
constexpr std::uint64_t k_partial_version = 2;

struct ByPath {
  template <class A>
  bool operator()(const A& a, std::string_view b) const {
    return a.path < b;
  }
  template <class A, class B>
  bool operator()(const A& a, const B& b) const requires requires {
    b.path;
  }
  { return a.path < b.path; }
};

template <class File>
const File* find_in(const std::vector<File>& files, std::string_view path) {
  const auto at = std::lower_bound(files.begin(), files.end(), path, ByPath{});
  return at != files.end() && at->path == path ? &*at : nullptr;
}

ListedFile listed(const SnapshotFile& file) {
  return {file.path, file.size, file.git_oid, file.sha256};
}

bool agree(const ListedFile& a, const ListedFile& b) {
  return a.path == b.path && a.size == b.size && a.git_oid == b.git_oid &&
         (!a.sha256 || !b.sha256 || a.sha256 == b.sha256);
}

Result<ListedFile> file_from_json(const boost::json::value& value, std::string_view member) {
  const auto* object = value.if_object();
  if (object == nullptr) {
    return fail(Errc::malformed, fmt::format("reading member '{}': expected objects", member));
  }
  ListedFile file;
  MODELD_ASSIGN(file.path, json_string(*object, "path"));
  MODELD_TRY(check_repo_path(file.path));
  MODELD_ASSIGN(file.size, json_uint(*object, "size"));
  MODELD_ASSIGN(const auto git_oid, json_string(*object, "git_oid"));
  MODELD_ASSIGN(file.git_oid, GitOid::parse(git_oid));
  if (member == "absent" && !object->contains("sha256")) return file;
  MODELD_ASSIGN(const auto sha256, json_string(*object, "sha256"));
  MODELD_ASSIGN(file.sha256, Sha256Digest::parse(sha256));
  return file;
}

Result<std::vector<ListedFile>> files_from_json(const boost::json::object& object,
                                                std::string_view member) {
  MODELD_ASSIGN(const auto* list, json_array(object, member));
  std::vector<ListedFile> files;
  files.reserve(list->size());
  for (const auto& value : *list) {
    MODELD_ASSIGN(auto file, file_from_json(value, member));
    if (!files.empty() && files.back().path >= file.path) {
      return fail(Errc::malformed,
                  fmt::format("reading member '{}': '{}' is out of order", member, file.path));
    }
    files.push_back(std::move(file));
  }
  return files;
}

Result<void> read_absent(const boost::json::object& object, Snapshot& snapshot) {
  MODELD_ASSIGN(snapshot.absent, files_from_json(object, "absent"));
  if (snapshot.absent.empty()) {
    return fail(Errc::malformed,
                "reading member 'absent': it is empty, then version 1 is expected");
  }
  for (const ListedFile& file : snapshot.absent) {
    if (snapshot.find(file.path) == nullptr) continue;
    return fail(Errc::malformed,
                fmt::format("reading member 'absent': '{}' is among the files as well", file.path));
  }
  return {};
}

Result<Snapshot> snapshot_from_json(const boost::json::object& object) {
  MODELD_ASSIGN(const auto format, json_string(object, "format"));
  MODELD_ASSIGN(const auto version, json_uint(object, "version"));
  if (format != k_format || (version != k_complete_version && version != k_partial_version)) {
    return fail(Errc::malformed,
                fmt::format("format '{}' version {}, expected '{}' version {} or {}", format,
                            version, k_format, k_complete_version, k_partial_version));
  }
  Snapshot snapshot;
  MODELD_ASSIGN(const auto repo, json_string(object, "repo"));
  MODELD_ASSIGN(snapshot.repo, RepoId::parse(repo));
  MODELD_ASSIGN(const auto commit, json_string(object, "commit"));
  MODELD_ASSIGN(snapshot.commit, GitOid::parse(commit));
  MODELD_ASSIGN(const auto files, files_from_json(object, "files"));
  snapshot.files.reserve(files.size());
  for (const ListedFile& file : files) {
    snapshot.files.push_back({file.path, file.size, file.git_oid, *file.sha256});
  }
  if (version == k_partial_version) MODELD_TRY(read_absent(object, snapshot));
  return snapshot;
}

boost::json::object to_object(const ListedFile& file) {
  boost::json::object object{
      {"path", file.path}, {"size", file.size}, {"git_oid", file.git_oid.hex()}};
  if (file.sha256) object["sha256"] = file.sha256->hex();
  return object;
}

} // namespace

std::uint64_t Snapshot::bytes() const {
  std::uint64_t sum = 0;
  for (const SnapshotFile& file : files) {
    sum += file.size;
  }
  return sum;
}

const SnapshotFile* Snapshot::find(std::string_view path) const {
  return find_in(files, path);
}

const ListedFile* Snapshot::find_absent(std::string_view path) const {
  return find_in(absent, path);
}

std::vector<ListedFile> Snapshot::listing() const {
  std::vector<ListedFile> here;
  here.reserve(files.size());
  std::transform(files.begin(), files.end(), std::back_inserter(here), listed);
  std::vector<ListedFile> all;
  all.reserve(files.size() + absent.size());
  std::merge(here.begin(), here.end(), absent.begin(), absent.end(), std::back_inserter(all),
             ByPath{});
  return all;
}

Result<Snapshot> Snapshot::merged_with(const Snapshot& other) const {
  const auto ours = listing();
  const auto theirs = other.listing();
  if (repo != other.repo || commit != other.commit ||
      !std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(), agree)) {
    return fail(Errc::conflict,
                fmt::format("joining what is here of '{}@{}': it is here with other files",
                            repo.text, commit.hex()),
                "a commit never changes: check where this list came from");
  }
  Snapshot out{repo, commit, {}};
  std::set_union(files.begin(), files.end(), other.files.begin(), other.files.end(),
                 std::back_inserter(out.files), ByPath{});
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (out.find(ours[i].path) != nullptr) continue;
    out.absent.push_back(ours[i].sha256 ? ours[i] : theirs[i]);
  }
  return out;
}

std::string Snapshot::to_json() const {
  boost::json::array list;
  list.reserve(files.size());
  for (const SnapshotFile& file : files) {
    list.emplace_back(to_object(listed(file)));
  }
  boost::json::object object{{"format", k_format},
                             {"version", complete() ? k_complete_version : k_partial_version},
                             {"repo", repo.text},
                             {"commit", commit.hex()},
                             {"files", std::move(list)}};
  if (!complete()) {
    boost::json::array rest;
    rest.reserve(absent.size());
    for (const ListedFile& file : absent) {
      rest.emplace_back(to_object(file));
    }
    object["absent"] = std::move(rest);
  }
  return boost::json::serialize(object) + '\n';
}

Result<Snapshot> Snapshot::from_json(std::string_view text) {
  MODELD_ASSIGN(const auto value, parse_json(text, "a snapshot manifest"));
  const auto* object = value.if_object();
  if (object == nullptr) {
    return fail(Errc::malformed, "parsing a snapshot manifest: expected an object");
  }
  auto snapshot = snapshot_from_json(*object);
  if (!snapshot) return fail(std::move(snapshot).error().context("parsing a snapshot manifest"));
  return snapshot;
}

} // namespace modeld
