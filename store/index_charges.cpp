// SPDX-License-Identifier: Apache-2.0
#include "store/index.hpp"

// Who pays for which blob. Rows go by triggers of the schema with the last name of their blob.

namespace modeld::store {

Result<void> Index::charge(const Sha256Digest& digest, std::uint32_t uid) {
  return db_
      .query("INSERT OR IGNORE INTO charges (digest, uid) SELECT ?1, ?2 "
             "WHERE NOT EXISTS (SELECT 1 FROM snapshot_files WHERE digest = ?1) "
             "AND NOT EXISTS (SELECT 1 FROM variants WHERE result = ?1)")
      .bind(digest, std::uint64_t{uid})
      .run();
}

Result<std::uint64_t> Index::charged_to(std::uint32_t uid) {
  auto query = db_.query("SELECT coalesce(sum(b.size), 0) FROM charges c JOIN blobs b "
                         "ON b.digest = c.digest WHERE c.uid = ? AND NOT b.damaged");
  query.bind(std::uint64_t{uid});
  MODELD_ASSIGN(const bool row, query.step());
  return row ? query.size(0) : 0;
}

Result<std::vector<std::pair<std::uint32_t, std::uint64_t>>> Index::list_charges() {
  auto query =
      db_.query("SELECT c.uid, sum(b.size) FROM charges c JOIN blobs b "
                "ON b.digest = c.digest WHERE NOT b.damaged GROUP BY c.uid ORDER BY c.uid");
  std::vector<std::pair<std::uint32_t, std::uint64_t>> charges;
  while (true) {
    MODELD_ASSIGN(const bool row, query.step());
    if (!row) return charges;
    charges.emplace_back(static_cast<std::uint32_t>(query.integer(0)), query.size(1));
  }
}

} // namespace modeld::store
