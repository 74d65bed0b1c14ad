// SPDX-License-Identifier: Apache-2.0
#include "store/variant.hpp"

#include "schema/json.hpp"
#include "schema/version.hpp"
#include "validate/sha256.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <span>

// Key text, version 1; lengths before what a user may have named, so that no two inputs are alike:
//   modeld.variant/1
//   name <bytes>:<name>
//   converter <version>
//   recipe <bytes>:<canonical>
//   imatrix <64 hex or ->
//   source <64 hex> <bytes>:<path>      for each file, by path
//
// Manifest, version 1, keys in this order:
//   {"format":"modeld.variant","version":1,"key":"<64 hex>","repo":"org/name","commit":"<40 hex>",
//    "recipe":"Q4_K_M;via=AUTO","converter":"1","imatrix":"<64 hex>" or null,
//    "sources":[{"path":"...","sha256":"<64 hex>"},...],"result":"<64 hex>","size":n,
//    "file_name":"...","build_ms":n,"added":n}

namespace modeld::store {
namespace {

constexpr std::string_view k_format = "modeld.variant";
constexpr std::uint64_t k_manifest_version = 1;

Result<Sha256Digest> sha256_member(const boost::json::object& object, std::string_view name) {
  MODELD_ASSIGN(const auto text, json_string(object, name));
  return Sha256Digest::parse(text);
}

Result<std::vector<VariantSource>> read_sources(const boost::json::object& object) {
  MODELD_ASSIGN(const auto* list, json_array(object, "sources"));
  std::vector<VariantSource> sources;
  for (const auto& value : *list) {
    if (!value.is_object()) {
      return fail(Errc::malformed, "reading member 'sources': expected objects");
    }
    VariantSource source;
    MODELD_ASSIGN(source.path, json_string(value.get_object(), "path"));
    MODELD_TRY(check_repo_path(source.path));
    MODELD_ASSIGN(source.sha256, sha256_member(value.get_object(), "sha256"));
    if (!sources.empty() && sources.back().path >= source.path) {
      return fail(Errc::malformed,
                  fmt::format("reading member 'sources': '{}' is out of order", source.path));
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

Result<Variant> variant_from_json(const boost::json::object& object) {
  MODELD_ASSIGN(const auto format, json_string(object, "format"));
  MODELD_ASSIGN(const auto version, json_uint(object, "version"));
  if (format != k_format || version != k_manifest_version) {
    return fail(Errc::malformed, fmt::format("format '{}' version {}, expected '{}' version {}",
                                             format, version, k_format, k_manifest_version));
  }
  Variant variant;
  MODELD_ASSIGN(variant.key, sha256_member(object, "key"));
  MODELD_ASSIGN(const auto repo, json_string(object, "repo"));
  MODELD_ASSIGN(variant.repo, RepoId::parse(repo));
  MODELD_ASSIGN(const auto commit, json_string(object, "commit"));
  MODELD_ASSIGN(variant.commit, GitOid::parse(commit));
  MODELD_ASSIGN(variant.recipe, json_string(object, "recipe"));
  MODELD_ASSIGN(variant.converter, json_string(object, "converter"));
  if (const auto* imatrix = object.if_contains("imatrix"); imatrix && !imatrix->is_null()) {
    MODELD_ASSIGN(variant.imatrix, sha256_member(object, "imatrix"));
  }
  MODELD_ASSIGN(variant.sources, read_sources(object));
  MODELD_ASSIGN(variant.result, sha256_member(object, "result"));
  MODELD_ASSIGN(variant.size, json_uint(object, "size"));
  MODELD_ASSIGN(variant.file_name, json_string(object, "file_name"));
  MODELD_TRY(check_repo_path(variant.file_name));
  MODELD_ASSIGN(variant.build_ms, json_uint(object, "build_ms"));
  MODELD_ASSIGN(const auto added, json_uint(object, "added"));
  variant.added = static_cast<UnixTime>(added);
  return variant;
}

/// What parse_target makes of the target alone, for the model or its projector.
bool is_plain(const Recipe& recipe) {
  auto plain = Recipe::parse_target(recipe.target);
  if (plain) plain->mmproj = recipe.mmproj;
  return plain && *plain == recipe;
}

} // namespace

std::string variant_key_text(const VariantInputs& inputs) {
  std::string text =
      fmt::format("{}/1\nname {}:{}\nconverter {}\nrecipe {}:{}\nimatrix {}\n", k_format,
                  inputs.name.size(), inputs.name, inputs.converter, inputs.recipe.size(),
                  inputs.recipe, inputs.imatrix ? inputs.imatrix->hex() : "-");
  for (const VariantSource& source : inputs.sources) {
    text += fmt::format("source {} {}:{}\n", source.sha256.hex(), source.path.size(), source.path);
  }
  return text;
}

Sha256Digest variant_key(const VariantInputs& inputs) {
  const std::string text = variant_key_text(inputs);
  return validate::sha256_of(std::as_bytes(std::span(text)));
}

VariantInputs variant_inputs(const Snapshot& snapshot, const Recipe& recipe) {
  VariantInputs inputs;
  inputs.name = snapshot.repo.name();
  inputs.recipe = recipe.canonical();
  inputs.converter = k_converter_version;
  inputs.sources.reserve(snapshot.files.size());
  for (const SnapshotFile& file : snapshot.files) {
    inputs.sources.push_back({file.path, file.sha256});
  }
  return inputs;
}

std::string variant_file_name(const Snapshot& snapshot, const Recipe& recipe,
                              const Sha256Digest& key) {
  const std::string_view kind = recipe.mmproj ? "mmproj-" : "";
  std::string name = fmt::format("{}{}-{}.gguf", kind, snapshot.repo.name(), recipe.target);
  const bool taken = snapshot.find(name) != nullptr || snapshot.find_absent(name) != nullptr;
  if (is_plain(recipe) && !taken) return name;
  return fmt::format("{}{}-{}-{}.gguf", kind, snapshot.repo.name(), recipe.target,
                     key.hex().substr(0, 8));
}

std::string Variant::to_json() const {
  boost::json::array list;
  for (const VariantSource& source : sources) {
    list.push_back(boost::json::object{{"path", source.path}, {"sha256", source.sha256.hex()}});
  }
  const boost::json::object object{
      {"format", k_format},
      {"version", k_manifest_version},
      {"key", key.hex()},
      {"repo", repo.text},
      {"commit", commit.hex()},
      {"recipe", recipe},
      {"converter", converter},
      {"imatrix", imatrix ? boost::json::value(imatrix->hex()) : boost::json::value()},
      {"sources", std::move(list)},
      {"result", result.hex()},
      {"size", size},
      {"file_name", file_name},
      {"build_ms", build_ms},
      {"added", added}};
  return boost::json::serialize(object) + '\n';
}

Result<Variant> Variant::from_json(std::string_view text) {
  MODELD_ASSIGN(const auto value, parse_json(text, "a variant manifest"));
  if (!value.is_object()) {
    return fail(Errc::malformed, "parsing a variant manifest: expected an object");
  }
  auto variant = variant_from_json(value.get_object());
  if (!variant) return fail(std::move(variant).error().context("parsing a variant manifest"));
  return variant;
}

} // namespace modeld::store
