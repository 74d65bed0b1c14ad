// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/store.hpp"
#include "tests/support/small_store.hpp"
#include "tests/support/temp_dir.hpp"
#include "validate/sha256.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace modeld::test {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

inline Sha256Digest sha(std::string_view text) {
  return validate::sha256_of(bytes_of(text));
}

inline GitOid git_id(std::string_view text) {
  return validate::git_blob_id(bytes_of(text));
}

/// A commit id made of one digit.
inline GitOid commit_of(char digit) {
  return *GitOid::parse(std::string(40, digit));
}

inline std::unique_ptr<store::Store> open_store(const std::filesystem::path& root,
                                                store::StoreOptions options = small_options()) {
  auto opened = store::Store::open(root, std::move(options));
  if (!opened) FAIL(opened.error().message);
  return std::move(*opened);
}

inline Result<store::BlobInfo> ingest(store::Store& store, std::string_view text,
                                      store::Expected expected = {}) {
  MODELD_ASSIGN(auto ingest, store.begin_ingest(std::move(expected)));
  MODELD_TRY(ingest->write(bytes_of(text)));
  return ingest->commit();
}

using Files = std::map<std::string, std::string>;

inline Snapshot snapshot_of(std::string_view repo, char commit, const Files& files) {
  Snapshot snapshot{RepoId{std::string(repo)}, commit_of(commit), {}};
  for (const auto& [path, text] : files) {
    snapshot.files.push_back({path, text.size(), git_id(text), sha(text)});
  }
  return snapshot;
}

/// Ingests all files, then publishes.
inline Result<void> pull(store::Store& store, const Snapshot& snapshot, const Files& files) {
  for (const auto& [path, text] : files) {
    MODELD_TRY(ingest(store, text));
  }
  return store.publish_snapshot(snapshot);
}

inline store::Variant variant_of(const Snapshot& snapshot, std::string_view target,
                                 std::string_view bytes) {
  const auto recipe = *Recipe::parse_target(target);
  const auto inputs = store::variant_inputs(snapshot, recipe);
  store::Variant variant;
  variant.key = store::variant_key(inputs);
  variant.repo = snapshot.repo;
  variant.commit = snapshot.commit;
  variant.recipe = inputs.recipe;
  variant.converter = inputs.converter;
  variant.sources = inputs.sources;
  variant.result = sha(bytes);
  variant.size = bytes.size();
  variant.file_name = store::variant_file_name(snapshot, recipe, variant.key);
  variant.build_ms = 12;
  variant.added = 1'700'000'000;
  return variant;
}

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, std::string_view text);

/// Every promise of Store's class comment, checked over files and rows alike. Fails the test.
void check_invariants(store::Store& store);

} // namespace modeld::test
