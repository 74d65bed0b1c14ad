// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/digest.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace modeld::validate {

/// A SHA-256 between two of its blocks of 64 bytes: with it a hash can go on in the middle of a
/// file, so that each piece of a file can be proved for itself.
struct Sha256State {
  std::array<std::uint32_t, 8> words{};

  bool operator==(const Sha256State&) const = default;
};

/// A running SHA-256 that keeps its state after each whole piece. Costs what a SHA-256 costs. Not
/// for sharing between threads.
class PieceHasher {
public:
  explicit PieceHasher(std::uint64_t piece_bytes); ///< a multiple of 64
  ~PieceHasher();
  PieceHasher(PieceHasher&&) noexcept;
  PieceHasher& operator=(PieceHasher&&) noexcept;

  void update(std::span<const std::byte> bytes);
  /// Of everything so far; only once.
  Sha256Digest finish();
  /// After piece 0, 1, ...; a piece that is not whole has none.
  const std::vector<Sha256State>& states() const;

private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// The state behind one whole piece at `offset`, from the state in front of it; nothing stands for
/// the beginning of the file. Sizes are multiples of 64.
Sha256State hash_piece(const std::optional<Sha256State>& before, std::uint64_t offset,
                       std::span<const std::byte> piece);
/// The digest of a file that ends with these bytes.
Sha256Digest hash_last_piece(const std::optional<Sha256State>& before, std::uint64_t offset,
                             std::span<const std::byte> rest);

} // namespace modeld::validate
