// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/digest.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace modeld::validate {

/// A running SHA-256. Not for sharing between threads; usable again after finish().
class Sha256 {
public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  /// Of everything since construction or the last finish().
  Sha256Digest finish();

private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Sha256Digest sha256_of(std::span<const std::byte> bytes);

/// A running git blob id: SHA-1 over "blob <size>", a NUL and the bytes. The size comes first, so
/// it has to be known; finish() after another number of bytes gives an id that matches nothing.
class GitBlobHasher {
public:
  explicit GitBlobHasher(std::uint64_t size);
  ~GitBlobHasher();
  GitBlobHasher(GitBlobHasher&&) noexcept;
  GitBlobHasher& operator=(GitBlobHasher&&) noexcept;

  void update(std::span<const std::byte> bytes);
  GitOid finish();

private:
  struct Context;
  std::unique_ptr<Context> context_;
};

GitOid git_blob_id(std::span<const std::byte> bytes);

} // namespace modeld::validate
