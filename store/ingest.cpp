// SPDX-License-Identifier: Apache-2.0
#include "store/ingest.hpp"

#include "store/adopt.hpp"

#include "store/layout.hpp"
#include "store/pieces.hpp"
#include "store/plain_view.hpp"
#include "store/side_worker.hpp"
#include "store/state.hpp"
#include "validate/sha256.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <vector>

namespace modeld::store {
namespace {

constexpr std::size_t k_read_size = 1U << 20;
/// From here on writing beside the hash wins more than waking a thread costs (some 10 us).
constexpr std::size_t k_side_by_side = 256U << 10;

} // namespace

struct Ingest::State {
  Store::State* store = nullptr;
  Expected expected;
  Fd file;
  std::string path;    ///< under tmp/
  std::string partial; ///< key of a resumable ingest, or empty
  std::uint64_t offset = 0;
  bool failed = false;
  bool replaced = false; ///< damaged bytes had the name before
  bool finished = false; ///< published or dropped: nothing left to clean up
  validate::PieceHasher sha256{k_piece_bytes};
  std::optional<validate::GitBlobHasher> git;
  Result<void> written_beside;
  std::unique_ptr<SideWorker> side; ///< last: it uses the file

  ~State() { end(); }

  std::string what() const { return expected.what.empty() ? "a blob" : expected.what; }

  void start_hashing() {
    sha256 = validate::PieceHasher(k_piece_bytes);
    git.reset();
    const bool small = expected.size && *expected.size <= k_git_id_limit;
    if (expected.size && (small || expected.git_oid)) git.emplace(*expected.size);
  }

  void update(std::span<const std::byte> bytes) {
    sha256.update(bytes);
    if (git) git->update(bytes);
  }

  void hash(std::span<const std::byte> bytes) {
    update(bytes);
    offset += bytes.size();
  }

  /// Large pieces are written while they are hashed.
  Result<void> take(std::span<const std::byte> bytes) {
    if (bytes.size() < k_side_by_side) {
      MODELD_TRY(store->disk.write(file, path, bytes, offset));
      hash(bytes);
      return {};
    }
    if (side == nullptr) {
      side = std::make_unique<SideWorker>([this](std::span<const std::byte> b) {
        written_beside = store->disk.write(file, path, b, offset);
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

  /// Takes what the file already holds.
  Result<void> absorb() {
    std::vector<std::byte> part(k_read_size);
    for (;;) {
      const ssize_t n = pread(file.get(), part.data(), part.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail(from_errno(errno, fmt::format("reading '{}'", path)));
      if (n == 0) return {};
      hash(std::span(part).first(static_cast<std::size_t>(n)));
    }
  }

  /// The id of bytes whose number was not known before, read back.
  Result<GitOid> git_id_afterwards() const {
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

  tl::unexpected<Error> mismatch(std::string_view of, std::string wanted, std::string found) {
    Error error{Errc::digest_mismatch,
                fmt::format("storing '{}': {} is {}, expected {}", what(), of, found, wanted),
                "the source or the way to it changed the bytes; fetch them again",
                {{"expected", wanted}, {"found", found}},
                0};
    discard();
    return fail(std::move(error));
  }

  Result<BlobInfo> check() {
    if (expected.size && offset != *expected.size) {
      return mismatch("the size", std::to_string(*expected.size), std::to_string(offset));
    }
    BlobInfo info;
    info.size = offset;
    info.sha256 = sha256.finish();
    if (git) {
      info.git_oid = git->finish();
    } else if (offset <= k_git_id_limit || expected.git_oid) {
      MODELD_ASSIGN(info.git_oid, git_id_afterwards());
    }
    if (expected.sha256 && info.sha256 != *expected.sha256) {
      return mismatch("the SHA-256", expected.sha256->hex(), info.sha256.hex());
    }
    if (expected.git_oid && info.git_oid != expected.git_oid) {
      return mismatch("the git id", expected.git_oid->hex(), info.git_oid->hex());
    }
    return info;
  }

  /// Whether the file under the blob's name is the one that was proved when its row was written.
  Result<bool> is_there(const BlobInfo& info) const {
    const std::string path_there = layout::blob(info.sha256);
    MODELD_ASSIGN(const auto size, store->disk.size_of(path_there));
    if (size != info.size) return false;
    auto index = store->writer.lock();
    MODELD_ASSIGN(const auto row, index->find_blob(info.sha256));
    // Without a row it is what a crash left between the last two steps: proved as well.
    return !row || row->mtime_ns == mtime_ns_of(store->disk, path_there);
  }

  /// Into place, unless an equal blob is there already; damage is replaced by these proved bytes.
  Result<void> place(const BlobInfo& info) {
    const std::string final_path = layout::blob(info.sha256);
    MODELD_TRY(store->disk.make_folders(layout::blob_folder(info.sha256)));
    auto placed = store->disk.rename_new(path, final_path);
    if (!placed && placed.error().code == Errc::conflict) {
      MODELD_ASSIGN(const bool there, is_there(info));
      placed = there ? store->disk.unlink(path) : store->disk.rename(path, final_path);
      replaced = !there;
    }
    MODELD_TRY(placed);
    return store->disk.sync_folder(layout::blob_folder(info.sha256));
  }

  Result<void> write_row(const BlobInfo& info) {
    BlobRow row{info, mtime_ns_of(store->disk, layout::blob(info.sha256)), false};
    if (info.size > k_git_id_limit) row.info.git_oid.reset();
    auto index = store->writer.lock();
    MODELD_ASSIGN(auto txn, index->begin());
    MODELD_ASSIGN(const auto before, index->find_blob(info.sha256));
    if (!before || *before != row) MODELD_TRY(index->put_blob(row));
    if (before && before->damaged) {
      MODELD_TRY(index->set_damaged(info.sha256, false));
      replaced = true;
    }
    if (!expected.job.empty()) MODELD_TRY(index->keep_for_job(expected.job, info.sha256));
    return txn.commit();
  }

  /// What showed the damaged file shows this one now.
  Result<void> mend_views(const Sha256Digest& digest) const {
    std::vector<Index::FileRow> files;
    std::vector<Variant> variants;
    {
      auto index = store->writer.lock();
      MODELD_ASSIGN(files, index->files_of(digest));
      MODELD_ASSIGN(const auto keys, index->variants_of(digest));
      for (const Sha256Digest& key : keys) {
        MODELD_ASSIGN(auto variant, index->find_variant(key));
        if (variant) variants.push_back(std::move(*variant));
      }
    }
    for (const auto& row : files) {
      MODELD_TRY(link_in_view(store->disk, row.repo, row.commit, row.path, digest,
                              store->temporary("link")));
    }
    for (const Variant& variant : variants) {
      MODELD_TRY(link_variant(store->disk, variant, store->temporary("link")));
    }
    return {};
  }

  /// So that a repair can tell later which bytes are wrong. Without it, it takes all of them.
  void note_pieces(const BlobInfo& info) {
    if (sha256.states().empty() || store->disk.exists(layout::pieces(info.sha256))) return;
    const std::string temporary = store->temporary("pieces");
    if (write_pieces(store->disk, info.sha256, sha256.states(), temporary)) return;
    [[maybe_unused]] const auto ignored = store->disk.unlink(temporary);
  }

  Result<BlobInfo> publish() {
    MODELD_ASSIGN(auto info, check());
    MODELD_TRY(store->disk.set_mode(file, path, store->options.blob_mode));
    if (auto ok = store->disk.sync(file, path); !ok) {
      // After a failed fsync nobody knows what is on the disk, and a second one may say yes.
      discard();
      return fail(std::move(ok).error());
    }
    const std::shared_lock placing(store->placing);
    MODELD_TRY(place(info));
    finished = true;
    release_partial();
    note_pieces(info);
    MODELD_TRY(write_row(info));
    if (replaced) MODELD_TRY(mend_views(info.sha256));
    return info;
  }

  void discard() {
    if (finished) return;
    finished = true;
    // A file that cannot be removed now is swept at the next start.
    [[maybe_unused]] const auto ignored = store->disk.unlink(path);
    release_partial();
  }

  void release_partial() {
    if (partial.empty()) return;
    auto active = store->active_partials.lock();
    active->erase(partial);
    partial.clear();
  }

  /// Without commit: a plain file goes, a resumable one keeps what is known to be written.
  void end() {
    if (finished || store == nullptr) return;
    if (partial.empty()) {
      discard();
      return;
    }
    finished = true;
    if (failed) {
      [[maybe_unused]] const auto ignored = store->disk.truncate(file, path, offset);
    }
    release_partial();
  }
};

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

Result<BlobInfo> Ingest::commit() {
  State& s = *state_;
  if (s.failed || s.finished) {
    return fail(Errc::invalid_argument,
                fmt::format("storing '{}': nothing to publish after an error", s.what()));
  }
  auto info = s.publish();
  if (!info) s.failed = true;
  return info;
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
  s.offset = 0;
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
