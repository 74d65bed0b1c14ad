// SPDX-License-Identifier: Apache-2.0
#include "schema/version.hpp"
#include "store/layout.hpp"
#include "store/plain_view.hpp"
#include "store/state.hpp"
#include "store/store.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace modeld::store {
namespace {

/// What the index has for the key already, where it is the same result.
Result<bool> is_published(Index& index, const Variant& variant) {
  MODELD_ASSIGN(const auto there, index.find_variant(variant.key));
  if (!there) return false;
  if (there->result == variant.result) return true;
  return fail(Errc::conflict,
              fmt::format("publishing variant {}: it is here with SHA-256 {}, built now was {}",
                          variant.key.hex(), there->result.hex(), variant.result.hex()),
              "equal keys must give equal bytes: please report this as a bug");
}

Result<void> check_result(Index& index, const Variant& variant) {
  MODELD_ASSIGN(const auto blob, index.find_blob(variant.result));
  if (blob && !blob->damaged && blob->info.size == variant.size) return {};
  return fail(Errc::not_found, fmt::format("publishing variant {}: blob {} of {} bytes is not here",
                                           variant.key.hex(), variant.result.hex(), variant.size));
}

} // namespace

Result<void> Store::publish_variant(const Variant& variant, std::optional<std::uint32_t> payer) {
  State& s = *state_;
  const Changed changed(s);
  MODELD_TRY(check_repo_path(variant.file_name));
  const BlobHold held = hold({variant.result});
  const std::lock_guard manifests(s.manifests);
  {
    auto index = s.writer.lock();
    MODELD_TRY(check_result(*index, variant));
    MODELD_ASSIGN(const bool there, is_published(*index, variant));
    if (there) return link_variant(s.disk, variant, s.temporary("link"));
    MODELD_ASSIGN(const auto snapshot, index->find_snapshot(variant.repo, variant.commit));
    const auto* file = snapshot ? snapshot->find(variant.file_name) : nullptr;
    if (file != nullptr && file->sha256 != variant.result) {
      return fail(Errc::conflict,
                  fmt::format("publishing variant '{}': the snapshot has a file of that name",
                              variant.file_name));
    }
  }
  MODELD_TRY(s.disk.replace_file(layout::variant_manifest(variant.key), variant.to_json(), 0644));
  MODELD_TRY(link_variant(s.disk, variant, s.temporary("link")));
  auto index = s.writer.lock();
  MODELD_ASSIGN(auto txn, index->begin());
  if (payer) MODELD_TRY(index->charge(variant.result, *payer));
  MODELD_TRY(index->put_variant(variant));
  return txn.commit();
}

Result<std::optional<Variant>> Store::find_variant(const Sha256Digest& key) const {
  {
    auto index = state_->reader.lock();
    MODELD_ASSIGN(auto variant, index->find_variant(key));
    if (variant) {
      MODELD_ASSIGN(const auto blob, index->find_blob(variant->result));
      // A damaged result counts as not built: the next request builds it again.
      return blob && !blob->damaged ? std::move(variant) : std::nullopt;
    }
  }
  return state_->shared->find_variant(key);
}

Result<std::optional<Variant>> Store::find_variant(const RepoId& repo, const GitOid& commit,
                                                   std::string_view recipe) const {
  std::optional<Sha256Digest> key;
  {
    auto index = state_->reader.lock();
    MODELD_ASSIGN(key, index->find_variant_key(repo, commit, recipe, k_converter_version));
  }
  if (!key) return state_->shared->find_variant(repo, commit, recipe, k_converter_version);
  return find_variant(*key);
}

Result<std::vector<Variant>> Store::list_variants() const {
  std::vector<Variant> variants;
  {
    auto index = state_->reader.lock();
    MODELD_ASSIGN(variants, index->list_variants());
  }
  const auto own = static_cast<std::ptrdiff_t>(variants.size());
  for (Variant& variant : state_->shared->list_variants()) {
    const bool known =
        std::any_of(variants.begin(), variants.begin() + own,
                    [&variant](const Variant& other) { return other.key == variant.key; });
    if (!known) variants.push_back(std::move(variant));
  }
  return variants;
}

Result<void> Store::remove_variant(const Sha256Digest& key) {
  State& s = *state_;
  const Changed changed(s);
  const std::lock_guard manifests(s.manifests);
  std::optional<Variant> variant;
  bool shown_by_snapshot = false;
  {
    auto index = s.writer.lock();
    MODELD_ASSIGN(variant, index->find_variant(key));
    if (!variant) {
      return fail(Errc::not_found, fmt::format("removing variant {}: no such variant", key.hex()));
    }
    MODELD_ASSIGN(const auto snapshot, index->find_snapshot(variant->repo, variant->commit));
    shown_by_snapshot = snapshot && snapshot->find(variant->file_name) != nullptr;
    MODELD_ASSIGN(auto txn, index->begin());
    MODELD_TRY(index->delete_variant(key));
    MODELD_TRY(txn.commit());
  }
  MODELD_TRY(s.disk.unlink(layout::variant_manifest(key)));
  MODELD_TRY(s.disk.sync_folder(layout::k_variants));
  if (shown_by_snapshot) return {};
  return unlink_variant(s.disk, *variant);
}

std::filesystem::path Store::variant_path(const Variant& variant) const {
  const std::string path = layout::view(variant.repo, variant.commit) + '/' + variant.file_name;
  if (!state_->shared->empty() && !state_->disk.exists(path)) {
    if (const auto shared = state_->shared->find_path(path)) return *shared;
  }
  return root() / path;
}

} // namespace modeld::store
