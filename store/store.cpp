// SPDX-License-Identifier: Apache-2.0
#include "store/store.hpp"

#include "schema/version.hpp"
#include "store/layout.hpp"
#include "store/manifests.hpp"
#include "store/rebuild.hpp"
#include "store/state.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <set>

// modeld.id, version 1, one line each:
//   modeld.store 1
//   id <32 hex>
//   created-by <version>

namespace modeld::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view k_marker_head = "modeld.store ";
constexpr std::string_view k_marker_version = "1";
constexpr std::uint64_t k_max_marker = 4096;
constexpr std::size_t k_max_name = 128;

constexpr const char* k_new_marker = ".modeld.id.new";

/// What may be there before there is a marker: a crash of the very first start, and what mkfs
/// leaves.
bool is_no_content(const Disk& disk, const FolderEntry& entry) {
  if (entry.name == k_new_marker || entry.name == "lost+found") return true;
  if (entry.name != layout::k_lock) return false;
  const auto record = disk.read_text(layout::k_lock, k_max_marker);
  return record && (record->empty() || record->front() == '{');
}

constexpr const char* k_restore_hint =
    "if this folder is the store, modeld --restore-marker writes the marker again";

/// Whether what is there beside the marker is a store's.
bool looks_like_store(const Disk& disk) {
  const auto blobs = disk.list(layout::k_blobs);
  return blobs && (disk.size_of(layout::k_index) || disk.list(layout::k_snapshots));
}

Result<std::string> parse_marker(const std::string& text, const fs::path& root) {
  const auto end = text.find('\n');
  const std::string_view head = std::string_view(text).substr(0, end);
  const auto id_at = text.find("\nid ");
  const auto id_end = text.find('\n', id_at == std::string::npos ? id_at : id_at + 1);
  if (!head.starts_with(k_marker_head) || id_end == std::string::npos) {
    return fail(Errc::corrupt,
                fmt::format("opening store '{}': '{}' is damaged: not a store's marker",
                            root.string(), layout::k_marker),
                k_restore_hint);
  }
  const auto version = head.substr(k_marker_head.size());
  if (version != k_marker_version) {
    const auto by_at = text.find("\ncreated-by ");
    const auto by = by_at == std::string::npos
                        ? std::string("an unknown version")
                        : text.substr(by_at + 12, text.find('\n', by_at + 1) - by_at - 12);
    return fail(Errc::unsupported,
                fmt::format("opening store '{}': its layout is version {}, made by modeld {}; this "
                            "is modeld {} with version {}",
                            root.string(), version, by, k_version, k_marker_version),
                "use a modeld at least as new as the one that made the store");
  }
  return text.substr(id_at + 4, id_end - id_at - 4);
}

/// The store's id, where there is a marker; nothing for a folder that may become a store.
Result<std::optional<std::string>> read_marker(const Disk& disk, const StoreOptions& options) {
  const bool restore = options.restore_marker && looks_like_store(disk);
  if (disk.exists(layout::k_marker)) {
    const auto text = disk.read_text(layout::k_marker, k_max_marker);
    auto id = text ? parse_marker(*text, disk.root()) : fail(text.error());
    if (!id && restore && id.error().code != Errc::unsupported) return std::nullopt;
    if (!id && id.error().hint.empty()) {
      return fail(std::move(id).error().with_hint(k_restore_hint));
    }
    MODELD_TRY(id);
    if (!options.expected_id.empty() && *id != options.expected_id) {
      return fail(Errc::conflict, fmt::format("opening store '{}': its id is {}, expected {}",
                                              disk.root().string(), *id, options.expected_id));
    }
    return *std::move(id);
  }
  if (restore) return std::nullopt;
  MODELD_ASSIGN(const auto entries, disk.list("."));
  const auto foreign = std::find_if_not(entries.begin(), entries.end(), [&](const auto& entry) {
    return is_no_content(disk, entry);
  });
  if (foreign != entries.end()) {
    return fail(Errc::conflict,
                fmt::format("opening store '{}': it has content ('{}') but no {}",
                            disk.root().string(), foreign->name, layout::k_marker),
                looks_like_store(disk)
                    ? std::string(k_restore_hint)
                    : "give an empty folder, or mount the store that belongs there");
  }
  if (options.create == StoreOptions::Create::never || !options.expected_id.empty()) {
    return fail(Errc::not_found,
                fmt::format("opening store '{}': there is no store{}", disk.root().string(),
                            options.expected_id.empty() ? "" : " with id " + options.expected_id),
                "mount the file system of the store");
  }
  return std::nullopt;
}

Result<void> make_root(const fs::path& root, const StoreOptions& options) {
  std::error_code ec;
  if (fs::exists(root, ec)) return {};
  if (options.create == StoreOptions::Create::never || !options.expected_id.empty()) {
    return fail(Errc::not_found, fmt::format("opening store '{}': no such folder", root.string()),
                "mount the file system of the store");
  }
  if (mkdir(root.c_str(), 0755) != 0 && errno != EEXIST) {
    return fail(from_errno(errno, fmt::format("making store '{}'", root.string()))
                    .with_hint("make the parent folder of the store first"));
  }
  if (chmod(root.c_str(), options.folder_mode) != 0) {
    return fail(from_errno(errno, fmt::format("making store '{}'", root.string())));
  }
  return {};
}

constexpr std::array k_top_folders{layout::k_tmp,      layout::k_blobs, layout::k_snapshots,
                                   layout::k_variants, layout::k_pins,  layout::k_views};

Result<void> make_folders(const Disk& disk) {
  for (const char* folder : k_top_folders) {
    MODELD_TRY(disk.make_folders(folder));
  }
  return {};
}

/// A store that got its group later: from the top folders on, new files have it. fsck finds the
/// rest.
Result<void> give_to_group(const Disk& disk, const StoreOptions& options) {
  if (!options.group) return {};
  const std::uint32_t mode = options.folder_mode | S_ISGID;
  auto done = disk.set_access(".", *options.group, mode);
  for (const char* folder : k_top_folders) {
    if (done) done = disk.set_access(folder, *options.group, mode);
  }
  if (done) return {};
  return fail(std::move(done).error().with_hint(
      fmt::format("the daemon's user must own the store and be a member of group {} (store.group)",
                  *options.group)));
}

/// Everything unfinished goes, except partial files that a transfer may go on with, and what lies
/// beside them.
Result<void> sweep(const Disk& disk) {
  MODELD_ASSIGN(const auto entries, disk.list(layout::k_tmp));
  std::set<std::string> kept;
  for (const FolderEntry& entry : entries) {
    if (entry.folder || !layout::is_partial(entry.name)) continue;
    kept.insert(entry.name);
    kept.insert(layout::note_of(entry.name));
  }
  const auto beside_one = [&kept](const std::string& name) {
    const auto part = layout::parse_shelved(name);
    return part && kept.count(part->partial) != 0;
  };
  for (const FolderEntry& entry : entries) {
    if (!entry.folder && (kept.count(entry.name) != 0 || beside_one(entry.name))) continue;
    const std::string path = std::string(layout::k_tmp) + '/' + entry.name;
    if (entry.folder) {
      MODELD_TRY(disk.remove_tree(path));
    } else {
      MODELD_TRY(disk.unlink(path));
    }
  }
  return {};
}

/// The marker comes before everything else but the lock, or a crash of the first start would leave
/// a folder that looks like somebody else's.
Result<void> write_marker(const Disk& disk, const std::string& id) {
  const std::string text = marker_text(id);
  MODELD_TRY(disk.unlink(k_new_marker));
  if (disk.exists(layout::k_marker) && !disk.size_of(layout::k_marker)) {
    MODELD_TRY(disk.make_folders(layout::k_quarantine));
    MODELD_TRY(disk.rename(layout::k_marker, fmt::format("{}/{}.{}", layout::k_quarantine,
                                                         layout::k_marker, id.substr(0, 8))));
  }
  MODELD_ASSIGN(const auto file, disk.create(k_new_marker, 0644));
  MODELD_TRY(disk.write(file, k_new_marker, std::as_bytes(std::span(text)), 0));
  MODELD_TRY(disk.sync(file, k_new_marker));
  MODELD_TRY(disk.rename(k_new_marker, layout::k_marker));
  return disk.sync_folder(".");
}

/// Space that collection can free when the disk is full. Not having it is no reason to refuse.
void fill_reserve(const Disk& disk, std::uint64_t size) {
  if (size == 0) {
    [[maybe_unused]] const auto ignored = disk.unlink(layout::k_reserve);
    return;
  }
  if (const auto found = disk.size_of(layout::k_reserve); found && *found == size) return;
  auto file = disk.open_write(layout::k_reserve, 0600);
  if (!file) return;
  if (!disk.truncate(*file, layout::k_reserve, 0) ||
      !disk.allocate(*file, layout::k_reserve, size)) {
    [[maybe_unused]] const auto ignored = disk.unlink(layout::k_reserve);
  }
}

/// An index that is not there, beside content that it should know.
bool index_is_lost(const Disk& disk) {
  if (const auto size = disk.size_of(layout::k_index); size && *size > 0) return false;
  if (disk.exists(layout::k_index) && !disk.size_of(layout::k_index)) return false; // no file: told
  for (const char* folder : {layout::k_blobs, layout::k_variants, layout::k_pins}) {
    const auto entries = disk.list(folder);
    if (!entries || !entries->empty()) return true;
  }
  const auto snapshots = list_manifests(disk, layout::k_snapshots, 2);
  return !snapshots || !snapshots->empty();
}

Result<void> check_integrity(Index& index) {
  auto query = index.db().query("PRAGMA integrity_check(1)");
  MODELD_ASSIGN(const bool row, query.step());
  const std::string verdict = row ? query.text(0) : "no answer";
  if (verdict == "ok") return {};
  return fail(Errc::corrupt, fmt::format("checking the index after an unclean stop: {}", verdict),
              "run modelctl fsck --rebuild");
}

} // namespace

std::string marker_text(const std::string& id) {
  return fmt::format("{}{}\nid {}\ncreated-by {}\n", k_marker_head, k_marker_version, id,
                     k_version);
}

std::string random_id() {
  std::array<std::byte, 16> bytes{};
  // 16 bytes are never cut short once the kernel's generator is seeded.
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) std::abort();
  return to_hex(bytes.data(), bytes.size());
}

Result<void> check_name(std::string_view name, std::string_view what) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  const bool good = !name.empty() && name.size() <= k_max_name && is_word(name.front()) &&
                    std::all_of(name.begin(), name.end(),
                                [&](char c) { return is_word(c) || c == '.' || c == '-'; });
  if (good) return {};
  return fail(Errc::invalid_argument,
              fmt::format("naming {} '{}': allowed are 1 to {} of A-Z a-z 0-9 _ . -, starting with "
                          "a letter, a digit or _",
                          what, name, k_max_name));
}

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::int64_t mtime_ns_of(const Disk& disk, const std::string& path) {
  struct stat info {};
  if (fstatat(disk.fd(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  return nanoseconds(info.st_mtim);
}

UnixTime time_of(const Disk& disk, const std::string& path) {
  return mtime_ns_of(disk, path) / 1'000'000'000;
}

std::string Store::State::temporary(std::string_view what) {
  return fmt::format("{}/{}-{}-{}", layout::k_tmp, what, getpid(), next_temporary.fetch_add(1));
}

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}

Store::State& Store::internals() {
  return *state_;
}

Result<std::unique_ptr<Store>> Store::open(const fs::path& root, StoreOptions options) {
  MODELD_TRY(make_root(root, options));
  MODELD_ASSIGN(auto disk, Disk::open(fs::absolute(root), options.watcher));
  disk.set_folder_mode(options.folder_mode);
  if (options.group) disk.set_group(*options.group);
  // Looked at before anything is written: a folder that is not ours is left as it is.
  MODELD_TRY(read_marker(disk, options));
  MODELD_ASSIGN(auto lock, RootLock::take(disk));
  MODELD_ASSIGN(auto id, read_marker(disk, options));
  std::vector<std::string> mended;
  if (!id) {
    id = random_id();
    MODELD_TRY(write_marker(disk, *id));
    if (options.restore_marker) mended.push_back("the marker was lost: made again, id " + *id);
  }
  MODELD_TRY(make_folders(disk));
  MODELD_TRY(give_to_group(disk, options));
  MODELD_TRY(sweep(disk));
  if (index_is_lost(disk)) {
    // An empty index would make strays of everything that is here.
    MODELD_TRY(rebuild_index(disk));
    mended.emplace_back("the index was lost: made again out of the manifests");
  } else if (options.rebuild_index) {
    MODELD_TRY(rebuild_index(disk));
  }
  const fs::path file = disk.root() / layout::k_index;
  MODELD_ASSIGN(auto writer, Index::open(file, Db::Access::read_write, options.watcher));
  if (!lock.was_clean()) MODELD_TRY(check_integrity(writer));
  MODELD_ASSIGN(auto reader, Index::open(file, Db::Access::read_only, nullptr));
  MODELD_ASSIGN(auto shared, SharedRoots::open(options.shared_roots, options.shared_patience));
  fill_reserve(disk, options.reserve_file);
  auto state = std::make_unique<State>(std::move(disk), std::move(lock), std::move(*id),
                                       std::move(options), std::move(writer), std::move(reader));
  state->shared = std::move(shared);
  state->mended = std::move(mended);
  return std::make_unique<Store>(std::move(state));
}

Store::~Store() {
  if (state_ == nullptr) return;
  // Times of use are advice; losing some is no harm.
  [[maybe_unused]] const auto ignored = flush_uses();
  state_->lock.mark_clean(state_->disk);
}

const fs::path& Store::root() const {
  return state_->disk.root();
}

const std::string& Store::id() const {
  return state_->id;
}

const std::vector<std::string>& Store::mended() const {
  return state_->mended;
}

std::uint64_t Store::generation() const {
  return state_->generation.load();
}

// ---- blobs

Result<std::optional<BlobInfo>> Store::find_blob(const Sha256Digest& digest) const {
  {
    auto index = state_->reader.lock();
    MODELD_ASSIGN(const auto row, index->find_blob(digest));
    if (row && !row->damaged) return row->info;
    if (row) return std::nullopt;
  }
  const auto place = state_->shared->find_blob(digest);
  if (!place) return std::nullopt;
  return BlobInfo{digest, place->size, std::nullopt};
}

Result<std::optional<BlobInfo>> Store::find_blob(const GitOid& content) const {
  auto index = state_->reader.lock();
  MODELD_ASSIGN(const auto row, index->find_blob(content));
  if (!row) return std::nullopt;
  return row->info;
}

fs::path Store::blob_path(const Sha256Digest& digest) const {
  if (!state_->shared->empty() && !state_->disk.exists(layout::blob(digest))) {
    if (const auto place = state_->shared->find_blob(digest)) return place->path;
  }
  return root() / layout::blob(digest);
}

BlobHold::BlobHold(std::shared_ptr<Table> table, std::vector<Sha256Digest> digests) {
  {
    auto contents = table->contents.lock();
    table->pardoned.wait(contents.mutex(), [&] {
      return std::none_of(digests.begin(), digests.end(),
                          [&](const auto& digest) { return contents->condemned.contains(digest); });
    });
    for (const Sha256Digest& digest : digests) {
      ++contents->counts[digest];
    }
  }
  entry_ = std::shared_ptr<void>(nullptr, [table, held = std::move(digests)](void*) {
    auto contents = table->contents.lock();
    for (const Sha256Digest& digest : held) {
      const auto at = contents->counts.find(digest);
      if (--at->second == 0) contents->counts.erase(at);
    }
  });
}

BlobHold Store::hold(std::vector<Sha256Digest> digests) {
  return {state_->holds, std::move(digests)};
}

void Store::touch(const Sha256Digest& digest) {
  auto uses = state_->uses.lock();
  (*uses)[digest] = now();
}

Result<void> Store::flush_uses() {
  std::map<Sha256Digest, UnixTime> uses;
  {
    auto lock = state_->uses.lock();
    uses.swap(*lock);
  }
  if (uses.empty()) return {};
  auto index = state_->writer.lock();
  MODELD_ASSIGN(auto txn, index->begin());
  for (const auto& [digest, when] : uses) {
    MODELD_TRY(index->record_use(digest, when));
  }
  return txn.commit();
}

void Store::refill_reserve() {
  fill_reserve(state_->disk, state_->options.reserve_file);
}

} // namespace modeld::store
