// SPDX-License-Identifier: Apache-2.0
#include "store/ingest.hpp"

#include "store/adopt.hpp"
#include "store/ingest_state.hpp"
#include "store/layout.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <optional>
#include <vector>

namespace modeld::store {
namespace {

constexpr std::size_t k_read_size = 1U << 20;
constexpr std::uint64_t k_longest_note = 16U << 10;
constexpr std::uint64_t k_writeback = 8U << 20;
/// From here on writing beside the hash wins more than waking a thread costs (some 10 us).
constexpr std::size_t k_side_by_side = 256U << 10;

} // namespace

void Ingest::State::start_hashing() {
  sha256 = validate::PieceHasher(k_piece_bytes);
  git.reset();
  const bool small = expected.size && *expected.size <= k_git_id_limit;
  if (expected.size && (small || expected.git_oid)) git.emplace(*expected.size);
}

Result<void> Ingest::State::start_writeback(std::uint64_t end) {
  if (end < writeback + k_writeback) return {};
  // A hint: what goes wrong here shows in the sync at the end.
  [[maybe_unused]] const int ignored =
      ::sync_file_range(file.get(), static_cast<off64_t>(writeback),
                        static_cast<off64_t>(end - writeback), SYNC_FILE_RANGE_WRITE);
  // What was begun the last time has most likely arrived by now.
  if (expected.uncached && writeback > uncached) {
    auto written = store->disk.write_out(file, path, uncached, writeback - uncached);
    lost = !written;
    MODELD_TRY(written);
    uncached = writeback;
  }
  writeback = end;
  return {};
}

void Ingest::State::update(std::span<const std::byte> bytes) {
  sha256.update(bytes);
  if (git) git->update(bytes);
}

void Ingest::State::hash(std::span<const std::byte> bytes) {
  update(bytes);
  offset += bytes.size();
}

Result<void> Ingest::State::take(std::span<const std::byte> bytes) {
  if (bytes.size() < k_side_by_side) {
    MODELD_TRY(store->disk.write(file, path, bytes, offset));
    hash(bytes);
    return {};
  }
  if (side == nullptr) {
    side = std::make_unique<SideWorker>([this](std::span<const std::byte> b) {
      written_beside = store->disk.write(file, path, b, offset);
      if (written_beside) written_beside = start_writeback(offset + b.size());
    });
  }
  // Hashing is what takes time, so it does not wait for the other thread to wake up.
  side->start(bytes);
  update(bytes);
  side->wait();
  MODELD_TRY(written_beside);
  offset += bytes.size();
  return {};
}

Result<void> Ingest::State::absorb() {
  std::vector<std::byte> part(k_read_size);
  for (;;) {
    const ssize_t n = pread(file.get(), part.data(), part.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(from_errno(errno, fmt::format("reading '{}'", path)));
    if (n == 0) return {};
    hash(std::span(part).first(static_cast<std::size_t>(n)));
  }
}

Result<GitOid> Ingest::State::git_id_afterwards() const {
  validate::GitBlobHasher hasher(offset);
  std::vector<std::byte> part(k_read_size);
  for (std::uint64_t at = 0; at < offset;) {
    const ssize_t n = pread(file.get(), part.data(), part.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return fail(from_errno(n < 0 ? errno : EIO, fmt::format("reading back '{}'", path)));
    }
    hasher.update(std::span(part).first(static_cast<std::size_t>(n)));
    at += static_cast<std::uint64_t>(n);
  }
  return hasher.finish();
}

void Ingest::State::discard() {
  if (finished) return;
  finished = true;
  // A file that cannot be removed now is swept at the next start.
  [[maybe_unused]] const auto ignored = store->disk.unlink(path);
  drop_beside();
  release_partial();
}

void Ingest::State::drop_beside() {
  if (partial.empty()) return;
  [[maybe_unused]] const auto ignored = store->disk.unlink(layout::note_of(path));
  shelf.clear();
}

void Ingest::State::release_partial() {
  if (partial.empty()) return;
  auto active = store->active_partials.lock();
  active->erase(partial);
  partial.clear();
}

void Ingest::State::end() {
  if (finished || store == nullptr) return;
  if (partial.empty() || lost) {
    discard();
    return;
  }
  finished = true;
  if (failed) {
    [[maybe_unused]] const auto ignored = store->disk.truncate(file, path, offset);
  }
  release_partial();
}

Ingest::Ingest(std::unique_ptr<State> state) : state_(std::move(state)) {}
Ingest::~Ingest() = default;

std::uint64_t Ingest::offset() const {
  return state_->offset;
}

Result<void> Ingest::write(std::span<const std::byte> bytes) {
  State& s = *state_;
  if (s.failed || s.finished) {
    return fail(Errc::invalid_argument,
                fmt::format("storing '{}': the ingest has ended", s.what()));
  }
  if (s.expected.size && bytes.size() > *s.expected.size - s.offset) {
    s.failed = true;
    return fail(Errc::digest_mismatch,
                fmt::format("storing '{}': more than the expected {} bytes arrived", s.what(),
                            *s.expected.size));
  }
  if (auto ok = s.take(bytes); !ok) {
    s.failed = true;
    return fail(std::move(ok).error().context(fmt::format("storing '{}'", s.what())));
  }
  if (s.expected.space != nullptr) s.expected.space->use(bytes.size());
  return {};
}

Result<void> Ingest::set_note(std::string_view text) {
  if (state_->partial.empty()) return {};
  return state_->store->disk.replace_file(layout::note_of(state_->path), text, 0600);
}

std::string Ingest::note() const {
  if (state_->partial.empty()) return {};
  return state_->store->disk.read_text(layout::note_of(state_->path), k_longest_note).value_or("");
}

Result<void> Ingest::shelve(std::uint64_t offset, std::span<const std::vector<std::byte>> pieces) {
  State& s = *state_;
  const std::uint64_t replaced = s.shelf.length_at(offset);
  if (auto kept = s.shelf.put(offset, pieces, s.store->temporary("shelf")); !kept)
    return fail(std::move(kept).error().context(fmt::format("storing '{}'", s.what())));
  if (s.expected.space == nullptr) return {};
  s.expected.space->need(replaced);
  s.expected.space->use(s.shelf.length_at(offset));
  return {};
}

Result<std::vector<std::byte>> Ingest::unshelve(std::uint64_t offset) {
  State& s = *state_;
  const std::uint64_t length = s.shelf.length_at(offset);
  auto bytes = s.shelf.take(offset);
  if (s.expected.space != nullptr) s.expected.space->need(length);
  return bytes;
}

std::vector<ShelvedPart> Ingest::shelved() const {
  return state_->shelf.list();
}

void Ingest::clear_shelf() {
  State& s = *state_;
  for (const ShelvedPart& part : s.shelf.list()) {
    if (s.expected.space != nullptr) s.expected.space->need(part.length);
  }
  s.shelf.clear();
}

void Ingest::drop() {
  state_->discard();
}

Result<void> Ingest::restart() {
  State& s = *state_;
  if (s.finished) {
    return fail(Errc::invalid_argument,
                fmt::format("storing '{}': the ingest has ended", s.what()));
  }
  MODELD_TRY(s.store->disk.truncate(s.file, s.path, 0));
  clear_shelf();
  s.drop_beside();
  s.offset = 0;
  s.writeback = 0;
  s.uncached = 0;
  s.lost = false;
  s.proved.reset();
  s.failed = false;
  s.start_hashing();
  return {};
}

// ---- the store's side of it

Result<std::unique_ptr<Ingest>> Store::begin_ingest(Expected expected) {
  auto state = std::make_unique<Ingest::State>();
  state->path = state_->temporary("ingest");
  state->expected = std::move(expected);
  MODELD_ASSIGN(state->file, state_->disk.create(state->path, 0600));
  state->store = state_.get();
  state->start_hashing();
  return std::make_unique<Ingest>(std::move(state));
}

Result<std::unique_ptr<Ingest>> Store::resume_ingest(std::string_view key, Expected expected) {
  MODELD_TRY(check_name(key, "partial file"));
  {
    auto active = state_->active_partials.lock();
    if (!active->emplace(key).second) {
      return fail(Errc::busy, fmt::format("resuming '{}': another transfer writes it", key));
    }
  }
  auto state = std::make_unique<Ingest::State>();
  state->store = state_.get();
  state->partial = key;
  state->path = layout::partial(key);
  state->expected = std::move(expected);
  state->start_hashing();
  MODELD_ASSIGN(state->file, state_->disk.open_write(state->path, 0600));
  MODELD_TRY(state->absorb());
  state->shelf.open(state_->disk, state->path, state->offset,
                    state->expected.size.value_or(std::numeric_limits<std::uint64_t>::max()));
  auto ingest = std::make_unique<Ingest>(std::move(state));
  if (ingest->offset() > ingest->state_->expected.size.value_or(ingest->offset())) {
    MODELD_TRY(ingest->restart());
  }
  return ingest;
}

Result<BlobInfo> ingest_by_link(Store& store, const std::filesystem::path& source,
                                Expected expected) {
  Store::State& s = store.internals();
  auto state = std::make_unique<Ingest::State>();
  state->path = s.temporary("adopt");
  state->expected = std::move(expected);
  const std::string doing = fmt::format("linking '{}'", source.string());
  std::error_code ec;
  const auto real = std::filesystem::canonical(source, ec);
  if (ec) return fail(from_errno(ec.value(), doing));
  MODELD_ASSIGN(const auto folder, Disk::open(real.parent_path(), s.disk.watcher()));
  MODELD_TRY(folder.link_out(real.filename().string(), s.disk, state->path));
  state->store = &s; // from here on the link is ours to remove
  MODELD_ASSIGN(state->file, s.disk.open_read(state->path));
  state->start_hashing();
  MODELD_TRY(state->absorb());
  return Ingest(std::move(state)).commit();
}

Result<BlobInfo> Store::ingest_file(const std::filesystem::path& source, Expected expected) {
  Fd from(::open(source.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const std::string doing = fmt::format("importing '{}'", source.string());
  if (!from) return fail(from_errno(errno, doing));
  struct stat info {};
  if (fstat(from.get(), &info) != 0) return fail(from_errno(errno, doing));
  if (!S_ISREG(info.st_mode)) {
    return fail(Errc::invalid_argument, fmt::format("{}: not a regular file", doing));
  }
  if (expected.what.empty()) expected.what = source.string();
  if (!expected.size) expected.size = static_cast<std::uint64_t>(info.st_size);
  MODELD_ASSIGN(auto ingest, begin_ingest(std::move(expected)));
  Ingest::State& into = *ingest->state_;
  auto cloned = state_->disk.clone(from, into.file, into.path);
  if (cloned) {
    MODELD_TRY(into.absorb());
    return ingest->commit();
  }
  if (cloned.error().code != Errc::unsupported)
    return fail(std::move(cloned).error().context(doing));
  std::vector<std::byte> part(k_read_size);
  for (;;) {
    const ssize_t n = ::read(from.get(), part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(from_errno(errno, doing));
    if (n == 0) return ingest->commit();
    MODELD_TRY(ingest->write(std::span(part).first(static_cast<std::size_t>(n))));
  }
}

} // namespace modeld::store
