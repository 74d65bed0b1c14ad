// SPDX-License-Identifier: Apache-2.0
#include "daemon/path_cache.hpp"

#include <utility>

namespace modeld::daemon {

std::optional<PathCache::Entry> PathCache::find(const std::string& question,
                                                std::uint64_t generation) {
  auto known = known_.lock();
  if (known->generation != generation) return std::nullopt;
  const auto at = known->entries.find(question);
  return at == known->entries.end() ? std::nullopt : std::optional(at->second);
}

void PathCache::put(const std::string& question, std::uint64_t generation, Entry entry) {
  auto known = known_.lock();
  if (generation < known->generation) return; // older than what is known
  if (known->generation != generation || known->entries.size() >= k_most) known->entries.clear();
  known->generation = generation;
  known->entries.insert_or_assign(question, std::move(entry));
}

} // namespace modeld::daemon
