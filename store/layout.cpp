// SPDX-License-Identifier: Apache-2.0
#include "store/layout.hpp"

#include <fmt/format.h>

#include <charconv>

namespace modeld::store::layout {
namespace {

constexpr std::string_view k_shelved = ".at-";

std::string_view stem_of(std::string_view partial) {
  return partial.substr(0, partial.size() - k_partial_suffix.size());
}

} // namespace

std::string blob_folder(const Sha256Digest& digest) {
  return fmt::format("{}/{}", k_blobs, to_hex(digest.bytes.data(), 1));
}

std::string blob(const Sha256Digest& digest) {
  return fmt::format("{}/{}", blob_folder(digest), digest.hex());
}

std::string pieces(const Sha256Digest& digest) {
  return fmt::format("{}/{}/{}", k_pieces, to_hex(digest.bytes.data(), 1), digest.hex());
}

std::string quarantined(const Sha256Digest& digest) {
  return fmt::format("{}/{}", k_quarantine, digest.hex());
}

std::string repo_folder(const RepoId& repo) {
  return fmt::format("{}/{}", repo.org().empty() ? "-" : repo.org(), repo.name());
}

std::string snapshot_manifest(const RepoId& repo, const GitOid& commit) {
  return fmt::format("{}/{}/{}.json", k_snapshots, repo_folder(repo), commit.hex());
}

std::string repo_manifest(const RepoId& repo) {
  return fmt::format("{}/{}/repo.json", k_snapshots, repo_folder(repo));
}

std::string variant_manifest(const Sha256Digest& key) {
  return fmt::format("{}/{}.json", k_variants, key.hex());
}

std::string pin_manifest(std::string_view name) {
  return fmt::format("{}/{}.json", k_pins, name);
}

std::string link_manifest(std::string_view id) {
  return fmt::format("{}/{}.json", k_links, id);
}

std::string view(const RepoId& repo, const GitOid& commit) {
  return fmt::format("{}/{}/{}", k_views, repo_folder(repo), commit.hex());
}

std::string partial(std::string_view key) {
  return fmt::format("{}/{}{}{}", k_tmp, k_partial_prefix, key, k_partial_suffix);
}

std::string note_of(std::string_view partial) {
  return fmt::format("{}.note", stem_of(partial));
}

std::string shelved(std::string_view partial, std::uint64_t offset) {
  return fmt::format("{}{}{}", stem_of(partial), k_shelved, offset);
}

bool is_partial(std::string_view name) {
  return name.starts_with(k_partial_prefix) && name.ends_with(k_partial_suffix);
}

std::optional<ShelvedName> parse_shelved(std::string_view name) {
  const auto at = name.rfind(k_shelved);
  if (!name.starts_with(k_partial_prefix) || at == std::string_view::npos) return {};
  const std::string_view number = name.substr(at + k_shelved.size());
  ShelvedName parsed{fmt::format("{}{}", name.substr(0, at), k_partial_suffix), 0};
  const auto error =
      std::from_chars(number.data(), number.data() + number.size(), parsed.offset).ec;
  // One number has one name, or two files would be the same part.
  if (error != std::errc() || fmt::format("{}", parsed.offset) != number) return {};
  return parsed;
}

} // namespace modeld::store::layout
