// SPDX-License-Identifier: Apache-2.0
#include "schema/snapshot.hpp"

#include "schema/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>

// Manifest, version 1. Keys in this order, files sorted by path, one line feed at the end:
//   {"format":"modeld.snapshot","version":1,"repo":"org/name","commit":"<40 hex>",
//    "files":[{"path":"...","size":n,"git_oid":"<40 hex>","sha256":"<64 hex>"},...]}

namespace modeld {
namespace {

constexpr std::string_view k_format = "modeld.snapshot";
constexpr std::uint64_t k_manifest_version = 1;

Result<SnapshotFile> file_from_json(const boost::json::value& value) {
  const auto* object = value.if_object();
  if (object == nullptr) return fail(Errc::malformed, "reading member 'files': expected objects");
  SnapshotFile file;
  MODELD_ASSIGN(file.path, json_string(*object, "path"));
  MODELD_TRY(check_repo_path(file.path));
  MODELD_ASSIGN(file.size, json_uint(*object, "size"));
  MODELD_ASSIGN(const auto git_oid, json_string(*object, "git_oid"));
  MODELD_ASSIGN(file.git_oid, GitOid::parse(git_oid));
  MODELD_ASSIGN(const auto sha256, json_string(*object, "sha256"));
  MODELD_ASSIGN(file.sha256, Sha256Digest::parse(sha256));
  return file;
}

Result<Snapshot> snapshot_from_json(const boost::json::object& object) {
  MODELD_ASSIGN(const auto format, json_string(object, "format"));
  MODELD_ASSIGN(const auto version, json_uint(object, "version"));
  if (format != k_format || version != k_manifest_version) {
    return fail(Errc::malformed, fmt::format("format '{}' version {}, expected '{}' version {}",
                                             format, version, k_format, k_manifest_version));
  }
  Snapshot snapshot;
  MODELD_ASSIGN(const auto repo, json_string(object, "repo"));
  MODELD_ASSIGN(snapshot.repo, RepoId::parse(repo));
  MODELD_ASSIGN(const auto commit, json_string(object, "commit"));
  MODELD_ASSIGN(snapshot.commit, GitOid::parse(commit));
  MODELD_ASSIGN(const auto* files, json_array(object, "files"));
  snapshot.files.reserve(files->size());
  for (const auto& value : *files) {
    MODELD_ASSIGN(auto file, file_from_json(value));
    if (!snapshot.files.empty() && snapshot.files.back().path >= file.path) {
      return fail(Errc::malformed,
                  fmt::format("reading member 'files': '{}' is out of order", file.path));
    }
    snapshot.files.push_back(std::move(file));
  }
  return snapshot;
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
  const auto at =
      std::lower_bound(files.begin(), files.end(), path,
                       [](const SnapshotFile& f, std::string_view p) { return f.path < p; });
  return at != files.end() && at->path == path ? &*at : nullptr;
}

std::string Snapshot::to_json() const {
  boost::json::array list;
  list.reserve(files.size());
  for (const SnapshotFile& file : files) {
    list.push_back(boost::json::object{{"path", file.path},
                                       {"size", file.size},
                                       {"git_oid", file.git_oid.hex()},
                                       {"sha256", file.sha256.hex()}});
  }
  const boost::json::object object{{"format", k_format},
                                   {"version", k_manifest_version},
                                   {"repo", repo.text},
                                   {"commit", commit.hex()},
                                   {"files", std::move(list)}};
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
