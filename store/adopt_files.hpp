// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/adopt.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace modeld::store {

struct SourceFile {
  std::string path; ///< in the snapshot
  std::filesystem::path where;
  std::string claim; ///< what its name there says: a SHA-256, a git id, or nothing
};

/// Takes single files of an adoption: proved, and without a second copy where there is a way.
class AdoptFiles {
public:
  AdoptFiles(Store& store, const AdoptOptions& options, Progress* progress)
      : store_(store), options_(options), progress_(progress) {}

  /// digest_mismatch where the bytes are not those that the name claims.
  Result<SnapshotFile> take(const SourceFile& source, Adopted& adopted,
                            std::vector<BlobHold>& holds);
  /// What was reserved for the files taken so far is charged to somebody, or never will be.
  void forget_space() { space_.clear(); }

private:
  Result<BlobInfo> bring_in(const SourceFile& source, const BlobInfo& known, Adopted& adopted);

  Store& store_;
  const AdoptOptions& options_;
  Progress* progress_;
  std::vector<std::shared_ptr<SpaceReservation>> space_;
};

} // namespace modeld::store
