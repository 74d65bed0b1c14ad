// SPDX-License-Identifier: Apache-2.0
#include "store/salvage.hpp"

#include "store/adopt.hpp"
#include "store/layout.hpp"
#include "store/links.hpp"
#include "store/quarantine.hpp"
#include "store/state.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <vector>

namespace modeld::store {
namespace {

namespace fs = std::filesystem;

Result<std::vector<fs::path>> other_names(Store::State& s, const Sha256Digest& digest) {
  std::vector<fs::path> names;
  {
    auto index = s.writer.lock();
    MODELD_ASSIGN(const auto files, index->files_of(digest));
    for (const auto& file : files) {
      names.push_back(s.disk.root() / layout::view(file.repo, file.commit) / file.path);
    }
    MODELD_ASSIGN(const auto keys, index->variants_of(digest));
    for (const Sha256Digest& key : keys) {
      MODELD_ASSIGN(const auto variant, index->find_variant(key));
      if (!variant) continue;
      names.push_back(s.disk.root() / layout::view(variant->repo, variant->commit) /
                      variant->file_name);
    }
  }
  MODELD_ASSIGN(const auto records, read_link_records(s.disk));
  for (const LinkRecord& record : records) {
    for (const LinkedFile& file : record.files) {
      if (file.blob == digest) names.emplace_back(file.path);
    }
  }
  return names;
}

bool is_right(const fs::path& name, const Sha256Digest& digest, std::uint64_t size) {
  struct stat info {};
  if (lstat(name.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  if (static_cast<std::uint64_t>(info.st_size) != size) return false;
  const auto folder = Disk::open(name.parent_path());
  if (!folder) return false;
  const auto hash = hash_file(*folder, name.filename().string(), 0, nullptr);
  return hash && *hash == digest;
}

/// Nobody but us may write to it, or make it writable.
bool is_ours(const fs::path& name) {
  struct stat info {};
  return lstat(name.c_str(), &info) == 0 && info.st_uid == geteuid() && (info.st_mode & 0222) == 0;
}

} // namespace

Result<std::optional<fs::path>> find_other_name(Store& store, const Sha256Digest& digest,
                                                std::uint64_t size) {
  MODELD_ASSIGN(const auto names, other_names(store.internals(), digest));
  for (const fs::path& name : names) {
    if (is_right(name, digest, size)) return name;
  }
  return std::nullopt;
}

Result<void> put_back(Store& store, const Sha256Digest& digest, const fs::path& from) {
  Expected expected;
  expected.sha256 = digest;
  expected.what = from.string();
  if (is_ours(from)) {
    if (ingest_by_link(store, from, expected)) return {};
  }
  MODELD_TRY(store.ingest_file(from, expected));
  return {};
}

} // namespace modeld::store
