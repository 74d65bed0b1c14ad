// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/progress.hpp"
#include "store/store.hpp"
#include "validate/piece_hasher.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace modeld::store {

class Disk;

/// So many bytes of a blob can be proved without the rest of it.
inline constexpr std::uint64_t k_piece_bytes = 4U << 20;

/// Keeps what was learned while a blob was hashed, as pieces/ab/<digest>. Advice: it may be lost,
/// and what is read back is believed only as far as it leads to the blob's own digest.
Result<void> write_pieces(const Disk& disk, const Sha256Digest& digest,
                          std::span<const validate::Sha256State> states,
                          const std::string& temporary);
Result<std::vector<validate::Sha256State>> read_pieces(const Disk& disk,
                                                       const Sha256Digest& digest);

struct ByteSpan {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;

  bool operator==(const ByteSpan&) const = default;
};

/// Which bytes of a blob in quarantine are wrong, to whole pieces, in order and joined. All of it
/// where that is not known. not_found where there is no such blob.
Result<std::vector<ByteSpan>> find_bad_bytes(Store& store, const Sha256Digest& digest,
                                             Progress* progress);

/// Puts a damaged blob together again: its good bytes from quarantine, the others from elsewhere.
/// One thread; must not outlive the store. Without commit() nothing stays.
class Patch {
public:
  static Result<std::unique_ptr<Patch>> begin(Store& store, const Sha256Digest& digest,
                                              std::string job);
  ~Patch();
  Patch(const Patch&) = delete;
  Patch& operator=(const Patch&) = delete;

  Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Hashes the whole and publishes it in the damaged one's place; digest_mismatch where it is
  /// still wrong.
  Result<BlobInfo> commit();

private:
  struct State;
  explicit Patch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

} // namespace modeld::store
