// SPDX-License-Identifier: Apache-2.0
#include "validate/sha256.hpp"

#include <openssl/evp.h>

#include <cstdlib>
#include <string>

namespace modeld::validate {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

/// OpenSSL's digests fail only when memory runs out or the build lacks the algorithm: neither is
/// something to go on from.
void require(int ok) {
  if (ok != 1) std::abort();
}

class Hash {
public:
  explicit Hash(const EVP_MD* algorithm) : algorithm_(algorithm), context_(EVP_MD_CTX_new()) {
    require(context_ != nullptr ? 1 : 0);
    restart();
  }
  void restart() { require(EVP_DigestInit_ex(context_.get(), algorithm_, nullptr)); }
  void update(std::span<const std::byte> bytes) {
    require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
  }
  template <class Digest>
  Digest finish() {
    Digest digest;
    require(EVP_DigestFinal_ex(context_.get(),
                               reinterpret_cast<unsigned char*>(digest.bytes.data()), nullptr));
    restart();
    return digest;
  }

private:
  const EVP_MD* algorithm_;
  std::unique_ptr<EVP_MD_CTX, FreeContext> context_;
};

} // namespace

struct Sha256::Context {
  Hash hash{EVP_sha256()};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  context_->hash.update(bytes);
}
Sha256Digest Sha256::finish() {
  return context_->hash.finish<Sha256Digest>();
}

Sha256Digest sha256_of(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

struct GitBlobHasher::Context {
  Hash hash{EVP_sha1()};
};

GitBlobHasher::GitBlobHasher(std::uint64_t size) : context_(std::make_unique<Context>()) {
  const std::string header = "blob " + std::to_string(size) + '\0';
  context_->hash.update(std::as_bytes(std::span(header)));
}
GitBlobHasher::~GitBlobHasher() = default;
GitBlobHasher::GitBlobHasher(GitBlobHasher&&) noexcept = default;
GitBlobHasher& GitBlobHasher::operator=(GitBlobHasher&&) noexcept = default;

void GitBlobHasher::update(std::span<const std::byte> bytes) {
  context_->hash.update(bytes);
}
GitOid GitBlobHasher::finish() {
  return context_->hash.finish<GitOid>();
}

GitOid git_blob_id(std::span<const std::byte> bytes) {
  GitBlobHasher hash(bytes.size());
  hash.update(bytes);
  return hash.finish();
}

} // namespace modeld::validate
