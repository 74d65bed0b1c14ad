// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/fd.hpp"
#include "store/ingest.hpp"
#include "store/pieces.hpp"
#include "store/shelf.hpp"
#include "store/side_worker.hpp"
#include "store/state.hpp"
#include "validate/sha256.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace modeld::store {

/// What an Ingest is made of; private to the store.
struct Ingest::State {
  Store::State* store = nullptr;
  Expected expected;
  Fd file;
  std::string path;    ///< under tmp/
  std::string partial; ///< key of a resumable ingest, or empty
  std::uint64_t offset = 0;
  std::uint64_t writeback = 0; ///< up to here the kernel was told to write to the disk
  std::uint64_t uncached = 0;  ///< up to here all is on the disk, and not in the page cache
  bool failed = false;
  bool lost = false;     ///< the disk did not take what was written
  bool replaced = false; ///< damaged bytes had the name before
  bool finished = false; ///< published or dropped: nothing left to clean up
  validate::PieceHasher sha256{k_piece_bytes};
  std::optional<validate::GitBlobHasher> git;
  std::optional<BlobInfo> proved;
  Shelf shelf; ///< of a resumable ingest
  Result<void> written_beside;
  std::unique_ptr<SideWorker> side; ///< last: it uses the file

  ~State() { end(); }

  std::string what() const { return expected.what.empty() ? "a blob" : expected.what; }

  // ---- ingest.cpp
  void start_hashing();
  void update(std::span<const std::byte> bytes);
  void hash(std::span<const std::byte> bytes);
  /// Large pieces are written while they are hashed.
  Result<void> take(std::span<const std::byte> bytes);
  /// Lets the disk work while the rest is on its way: the sync at the end finds little left to do.
  Result<void> start_writeback(std::uint64_t end);
  /// Takes what the file already holds.
  Result<void> absorb();
  /// The id of bytes whose number was not known before, read back.
  Result<GitOid> git_id_afterwards() const;
  void discard();
  /// Note and shelf; what stays is swept at the next start.
  void drop_beside();
  void release_partial();
  /// Without commit: a plain file goes, a resumable one keeps what is known to be written.
  void end();

  // ---- ingest_publish.cpp
  tl::unexpected<Error> mismatch(std::string_view of, std::string wanted, std::string found);
  /// Puts wrong bytes of a download aside, one file for each promise, as long as there is room to
  /// fetch them again; a collection takes it after a while. Its path, or empty where it was not
  /// kept.
  std::string keep_evidence() const;
  Result<BlobInfo> check();
  /// Compares size and digests with what is expected, once.
  Result<BlobInfo> prove();
  /// Whether the file under the blob's name is the one that was proved when its row was written.
  Result<bool> is_there() const;
  /// Into place, unless an equal blob is there already; damage is replaced by these proved bytes.
  Result<void> place();
  Result<void> write_row(Index& index);
  /// What showed the damaged file shows this one now.
  Result<void> mend_views() const;
  /// So that a repair can tell later which bytes are wrong. Without it, it takes all of them.
  void note_pieces();
};

} // namespace modeld::store
