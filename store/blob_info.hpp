// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/digest.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace modeld::store {

class SpaceReservation;

/// Blobs up to this size get their git id computed and indexed, so that a file the Hub lists by
/// git id alone can be found here. The Hub keeps regular (non-LFS) files below 10 MiB.
inline constexpr std::uint64_t k_git_id_limit = 16U << 20;

/// A blob that is in place and proved.
struct BlobInfo {
  Sha256Digest sha256;
  std::uint64_t size = 0;
  std::optional<GitOid> git_oid; ///< of the content; where it was expected or size <= the limit

  bool operator==(const BlobInfo&) const = default;
};

/// Bytes of an unfinished file that came before those in front of them.
struct ShelvedPart {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  bool operator==(const ShelvedPart&) const = default;
};

/// What is promised about bytes that are about to arrive. All that is given is checked.
struct Expected {
  std::optional<std::uint64_t> size;
  std::optional<Sha256Digest> sha256;
  std::optional<GitOid> git_oid; ///< of the content (not of an LFS pointer)
  std::string what;              ///< for messages: "org/name@commit: model.safetensors"
  std::string job; ///< job that keeps the blob from collection until it ends; or empty
  std::shared_ptr<SpaceReservation> space; ///< shrinks as bytes are written; may be null
  /// Large content leaves the page cache as soon as it is on the disk: nobody reads it right away,
  /// and it must not push a model out of memory that is running.
  bool uncached = false;
};

} // namespace modeld::store
