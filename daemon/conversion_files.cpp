// SPDX-License-Identifier: Apache-2.0
#include "daemon/conversion_files.hpp"

#include "daemon/blob_access.hpp"
#include "fetch/selection.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace modeld::daemon {
namespace {

constexpr std::uint64_t k_max_deciding = 64U << 20; // bytes: an index names each tensor once

const ListedFile* find(const std::vector<ListedFile>& files, std::string_view path) {
  const auto at = std::find_if(files.begin(), files.end(),
                               [path](const ListedFile& file) { return file.path == path; });
  return at == files.end() ? nullptr : &*at;
}

Result<std::optional<store::BlobInfo>> find_blob(const store::Store& store,
                                                 const ListedFile& file) {
  return file.sha256 ? store.find_blob(*file.sha256) : store.find_blob(file.git_oid);
}

Result<std::string> read_text(const store::Store& store, const ListedFile& file) {
  MODELD_ASSIGN(const auto blob, find_blob(store, file));
  if (!blob) {
    return fail(Errc::not_found, fmt::format("reading '{}': it is not here", file.path));
  }
  if (blob->size > k_max_deciding) {
    return fail(Errc::malformed, fmt::format("reading '{}': it has {} bytes, allowed are {}",
                                             file.path, blob->size, k_max_deciding));
  }
  MODELD_ASSIGN(const Descriptor opened, open_blob(store, *blob));
  std::string text(static_cast<std::size_t>(blob->size), '\0');
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = ::read(opened.get(), text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return fail(from_errno(n < 0 ? errno : EIO, fmt::format("reading '{}'", file.path)));
    at += static_cast<std::size_t>(n);
  }
  return text;
}

} // namespace

std::vector<ListedFile> deciding_files(const std::vector<ListedFile>& listing) {
  const std::string index = fetch::weight_index_of(listing).value_or("");
  std::vector<ListedFile> out;
  for (const ListedFile& file : listing) {
    const bool decides = file.path == "config.json" || file.path == "tokenizer_config.json" ||
                         file.path == "generation_config.json" || file.path == "modules.json" ||
                         fetch::matches_pattern("*_Pooling/config.json", file.path) ||
                         file.path == index;
    if (decides && file.size <= k_max_deciding) out.push_back(file);
  }
  return out;
}

Result<std::vector<ListedFile>> conversion_files(const store::Store& store,
                                                 const std::vector<ListedFile>& listing) {
  std::optional<std::string> index;
  if (const ListedFile* file = find(listing, fetch::weight_index_of(listing).value_or(""))) {
    MODELD_ASSIGN(index, read_text(store, *file));
  }
  MODELD_ASSIGN(auto chosen, fetch::select_for_conversion(listing, index));
  return std::move(chosen.files);
}

Result<std::optional<Snapshot>> conversion_part(const store::Store& store,
                                                const Snapshot& snapshot) {
  // The index itself may be what is absent.
  if (const auto path = fetch::weight_index_of(snapshot.absent)) return std::optional<Snapshot>{};
  MODELD_ASSIGN(const auto chosen, conversion_files(store, snapshot.listing()));
  Snapshot part{snapshot.repo, snapshot.commit, {}};
  for (const ListedFile& file : chosen) {
    const SnapshotFile* here = snapshot.find(file.path);
    if (here == nullptr) return std::optional<Snapshot>{};
    part.files.push_back(*here);
  }
  for (ListedFile& file : snapshot.listing()) {
    if (part.find(file.path) == nullptr) part.absent.push_back(std::move(file));
  }
  return std::optional(std::move(part));
}

} // namespace modeld::daemon
