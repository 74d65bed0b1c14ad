// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/host.hpp"
#include "fetch/part_shelf.hpp"
#include "schema/byte_sink.hpp"
#include "schema/snapshot.hpp"
#include "store/store.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace modeld::daemon {

/// Where one file of a repository goes: an ingest of the store, named by the content that is
/// promised. Large files go on where an earlier try stopped; small ones open only when their first
/// byte arrives, so that a repository of many files does not hold them all open. Of a large one the
/// parts that come before their turn are kept as well. One thread; write() may be called on another
/// one meanwhile.
class FileSink final : public ByteSink, public fetch::PartShelf {
public:
  /// Files up to this size are fetched again rather than continued.
  static constexpr std::uint64_t k_small = 8U << 20;

  /// busy while another job fetches the same content.
  static Result<std::unique_ptr<FileSink>> open(store::Store& store, const ListedFile& file,
                                                std::string what, const std::string& job,
                                                std::shared_ptr<store::SpaceReservation> space);

  Result<void> write(std::span<const std::byte> bytes) override;
  std::uint64_t offset() const { return ingest_ ? ingest_->offset() : 0; }
  /// Bytes on the disk: those up to offset(), and the parts behind it.
  std::uint64_t bytes_here() const;
  /// What those bytes are, as an earlier try was told; kept beside them.
  fetch::Validator validator() const;
  void keep(const fetch::Validator& validator);
  /// Small files are committed many at a time.
  bool is_small() const { return key_.empty(); }
  /// Whether the bytes are right; then commit_all() follows.
  Result<void> prove();
  static Result<void> commit_all(std::span<FileSink* const> sinks);
  Result<void> restart();

  Result<void> put(std::uint64_t offset, std::span<const std::vector<std::byte>> pieces) override;
  Result<std::vector<std::byte>> take(std::uint64_t offset) override;
  std::vector<Part> list() override;
  void clear() override;

  /// What is in the store.
  const std::optional<store::BlobInfo>& committed() const { return committed_; }

private:
  FileSink(store::Store& store, store::Expected expected, std::string key)
      : store_(store), expected_(std::move(expected)), key_(std::move(key)) {}
  Result<void> open_ingest();
  /// What is here goes, and comes once more.
  void need_again();

  store::Store& store_;
  store::Expected expected_;
  std::string key_; ///< of the partial file; empty for a small one
  std::unique_ptr<store::Ingest> ingest_;
  std::optional<store::BlobInfo> committed_;
};

} // namespace modeld::daemon
