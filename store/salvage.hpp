// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/store.hpp"

#include <filesystem>
#include <optional>

namespace modeld::store {

/// A blob that is lost under blobs/ may live on under the other names that it was given: in a view,
/// or in another program's folder. Such a file, hashed and found right; nothing where there is
/// none. The caller holds State::manifests.
Result<std::optional<std::filesystem::path>>
find_other_name(Store& store, const Sha256Digest& digest, std::uint64_t size);

/// Puts it back under blobs/: the same inode where that is ours alone to write, else a copy.
Result<void> put_back(Store& store, const Sha256Digest& digest, const std::filesystem::path& from);

} // namespace modeld::store
