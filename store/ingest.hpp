// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/byte_sink.hpp"
#include "store/blob_info.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

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
  /// The first half of it: size and digests are right, nothing is visible. To be followed by
  /// commit() or commit_all(), and by no write.
  Result<BlobInfo> prove();

  /// A few words that stay beside a resumable file for as long as it is there, and that replace the
  /// former ones; io where they cannot be kept, which leaves the former ones. May be called while
  /// another thread writes.
  Result<void> set_note(std::string_view text);
  /// Those words; empty where there are none, or none that can be read.
  std::string note() const;

  /// Forgets the bytes, also those of a resumable file.
  void drop();
  /// Starts again at offset 0: the source does not continue where we stopped.
  Result<void> restart();

  struct State;
  explicit Ingest(std::unique_ptr<State> state);
  State& state() { return *state_; }

private:
  friend class Store;
  std::unique_ptr<State> state_;
};

/// Commits many of one store together, which takes hardly longer than one. All are there, or an
/// error: then some may be, and all count as failed.
Result<void> commit_all(std::span<Ingest* const> ingests);

} // namespace modeld::store
