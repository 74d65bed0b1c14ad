// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"
#include "store/blob_info.hpp"
#include "store/disk.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::store {

/// Parts of one resumable file that came before it was their turn: a file each, beside it under
/// tmp/. Nothing is synced, since all of it can be fetched again; so each file ends with the
/// SHA-256 of its bytes, and one that does not check is as good as none. One thread at a time.
class Shelf {
public:
  /// Longest part that is kept: it is read back in one piece.
  static constexpr std::uint64_t k_longest = 64U << 20;

  /// Finds what is there for the partial file. What begins before `begin`, ends beyond `end` or
  /// covers what another part has is removed.
  void open(const Disk& disk, std::string partial, std::uint64_t begin, std::uint64_t end);

  /// Writes a part by way of a temporary file, which is gone afterwards in any case. What is empty,
  /// too long or beyond the file's end is refused (invalid_argument), as is all before open().
  Result<void> put(std::uint64_t offset, std::span<const std::vector<std::byte>> pieces,
                   const std::string& temporary);
  /// Gives a part back, and removes it, also where it does not check (corrupt). not_found.
  Result<std::vector<std::byte>> take(std::uint64_t offset);
  /// In order.
  std::vector<ShelvedPart> list() const;
  /// Length of the part at this offset; 0 where there is none.
  std::uint64_t length_at(std::uint64_t offset) const;
  void clear();

private:
  std::string path_of(std::uint64_t offset) const;
  void remove(std::uint64_t offset) const;

  const Disk* disk_ = nullptr;
  std::string partial_;
  std::uint64_t end_ = 0;                        ///< of the file
  std::map<std::uint64_t, std::uint64_t> parts_; ///< offset, length
};

/// Where the parts beside a partial file (its path) begin, whatever they hold.
Result<std::vector<std::uint64_t>> shelved_offsets(const Disk& disk, std::string_view partial);

} // namespace modeld::store
