// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/progress.hpp"
#include "store/store.hpp"

#include <filesystem>
#include <functional>
#include <span>
#include <vector>

namespace modeld::store {

/// What travels in one bundle.
struct BundleContent {
  Snapshot snapshot;
  std::vector<Variant> variants;
};

/// Writes a snapshot with variants as a plain tar: `SHA256SUMS` first, so that `sha256sum -c` can
/// prove what `tar` extracted, then the manifests, then files/<path> and variants/<name>. Equal
/// content gives equal bytes.
Result<void> export_bundle(Store& store, const BundleContent& content, ByteSink& out,
                           Progress* progress);
/// Bytes that export_bundle() will write.
std::uint64_t bundle_bytes(const BundleContent& content);

/// Reads a bundle: every file is proved by the digest of its manifest while it is stored, and
/// nothing is listed before all of them are. Needs no network. `read` fills the span or fails.
Result<BundleContent> import_bundle(Store& store,
                                    const std::function<Result<void>(std::span<std::byte>)>& read,
                                    Progress* progress);
Result<BundleContent> import_bundle(Store& store, const std::filesystem::path& file,
                                    Progress* progress);

} // namespace modeld::store
