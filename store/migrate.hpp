// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/embedded_file.hpp"
#include "store/sqlite.hpp"

#include <span>

namespace modeld::store {

/// Schema version that this program writes: PRAGMA user_version, raised by one for each file under
/// schema/migrations/ (NNNN_name.sql, NNNN the version that it leads to).
inline constexpr int k_index_version = 4;

/// Brings an index to our version in one transaction: a new one by index.sql, an older one by the
/// migrations in between, a current one not at all. unsupported for a newer one, with the version
/// that wrote it.
Result<void> migrate(Db& db, std::span<const EmbeddedFile> files, int version = k_index_version);

/// corrupt where a table or an index of the contract is missing.
Result<void> check_tables(Db& db, std::span<const EmbeddedFile> files);

} // namespace modeld::store
