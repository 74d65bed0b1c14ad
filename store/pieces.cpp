// SPDX-License-Identifier: Apache-2.0
#include "store/pieces.hpp"

#include "store/layout.hpp"
#include "store/state.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>

// pieces/ab/<digest>, version 1: "modeld.pieces 1 <bytes of a piece>", then for each whole piece
// one line with the eight words of the state behind it, 64 hexadecimal digits.

namespace modeld::store {
namespace {

using validate::Sha256State;

constexpr std::size_t k_line = 65; // 64 digits and the line feed
constexpr std::uint64_t k_max_file = 256U << 20;

std::string head() {
  return fmt::format("modeld.pieces 1 {}\n", k_piece_bytes);
}

std::string line_of(const Sha256State& state) {
  std::string line;
  for (const std::uint32_t word : state.words) {
    line += fmt::format("{:08x}", word);
  }
  return line + '\n';
}

std::optional<Sha256State> state_of(std::string_view line) {
  Sha256State state;
  for (std::size_t i = 0; i < state.words.size(); ++i) {
    const char* at = line.data() + i * 8;
    const auto parsed = std::from_chars(at, at + 8, state.words[i], 16);
    if (parsed.ec != std::errc{} || parsed.ptr != at + 8) return std::nullopt;
  }
  return state;
}

/// As many bytes as there are, up to the size of the buffer.
Result<std::size_t> read_at(const Fd& file, const std::string& path, std::uint64_t offset,
                            std::span<std::byte> into) {
  std::size_t got = 0;
  while (got < into.size()) {
    const ssize_t n =
        pread(file.get(), into.data() + got, into.size() - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(from_errno(errno, fmt::format("reading '{}'", path)));
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return got;
}

Result<BlobRow> row_of(Store& store, const Sha256Digest& digest) {
  auto index = store.internals().reader.lock();
  MODELD_ASSIGN(const auto row, index->find_blob(digest));
  if (row) return *row;
  return fail(Errc::not_found, fmt::format("repairing blob {}: it is not here", digest.hex()));
}

void add(std::vector<ByteSpan>& bad, std::uint64_t offset, std::uint64_t size) {
  if (!bad.empty() && bad.back().offset + bad.back().size == offset) {
    bad.back().size += size;
  } else {
    bad.push_back({offset, size});
  }
}

/// Whether one piece leads from the state in front of it to what was noted behind it.
bool is_good(const Sha256Digest& digest, std::span<const Sha256State> states, std::size_t index,
             std::span<const std::byte> bytes) {
  const std::uint64_t offset = index * k_piece_bytes;
  const auto before = index == 0 ? std::nullopt : std::optional(states[index - 1]);
  if (index < states.size()) return validate::hash_piece(before, offset, bytes) == states[index];
  return validate::hash_last_piece(before, offset, bytes) == digest;
}

} // namespace

Result<void> write_pieces(const Disk& disk, const Sha256Digest& digest,
                          std::span<const Sha256State> states, const std::string& temporary) {
  std::string text = head();
  text.reserve(text.size() + states.size() * k_line);
  for (const Sha256State& state : states) {
    text += line_of(state);
  }
  const std::string path = layout::pieces(digest);
  MODELD_TRY(disk.make_folders(folder_of(path)));
  MODELD_ASSIGN(const auto file, disk.create(temporary, 0644));
  MODELD_TRY(disk.write(file, temporary, std::as_bytes(std::span(text)), 0));
  return disk.rename(temporary, path);
}

Result<std::vector<Sha256State>> read_pieces(const Disk& disk, const Sha256Digest& digest) {
  const std::string path = layout::pieces(digest);
  MODELD_ASSIGN(const auto text, disk.read_text(path, k_max_file));
  const std::string start = head();
  std::string_view rest(text);
  if (!rest.starts_with(start) || (rest.size() - start.size()) % k_line != 0) {
    return fail(Errc::malformed, fmt::format("reading '{}': not a list of pieces", path));
  }
  rest.remove_prefix(start.size());
  std::vector<Sha256State> states;
  for (; !rest.empty(); rest.remove_prefix(k_line)) {
    const auto state = state_of(rest.substr(0, k_line));
    if (!state || rest[k_line - 1] != '\n') {
      return fail(Errc::malformed, fmt::format("reading '{}': not a list of pieces", path));
    }
    states.push_back(*state);
  }
  return states;
}

Result<std::vector<ByteSpan>> find_bad_bytes(Store& store, const Sha256Digest& digest,
                                             Progress* progress) {
  const Disk& disk = store.internals().disk;
  MODELD_ASSIGN(const auto row, row_of(store, digest));
  const std::uint64_t size = row.info.size;
  const std::vector<ByteSpan> all{{0, size}};
  const auto states = read_pieces(disk, digest);
  if (!states || states->size() != size / k_piece_bytes) return all;
  const std::string path = layout::quarantined(digest);
  const auto file = disk.open_read(path);
  if (!file) return all;
  std::vector<ByteSpan> bad;
  std::vector<std::byte> piece(k_piece_bytes);
  for (std::size_t index = 0; index * k_piece_bytes < size; ++index) {
    if (progress != nullptr && progress->cancel) {
      return fail(Errc::cancelled, fmt::format("reading '{}': cancelled", path));
    }
    const std::uint64_t offset = index * k_piece_bytes;
    const std::uint64_t wanted = std::min(k_piece_bytes, size - offset);
    const auto into = std::span(piece).first(static_cast<std::size_t>(wanted));
    const auto got = read_at(*file, path, offset, into); // a bad sector is a bad piece
    if (!got || *got != wanted || !is_good(digest, *states, index, into)) add(bad, offset, wanted);
    if (progress != nullptr) progress->done += wanted;
  }
  return bad;
}

struct Patch::State {
  State(Store& store_in, BlobRow row_in, std::string job_in)
      : store(store_in), row(std::move(row_in)), job(std::move(job_in)),
        key("repair-" + row.info.sha256.hex()), path(layout::partial(key)) {}

  Store& store;
  BlobRow row;
  std::string job;
  std::string key;
  std::string path;
  Fd file;

  /// What can be read of the damaged file; nothing of it is believed before the whole is hashed.
  Result<void> copy_from_quarantine() {
    const Disk& disk = store.internals().disk;
    const std::string source = layout::quarantined(row.info.sha256);
    MODELD_ASSIGN(const auto from, disk.open_read(source));
    const auto cloned = disk.clone(from, file, path);
    if (!cloned && cloned.error().code != Errc::unsupported) return cloned;
    if (!cloned) {
      std::vector<std::byte> piece(k_piece_bytes);
      for (std::uint64_t at = 0; at < row.info.size; at += k_piece_bytes) {
        const auto got = read_at(from, source, at, piece);
        if (got) MODELD_TRY(disk.write(file, path, std::span(piece).first(*got), at));
      }
    }
    return disk.truncate(file, path, row.info.size);
  }
};

Patch::Patch(std::unique_ptr<State> state) : state_(std::move(state)) {}

Patch::~Patch() {
  [[maybe_unused]] const auto ignored = state_->store.internals().disk.unlink(state_->path);
}

Result<std::unique_ptr<Patch>> Patch::begin(Store& store, const Sha256Digest& digest,
                                            std::string job) {
  MODELD_ASSIGN(auto row, row_of(store, digest));
  const Disk& disk = store.internals().disk;
  auto state = std::make_unique<State>(store, std::move(row), std::move(job));
  MODELD_TRY(disk.unlink(state->path));
  MODELD_ASSIGN(state->file, disk.create(state->path, 0600));
  std::unique_ptr<Patch> patch(new Patch(std::move(state)));
  MODELD_TRY(patch->state_->copy_from_quarantine());
  return patch;
}

Result<void> Patch::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  State& s = *state_;
  if (offset > s.row.info.size || bytes.size() > s.row.info.size - offset) {
    return fail(Errc::digest_mismatch, fmt::format("repairing blob {}: bytes beyond its {} arrived",
                                                   s.row.info.sha256.hex(), s.row.info.size));
  }
  return s.store.internals().disk.write(s.file, s.path, bytes, offset);
}

Result<BlobInfo> Patch::commit() {
  State& s = *state_;
  s.file = Fd();
  Expected expected;
  expected.size = s.row.info.size;
  expected.sha256 = s.row.info.sha256;
  expected.what = "blob " + s.row.info.sha256.hex();
  expected.job = s.job;
  MODELD_ASSIGN(auto ingest, s.store.resume_ingest(s.key, std::move(expected)));
  auto done = ingest->commit();
  if (!done) ingest->drop();
  return done;
}

} // namespace modeld::store
