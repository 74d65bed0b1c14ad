// SPDX-License-Identifier: Apache-2.0
// tmp/resume-<key>.at-<offset>: the bytes of the file from that offset on, then their SHA-256 as 32
// bytes. The offset is decimal, without leading zeros.
#include "store/shelf.hpp"

#include "store/layout.hpp"
#include "validate/sha256.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace modeld::store {
namespace {

constexpr std::uint64_t k_digest_bytes = 32;

Result<std::vector<std::byte>> read_whole(const Disk& disk, const std::string& path,
                                          std::uint64_t size) {
  MODELD_ASSIGN(const auto file, disk.open_read(path));
  std::vector<std::byte> bytes(size);
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t n =
        pread(file.get(), bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(from_errno(errno, fmt::format("reading '{}'", path)));
    if (n == 0) {
      return fail(Errc::corrupt,
                  fmt::format("reading '{}': {} bytes, expected are {}", path, at, bytes.size()));
    }
    at += static_cast<std::size_t>(n);
  }
  return bytes;
}

Result<void> write_whole(const Disk& disk, const std::string& path,
                         std::span<const std::vector<std::byte>> pieces) {
  MODELD_ASSIGN(const auto file, disk.create(path, 0600));
  validate::Sha256 hasher;
  std::uint64_t at = 0;
  for (const auto& piece : pieces) {
    hasher.update(piece);
    MODELD_TRY(disk.write(file, path, piece, at));
    at += piece.size();
  }
  const Sha256Digest digest = hasher.finish();
  return disk.write(file, path, digest.bytes, at);
}

} // namespace

Result<std::vector<std::uint64_t>> shelved_offsets(const Disk& disk, std::string_view partial) {
  MODELD_ASSIGN(const auto entries, disk.list(layout::k_tmp));
  const std::string_view of = partial.substr(partial.rfind('/') + 1);
  std::vector<std::uint64_t> offsets;
  for (const FolderEntry& entry : entries) {
    const auto name = layout::parse_shelved(entry.name);
    if (!entry.folder && name && name->partial == of) offsets.push_back(name->offset);
  }
  return offsets;
}

void Shelf::open(const Disk& disk, std::string partial, std::uint64_t begin, std::uint64_t end) {
  disk_ = &disk;
  partial_ = std::move(partial);
  end_ = end;
  parts_.clear();
  const auto offsets = shelved_offsets(disk, partial_);
  if (!offsets) return; // what is there is fetched again
  for (const std::uint64_t offset : *offsets) {
    const auto size = disk.size_of(path_of(offset));
    parts_[offset] = size && *size > k_digest_bytes ? *size - k_digest_bytes : 0;
  }
  for (auto part = parts_.begin(); part != parts_.end();) {
    const auto [offset, length] = *part;
    if (offset >= begin && length > 0 && length <= k_longest && offset <= end &&
        length <= end - offset) {
      begin = offset + length;
      ++part;
    } else {
      remove(offset);
      part = parts_.erase(part);
    }
  }
}

Result<void> Shelf::put(std::uint64_t offset, std::span<const std::vector<std::byte>> pieces,
                        const std::string& temporary) {
  std::uint64_t length = 0;
  for (const auto& piece : pieces) {
    length += piece.size();
  }
  if (disk_ == nullptr || length == 0 || length > k_longest || offset > end_ ||
      length > end_ - offset) {
    return fail(Errc::invalid_argument,
                fmt::format("keeping {} bytes at {}: allowed are 1 to {} up to byte {} of a file "
                            "that can be continued",
                            length, offset, k_longest, end_));
  }
  auto done = write_whole(*disk_, temporary, pieces);
  if (done) done = disk_->rename(temporary, path_of(offset));
  if (!done) {
    [[maybe_unused]] const auto ignored = disk_->unlink(temporary);
    return done;
  }
  parts_[offset] = length;
  return {};
}

Result<std::vector<std::byte>> Shelf::take(std::uint64_t offset) {
  const auto part = parts_.find(offset);
  if (part == parts_.end()) {
    return fail(Errc::not_found,
                fmt::format("taking the part at {} of '{}': there is none", offset, partial_));
  }
  const std::uint64_t length = part->second;
  parts_.erase(part);
  auto bytes = read_whole(*disk_, path_of(offset), length + k_digest_bytes);
  remove(offset);
  if (!bytes) return bytes;
  Sha256Digest said;
  const auto digest = std::span(*bytes).last(k_digest_bytes);
  std::copy(digest.begin(), digest.end(), said.bytes.begin());
  bytes->resize(length);
  if (validate::sha256_of(*bytes) == said) return bytes;
  return fail(Errc::corrupt,
              fmt::format("taking '{}': its bytes are not those that were kept", path_of(offset)));
}

std::vector<ShelvedPart> Shelf::list() const {
  std::vector<ShelvedPart> all;
  for (const auto& [offset, length] : parts_) {
    all.push_back({offset, length});
  }
  return all;
}

std::uint64_t Shelf::length_at(std::uint64_t offset) const {
  const auto part = parts_.find(offset);
  return part == parts_.end() ? 0 : part->second;
}

void Shelf::clear() {
  for (const auto& part : std::exchange(parts_, {})) {
    remove(part.first);
  }
}

std::string Shelf::path_of(std::uint64_t offset) const {
  return layout::shelved(partial_, offset);
}

/// One that stays is dropped when the file is continued, or swept when that is gone.
void Shelf::remove(std::uint64_t offset) const {
  [[maybe_unused]] const auto ignored = disk_->unlink(path_of(offset));
}

} // namespace modeld::store
