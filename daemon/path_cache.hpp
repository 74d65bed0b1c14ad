// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/http.hpp"
#include "schema/digest.hpp"
#include "schema/guarded.hpp"
#include "store/quarantine.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace modeld::daemon {

/// Answers about files that are here, as long as nothing changed (Store::generation): most requests
/// ask for the same few paths again and again. The question is a request's body, as it came, and
/// who asks. No answer is given without a look at size and time of the file. Any thread.
class PathCache {
public:
  explicit PathCache(store::Store& store) : store_(store) {}

  /// For threads that may not wait for a disk: only about a file that was looked at a moment ago,
  /// so that what the look needs is in memory.
  std::optional<std::string> answer_at_once(const Peer& peer, std::string_view question);
  std::optional<std::string> answer(const Peer& peer, std::string_view question);
  /// `generation` as it was before the answer was looked up; `digest` is the file's.
  void put(const Peer& peer, std::string_view question, std::uint64_t generation,
           const Sha256Digest& digest, std::string answer);

private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t k_most = 4096;
  static constexpr std::chrono::seconds k_moment{10};

  struct Entry {
    std::string answer;
    Sha256Digest digest;
    store::BlobStamp stamp;
    Clock::time_point looked;
  };
  struct Known {
    std::uint64_t generation = 0;
    std::unordered_map<std::string, Entry> entries;
  };

  std::optional<Entry> find(const std::string& key);

  store::Store& store_;
  Guarded<Known> known_;
};

} // namespace modeld::daemon
