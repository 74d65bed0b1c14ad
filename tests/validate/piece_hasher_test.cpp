// SPDX-License-Identifier: Apache-2.0
#include "validate/piece_hasher.hpp"

#include "validate/sha256.hpp"

#include <catch2/catch.hpp>

using namespace modeld;
using namespace modeld::validate;

namespace {

std::vector<std::byte> some_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>((i * 131 + i / 251) & 0xFFU);
  }
  return bytes;
}

} // namespace

TEST_CASE("PieceHasher gives the SHA-256, however the bytes come", "[validate][pieces]") {
  for (const std::size_t size : {0U, 1U, 63U, 64U, 127U, 128U, 129U, 1000U}) {
    const auto bytes = some_bytes(size);
    for (const std::size_t step : {1U, 7U, 64U, 1000U}) {
      PieceHasher hasher(128);
      for (std::size_t at = 0; at < size; at += step) {
        hasher.update(std::span(bytes).subspan(at, std::min(step, size - at)));
      }
      CHECK(hasher.finish() == sha256_of(bytes));
      CHECK(hasher.states().size() == size / 128);
    }
  }
}

TEST_CASE("each piece is proved for itself", "[validate][pieces]") {
  auto bytes = some_bytes(128 * 3 + 50);
  PieceHasher hasher(128);
  hasher.update(bytes);
  const auto digest = hasher.finish();
  const auto states = hasher.states();
  REQUIRE(states.size() == 3);
  const auto piece = [&bytes](std::size_t i) { return std::span(bytes).subspan(i * 128, 128); };
  CHECK(hash_piece({}, 0, piece(0)) == states[0]);
  CHECK(hash_piece(states[0], 128, piece(1)) == states[1]);
  CHECK(hash_piece(states[1], 256, piece(2)) == states[2]);
  CHECK(hash_last_piece(states[2], 384, std::span(bytes).subspan(384)) == digest);
  bytes[130] ^= std::byte{1};
  CHECK(hash_piece({}, 0, piece(0)) == states[0]);
  CHECK(hash_piece(states[0], 128, piece(1)) != states[1]);
  CHECK(hash_piece(states[1], 256, piece(2)) == states[2]);
}
