// SPDX-License-Identifier: Apache-2.0
#include "daemon/path_cache.hpp"

#include <fmt/format.h>

#include <utility>

namespace modeld::daemon {
namespace {

std::string key_of(const Peer& peer, std::string_view question) {
  return fmt::format("{} {} {}", peer.uid, peer.gid, question);
}

} // namespace

std::optional<PathCache::Entry> PathCache::find(const std::string& key) {
  auto known = known_.lock();
  if (known->generation != store_.generation()) return std::nullopt;
  const auto at = known->entries.find(key);
  return at == known->entries.end() ? std::nullopt : std::optional(at->second);
}

std::optional<std::string> PathCache::answer_at_once(const Peer& peer, std::string_view question) {
  auto entry = find(key_of(peer, question));
  if (!entry || Clock::now() - entry->looked > k_moment) return std::nullopt;
  if (!store::has_stamp(store_, entry->digest, entry->stamp)) return std::nullopt;
  store_.touch(entry->digest);
  return std::move(entry->answer);
}

std::optional<std::string> PathCache::answer(const Peer& peer, std::string_view question) {
  const std::string key = key_of(peer, question);
  auto entry = find(key);
  if (!entry || !store::has_stamp(store_, entry->digest, entry->stamp)) return std::nullopt;
  store_.touch(entry->digest);
  auto known = known_.lock();
  if (const auto at = known->entries.find(key); at != known->entries.end()) {
    at->second.looked = Clock::now();
  }
  return std::move(entry->answer);
}

void PathCache::put(const Peer& peer, std::string_view question, std::uint64_t generation,
                    const Sha256Digest& digest, std::string answer) {
  // Of a file in a shared store there is none: its owner may be far away, and slow.
  const auto stamp = store::stamp_of(store_, digest);
  if (!stamp) return;
  auto known = known_.lock();
  if (generation < known->generation) return; // older than what is known
  if (known->generation != generation || known->entries.size() >= k_most) known->entries.clear();
  known->generation = generation;
  known->entries.insert_or_assign(key_of(peer, question),
                                  Entry{std::move(answer), digest, *stamp, Clock::now()});
}

} // namespace modeld::daemon
