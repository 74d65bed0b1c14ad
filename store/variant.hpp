// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/recipe.hpp"
#include "store/records.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::store {

/// A source file of a build, as the key sees it.
struct VariantSource {
  std::string path;
  Sha256Digest sha256;

  bool operator==(const VariantSource&) const = default;
};

/// Everything that decides the bytes of a variant.
struct VariantInputs {
  std::string name;                   ///< FileSet::name(): general.name comes from it
  std::string recipe;                 ///< Recipe::canonical()
  std::string converter;              ///< k_converter_version
  std::vector<VariantSource> sources; ///< sorted by path
  std::optional<Sha256Digest> imatrix;
};

/// Pure: SHA-256 of the canonical text below. Same key, same bytes.
Sha256Digest variant_key(const VariantInputs& inputs);
/// What is hashed: "modeld.variant/1", then one "name value" line each; documented in variant.cpp.
std::string variant_key_text(const VariantInputs& inputs);
/// Inputs of a build from a whole snapshot.
VariantInputs variant_inputs(const Snapshot& snapshot, const Recipe& recipe);

/// "<Name>-<TARGET>.gguf", of a projector "mmproj-<Name>-<TARGET>.gguf", where the snapshot has no
/// file of that name and the recipe is the plain one of its target; else with the first 8 digits of
/// the key, so that different bytes have different names.
std::string variant_file_name(const Snapshot& snapshot, const Recipe& recipe,
                              const Sha256Digest& key);

/// A GGUF derived from a snapshot, with its provenance: variants/<key>.json.
struct Variant {
  Sha256Digest key;
  RepoId repo;
  GitOid commit;
  std::string recipe;    ///< canonical
  std::string converter; ///< version
  std::vector<VariantSource> sources;
  std::optional<Sha256Digest> imatrix;
  Sha256Digest result; ///< the blob
  std::uint64_t size = 0;
  std::string file_name; ///< in the view of the snapshot
  std::uint64_t build_ms = 0;
  UnixTime added = 0;

  bool operator==(const Variant&) const = default;

  std::string to_json() const;
  static Result<Variant> from_json(std::string_view text);
};

} // namespace modeld::store
