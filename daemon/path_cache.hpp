// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/api.hpp"
#include "schema/digest.hpp"
#include "schema/guarded.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

namespace modeld::daemon {

/// Answers about files that are here, as long as nothing changed (Store::generation): most requests
/// ask for the same few paths again and again. Any thread.
class PathCache {
public:
  struct Entry {
    api::Variant variant;
    Sha256Digest digest;
  };

  std::optional<Entry> find(const std::string& question, std::uint64_t generation);
  /// `generation` as it was before the answer was looked up.
  void put(const std::string& question, std::uint64_t generation, Entry entry);

private:
  static constexpr std::size_t k_most = 4096;
  struct Known {
    std::uint64_t generation = 0;
    std::unordered_map<std::string, Entry> entries;
  };
  Guarded<Known> known_;
};

} // namespace modeld::daemon
