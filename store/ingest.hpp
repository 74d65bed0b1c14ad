// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/byte_sink.hpp"
#include "store/blob_info.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::store {

class Store;

/// One blob on its way in: bytes go to a file under tmp/ and are hashed on the way. Owned by one
/// writer, used from one thread at a time; must not outlive the store.
///
/// 1. Nothing is visible before commit() has proved size and digests.
/// 2. Without commit() the file is unlinked, except for a resumable ingest, which is kept (with
///    what was written and shelved so far) until commit() or drop().
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

  /// Keeps bytes beside a resumable file that came before those in front of them, so that its next
  /// life need not fetch them again: at most Shelf::k_longest, at or behind offset(), where no
  /// other part is. An error leaves nothing behind. These four may be called while another thread
  /// writes, by one thread at a time.
  Result<void> shelve(std::uint64_t offset, std::span<const std::vector<std::byte>> pieces);
  /// Gives the part at this offset back, and keeps it no longer: corrupt where it does not check,
  /// not_found.
  Result<std::vector<std::byte>> unshelve(std::uint64_t offset);
  /// The parts that are kept, in order. Whether they check is seen by unshelve().
  std::vector<ShelvedPart> shelved() const;
  void clear_shelf();

  /// Forgets the bytes, also those of a resumable file.
  void drop();
  /// Starts again at offset 0, with nothing on the shelf: the source does not continue where we
  /// stopped.
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
