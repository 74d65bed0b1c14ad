// SPDX-License-Identifier: Apache-2.0
#include "validate/piece_hasher.hpp"

// The state inside is what the newer interface does not give; its functions stay for compatibility.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <algorithm>

namespace modeld::validate {
namespace {

Sha256State state_of(const SHA256_CTX& context) {
  Sha256State state;
  std::copy(std::begin(context.h), std::end(context.h), state.words.begin());
  return state;
}

SHA256_CTX context_at(const std::optional<Sha256State>& before, std::uint64_t offset) {
  SHA256_CTX context;
  SHA256_Init(&context);
  if (!before) return context;
  std::copy(before->words.begin(), before->words.end(), std::begin(context.h));
  const std::uint64_t bits = offset * 8; // 2^61 bytes are more than any file has
  context.Nl = static_cast<SHA_LONG>(bits & 0xFFFFFFFFU);
  context.Nh = static_cast<SHA_LONG>(bits >> 32U);
  return context;
}

} // namespace

struct PieceHasher::Context {
  std::uint64_t piece = 0;
  std::uint64_t to_next = 0; ///< bytes until the piece is whole
  SHA256_CTX hash{};
  std::vector<Sha256State> states;
};

PieceHasher::PieceHasher(std::uint64_t piece_bytes) : context_(std::make_unique<Context>()) {
  context_->piece = piece_bytes;
  context_->to_next = piece_bytes;
  SHA256_Init(&context_->hash);
}
PieceHasher::~PieceHasher() = default;
PieceHasher::PieceHasher(PieceHasher&&) noexcept = default;
PieceHasher& PieceHasher::operator=(PieceHasher&&) noexcept = default;

void PieceHasher::update(std::span<const std::byte> bytes) {
  Context& c = *context_;
  while (!bytes.empty()) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), c.to_next));
    SHA256_Update(&c.hash, bytes.data(), n);
    bytes = bytes.subspan(n);
    c.to_next -= n;
    if (c.to_next > 0) continue;
    c.states.push_back(state_of(c.hash));
    c.to_next = c.piece;
  }
}

Sha256Digest PieceHasher::finish() {
  Sha256Digest digest;
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.bytes.data()), &context_->hash);
  return digest;
}

const std::vector<Sha256State>& PieceHasher::states() const {
  return context_->states;
}

Sha256State hash_piece(const std::optional<Sha256State>& before, std::uint64_t offset,
                       std::span<const std::byte> piece) {
  SHA256_CTX context = context_at(before, offset);
  SHA256_Update(&context, piece.data(), piece.size());
  return state_of(context);
}

Sha256Digest hash_last_piece(const std::optional<Sha256State>& before, std::uint64_t offset,
                             std::span<const std::byte> rest) {
  SHA256_CTX context = context_at(before, offset);
  SHA256_Update(&context, rest.data(), rest.size());
  Sha256Digest digest;
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.bytes.data()), &context);
  return digest;
}

} // namespace modeld::validate
