// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/byte_sink.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace modeld::store {

/// A plain file in a tar archive.
struct TarEntry {
  std::string path;
  std::uint64_t size = 0;
};

inline constexpr std::size_t k_tar_block = 512;

/// Header blocks of a regular file: ustar, with a pax record in front where the path or the size
/// does not fit. Mode 0444, owner 0, time 0: equal content gives equal archives.
std::string tar_header(const TarEntry& entry);
/// Bytes between the end of a file and the next header.
std::size_t tar_padding(std::uint64_t size);
/// The two empty blocks at the end.
std::string tar_end();

/// Reads an archive that arrives in order. Every length is compared with what is allowed before it
/// is used; links, devices and folders are refused, folders skipped.
class TarReader {
public:
  /// Fills the whole span; fails (malformed) where the source ends before.
  using Read = std::function<Result<void>(std::span<std::byte>)>;
  explicit TarReader(Read read) : read_(std::move(read)) {}

  /// The next regular file, after the previous one was read or skipped to its end; nothing at the
  /// end of the archive. The path is checked (check_repo_path).
  Result<std::optional<TarEntry>> next();
  /// All bytes of the current file, in order.
  Result<void> copy_to(ByteSink& sink);
  /// A small file as text; malformed where it is larger than the limit.
  Result<std::string> text(std::uint64_t limit);

private:
  struct Header {
    TarEntry entry;
    char type = '0';
  };
  Result<std::optional<Header>> read_header();
  Result<void> read_pax(std::uint64_t size, TarEntry& next);
  Result<void> skip(std::uint64_t bytes);
  Result<void> finish_entry();

  Read read_;
  std::uint64_t left_ = 0;
  std::size_t padding_ = 0;
};

} // namespace modeld::store
