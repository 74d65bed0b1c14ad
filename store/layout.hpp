// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/digest.hpp"
#include "schema/model_ref.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Names below a store's root (design.md section 3); relative, so that they work from its kept
// descriptor. A repository without an organisation is under "-", which no organisation can be
// named.

namespace modeld::store::layout {

inline constexpr const char* k_marker = "modeld.id";
inline constexpr const char* k_lock = "lock";
inline constexpr const char* k_index = "index.sqlite";
inline constexpr const char* k_reserve = "reserve";
inline constexpr const char* k_tmp = "tmp";
inline constexpr const char* k_blobs = "blobs/sha256";
inline constexpr const char* k_snapshots = "snapshots";
inline constexpr const char* k_variants = "variants";
inline constexpr const char* k_pieces = "pieces";
inline constexpr const char* k_pins = "pins";
inline constexpr const char* k_links = "links";
inline constexpr const char* k_standing = "standing";
inline constexpr const char* k_views = "views";
inline constexpr const char* k_quarantine = "quarantine";
inline constexpr std::string_view k_partial_prefix = "resume-";
inline constexpr std::string_view k_partial_suffix = ".part";

std::string blob_folder(const Sha256Digest& digest); ///< blobs/sha256/ab
std::string blob(const Sha256Digest& digest);        ///< blobs/sha256/ab/abcd...
std::string pieces(const Sha256Digest& digest);      ///< pieces/ab/abcd...
std::string quarantined(const Sha256Digest& digest);
std::string repo_folder(const RepoId& repo); ///< org/name
std::string snapshot_manifest(const RepoId& repo, const GitOid& commit);
std::string repo_manifest(const RepoId& repo); ///< refs, canonical name, who may read
std::string variant_manifest(const Sha256Digest& key);
std::string pin_manifest(std::string_view name);
std::string link_manifest(std::string_view id);
std::string view(const RepoId& repo, const GitOid& commit);
std::string partial(std::string_view key); ///< tmp/resume-<key>.part
/// Beside it: what its writer wants to know when it goes on. tmp/resume-<key>.note
std::string note_of(std::string_view partial);
/// Beside it too: bytes of it that came before it was their turn. tmp/resume-<key>.at-<offset>
std::string shelved(std::string_view partial, std::uint64_t offset);

/// Whether an entry of tmp/ is a partial file that may be resumed.
bool is_partial(std::string_view name);
/// Whether it is a part of one that came before its turn, and of which.
struct ShelvedName {
  std::string partial; ///< name of that entry
  std::uint64_t offset = 0;
};
std::optional<ShelvedName> parse_shelved(std::string_view name);

} // namespace modeld::store::layout
