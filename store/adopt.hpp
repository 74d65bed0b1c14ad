// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/progress.hpp"
#include "store/store.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::store {

/// Whose folder is adopted (hub-protocol.md section 4).
enum class AdoptSource { huggingface, ollama, lmstudio, folder };
std::string_view slug(AdoptSource source);
std::optional<AdoptSource> adopt_source_from_slug(std::string_view text);
/// Whose folder it looks like: by models--*/snapshots, by manifests/ and blobs/, by model files
/// exactly two folders down; else a plain folder.
AdoptSource recognise_source(const std::filesystem::path& root);

struct AdoptOptions {
  bool dry_run = false;
  /// Share the other program's own file where blocks cannot be shared: no second copy, but the file
  /// becomes read-only there too, and whoever can change its mode can change our blob (which is
  /// noticed, see quarantine.hpp). Else the bytes are copied.
  bool may_link = false;
  /// Hugging Face caches do not always say which files a commit has. Off: what is there is kept for
  /// a later pull, and listed only where the cache itself proves that it is all.
  bool assume_complete = false;
  RepoId repo;                             ///< of a plain folder; "local/<folder>" where empty
  std::optional<std::uint32_t> payer = {}; ///< whose quota it counts for
};

/// One model that was found.
struct Adopted {
  std::string where; ///< its folder or manifest
  RepoId repo;
  GitOid commit; ///< of the Hub; else a digest of the list of files
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t copied = 0; ///< bytes that use space again
  bool listed = false;      ///< published as a snapshot
  std::string note;         ///< why it is not listed, or what was left out
};

/// Takes in what another program downloaded. The digest of every file is computed and compared with
/// what its name claims; what is here already is neither copied nor linked and needs no space. What
/// no Hub gave a commit can be asked for as `main` (an Ollama model also by its tag), unless that
/// name means something else here already.
Result<std::vector<Adopted>> adopt(Store& store, AdoptSource source,
                                   const std::filesystem::path& root, const AdoptOptions& options,
                                   Progress* progress);

/// A hard link to the file becomes the blob. Fails with sys EXDEV, EPERM or EMLINK where it cannot.
Result<BlobInfo> ingest_by_link(Store& store, const std::filesystem::path& source,
                                Expected expected);

/// A commit id for files that no Hub gave one: equal files, equal id.
GitOid local_commit(const std::vector<SnapshotFile>& files);

} // namespace modeld::store
