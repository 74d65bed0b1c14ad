// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/progress.hpp"
#include "store/store.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace modeld::store {

/// What travels in one bundle.
struct BundleContent {
  Snapshot snapshot;
  std::vector<Variant> variants;
  std::vector<std::string> revisions; ///< names that mean the commit; sorted
};

/// A snapshot with variants as a plain tar, read from front to back: `SHA256SUMS` first, so that
/// `sha256sum -c` can prove what `tar` extracted, then the manifests, then files/<path> and
/// variants/<name>. Equal content gives equal bytes. One thread; must not outlive the store. Keeps
/// the blobs from collection while it lives.
class BundleReader {
public:
  BundleReader(Store& store, const BundleContent& content);
  ~BundleReader();
  BundleReader(const BundleReader&) = delete;
  BundleReader& operator=(const BundleReader&) = delete;

  std::uint64_t size() const; ///< of the whole
  /// The next bytes: as many as fit, less only in front of the end, 0 at it. corrupt where stored
  /// bytes are not those of their digest, before the last of them are given: a bundle with damage
  /// is never whole.
  Result<std::size_t> read(std::span<std::byte> into);

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// All of it into a sink.
Result<void> export_bundle(Store& store, const BundleContent& content, ByteSink& out,
                           Progress* progress);
/// Bytes that export_bundle() will write.
std::uint64_t bundle_bytes(const BundleContent& content);

/// Reads a bundle: every file is proved by the digest of its manifest while it is stored, and
/// nothing is listed before all of them are. Names that mean another commit here stay as they are.
/// Needs no network. `read` fills the span or fails. payer: whose quota it counts for.
Result<BundleContent> import_bundle(Store& store,
                                    const std::function<Result<void>(std::span<std::byte>)>& read,
                                    Progress* progress, std::optional<std::uint32_t> payer = {});
Result<BundleContent> import_bundle(Store& store, const std::filesystem::path& file,
                                    Progress* progress, std::optional<std::uint32_t> payer = {});

} // namespace modeld::store
