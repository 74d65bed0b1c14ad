// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/byte_sink.hpp"
#include "store/blob_info.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace modeld::store {

class Store;

/// One blob on its way in: bytes go to a file under tmp/ and are hashed on the way. Owned by one
/// writer, used from one thread at a time; must not outlive the store.
///
/// 1. Nothing is visible before commit() has proved size and digests.
/// 2. Without commit() the file is unlinked, except for a resumable ingest, which is kept (with
///    what was written so far) until commit() or drop().
/// 3. After an error of write() only commit() is refused; a resumable file keeps what it has.
class Ingest final : public ByteSink {
public:
  ~Ingest() override;

  /// Refuses bytes beyond the expected size with digest_mismatch.
  Result<void> write(std::span<const std::byte> bytes) override;

  /// Bytes that are there: where a resumed download goes on.
  std::uint64_t offset() const;

  /// Checks, then publishes: fsync, mode 0444, into place, fsync of the folder, row. Equal content
  /// that is already there wins and costs nothing. On digest_mismatch the bytes are discarded,
  /// also of a resumable file; details name expected and found.
  Result<BlobInfo> commit();

  /// Forgets the bytes, also those of a resumable file.
  void drop();
  /// Starts again at offset 0: the source does not continue where we stopped.
  Result<void> restart();

  struct State;
  explicit Ingest(std::unique_ptr<State> state);

private:
  friend class Store;
  std::unique_ptr<State> state_;
};

} // namespace modeld::store
