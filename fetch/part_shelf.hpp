// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace modeld::fetch {

/// Where parts of one file lie that came before those in front of them, so that memory is free for
/// others, and so that the file's next download need not ask for them again. Owned by the caller;
/// used on the thread of HubClient::download, also while another one writes to the file's sink.
///
/// Whatever goes wrong here costs a part, never the download.
class PartShelf {
public:
  struct Part {
    std::uint64_t offset = 0; ///< of its first byte in the file
    std::uint64_t length = 0;
  };

  PartShelf() = default;
  PartShelf(const PartShelf&) = delete;
  PartShelf& operator=(const PartShelf&) = delete;
  virtual ~PartShelf() = default;

  /// Keeps bytes of the file from `offset` on.
  virtual Result<void> put(std::uint64_t offset,
                           std::span<const std::vector<std::byte>> pieces) = 0;
  /// Gives the bytes of the part at `offset` back, and keeps them no longer; an error where they
  /// are not those that were put there.
  virtual Result<std::vector<std::byte>> take(std::uint64_t offset) = 0;
  /// What an earlier download left here that still fits behind the sink's bytes.
  virtual std::vector<Part> list() = 0;
  /// The file's content is another one: nothing of it is good any more.
  virtual void clear() = 0;
};

} // namespace modeld::fetch
