// SPDX-License-Identifier: Apache-2.0
#include "store/bundle.hpp"

#include "store/fd.hpp"
#include "store/state.hpp"
#include "store/tar.hpp"
#include "validate/sha256.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <sstream>

// A bundle, version 1, is a tar of plain files in this order:
//   SHA256SUMS               "<64 hex>  <path>" of everything that follows
//   modeld-snapshot.json     the snapshot's manifest
//   modeld-variant-<n>.json  one manifest for each variant, n from 0
//   modeld-revisions.txt     names that meant the commit, one a line; only where there are any
//   files/<path>             each file of the snapshot, by path
//   variants/<file name>     each variant's file

namespace modeld::store {
namespace {

constexpr const char* k_sums = "SHA256SUMS";
constexpr const char* k_snapshot = "modeld-snapshot.json";
constexpr std::string_view k_variant = "modeld-variant-";
constexpr const char* k_revisions = "modeld-revisions.txt";
constexpr std::uint64_t k_max_record = 256U << 20;
constexpr std::size_t k_part = 1U << 20;

struct Member {
  std::string path;
  std::uint64_t size = 0;
  Sha256Digest sha256;
  std::string text; ///< of a manifest; else the blob
};

Member text_member(std::string path, std::string text) {
  const auto digest = validate::sha256_of(std::as_bytes(std::span(text)));
  return {std::move(path), text.size(), digest, std::move(text)};
}

std::vector<Member> members_of(const BundleContent& content) {
  std::vector<Member> members;
  members.push_back(text_member(k_snapshot, content.snapshot.to_json()));
  for (std::size_t i = 0; i < content.variants.size(); ++i) {
    members.push_back(
        text_member(fmt::format("{}{}.json", k_variant, i), content.variants[i].to_json()));
  }
  if (!content.revisions.empty()) {
    members.push_back(
        text_member(k_revisions, fmt::format("{}\n", fmt::join(content.revisions, "\n"))));
  }
  for (const SnapshotFile& file : content.snapshot.files) {
    members.push_back({"files/" + file.path, file.size, file.sha256, {}});
  }
  for (const Variant& variant : content.variants) {
    members.push_back({"variants/" + variant.file_name, variant.size, variant.result, {}});
  }
  std::string sums;
  for (const Member& member : members) {
    sums += fmt::format("{}  {}\n", member.sha256.hex(), member.path);
  }
  members.insert(members.begin(), text_member(k_sums, std::move(sums)));
  return members;
}

class Import {
public:
  Import(Store& store, TarReader& tar, std::optional<std::uint32_t> payer, Progress* progress)
      : store_(store), tar_(tar), payer_(payer), progress_(progress) {}

  Result<BundleContent> run() {
    MODELD_TRY(expect(k_sums));
    MODELD_ASSIGN(sums_, tar_.text(k_max_record));
    MODELD_TRY(expect(k_snapshot));
    MODELD_ASSIGN(const auto manifest, tar_.text(k_max_record));
    MODELD_ASSIGN(content_.snapshot, Snapshot::from_json(manifest));
    for (const SnapshotFile& file : content_.snapshot.files) {
      wanted_["files/" + file.path] = {file.sha256, file.size};
    }
    MODELD_TRY(read_rest());
    if (!wanted_.empty()) {
      return fail(Errc::malformed,
                  fmt::format("importing a bundle: '{}' is missing", wanted_.begin()->first));
    }
    MODELD_TRY(store_.publish_snapshot(content_.snapshot, payer_));
    for (const Variant& variant : content_.variants) {
      MODELD_TRY(store_.publish_variant(variant, payer_));
    }
    MODELD_TRY(record_revisions());
    return content_;
  }

private:
  void read_revisions(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (ModelRef::parse(content_.snapshot.repo.text + '@' + line)) {
        content_.revisions.push_back(std::move(line));
      }
    }
  }

  Result<void> record_revisions() {
    const RepoId& repo = content_.snapshot.repo;
    for (const std::string& revision : content_.revisions) {
      MODELD_ASSIGN(const auto known, store_.find_ref(repo, revision));
      if (known) continue;
      MODELD_TRY(store_.record_ref({repo, revision, content_.snapshot.commit, repo, now()}));
    }
    return {};
  }

  Result<void> expect(std::string_view path) {
    MODELD_ASSIGN(const auto entry, tar_.next());
    if (entry && entry->path == path) return {};
    return fail(Errc::malformed,
                fmt::format("importing a bundle: '{}' instead of '{}'",
                            entry ? entry->path : "the end", path),
                "give a bundle that modelctl export made");
  }

  Result<void> read_rest() {
    for (;;) {
      MODELD_ASSIGN(const auto entry, tar_.next());
      if (!entry) return {};
      if (entry->path.starts_with(k_variant)) {
        MODELD_ASSIGN(const auto text, tar_.text(k_max_record));
        MODELD_ASSIGN(auto variant, Variant::from_json(text));
        wanted_["variants/" + variant.file_name] = {variant.result, variant.size};
        content_.variants.push_back(std::move(variant));
      } else if (entry->path == k_revisions) {
        MODELD_ASSIGN(const auto text, tar_.text(k_max_record));
        read_revisions(text);
      } else {
        MODELD_TRY(read_file(*entry));
      }
    }
  }

  Result<void> read_file(const TarEntry& entry) {
    const auto wanted = wanted_.find(entry.path);
    if (wanted == wanted_.end()) {
      return fail(Errc::malformed,
                  fmt::format("importing a bundle: '{}' is in no manifest of it", entry.path));
    }
    if (progress_ != nullptr && progress_->cancel) {
      return fail(Errc::cancelled, "importing a bundle: cancelled");
    }
    const auto [sha256, size] = wanted->second;
    wanted_.erase(wanted);
    holds_.push_back(store_.hold({sha256}));
    if (progress_ != nullptr) progress_->done += size;
    MODELD_ASSIGN(const auto there, store_.find_blob(sha256));
    if (there && there->size == entry.size) return {}; // next() skips the bytes
    Expected expected;
    expected.size = size;
    expected.sha256 = sha256;
    expected.what = entry.path;
    MODELD_ASSIGN(expected.space, store_.reserve_space(size, payer_));
    space_.push_back(expected.space);
    MODELD_ASSIGN(auto ingest, store_.begin_ingest(std::move(expected)));
    MODELD_TRY(tar_.copy_to(*ingest));
    MODELD_TRY(ingest->commit());
    return {};
  }

  Store& store_;
  TarReader& tar_;
  std::optional<std::uint32_t> payer_;
  Progress* progress_;
  BundleContent content_;
  std::string sums_;
  std::map<std::string, std::pair<Sha256Digest, std::uint64_t>> wanted_;
  std::vector<BlobHold> holds_;
  std::vector<std::shared_ptr<SpaceReservation>> space_; ///< until it is charged
};

} // namespace

std::uint64_t bundle_bytes(const BundleContent& content) {
  std::uint64_t bytes = tar_end().size();
  for (const Member& member : members_of(content)) {
    bytes += tar_header({member.path, member.size}).size() + member.size + tar_padding(member.size);
  }
  return bytes;
}

struct BundleReader::State {
  Store& store;
  std::vector<Member> members;
  BlobHold held;
  std::uint64_t size = 0;

  std::size_t next = 0; ///< member whose turn is next
  std::string text;     ///< what comes before anything else: headers, manifests, padding
  std::size_t text_at = 0;
  Fd file; ///< of the blob that is being read
  std::uint64_t file_left = 0;
  validate::Sha256 hash;

  /// The head of the next member, or the end of the archive.
  Result<void> begin_next() {
    text_at = 0;
    if (next == members.size()) {
      text = tar_end();
      ++next;
      return {};
    }
    const Member& member = members[next++];
    text = tar_header({member.path, member.size});
    if (!member.text.empty()) {
      text += member.text + std::string(tar_padding(member.size), '\0');
      return {};
    }
    if (member.size == 0) return {};
    file = Fd(::open(store.blob_path(member.sha256).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return fail(from_errno(errno, fmt::format("exporting '{}'", member.path)));
    file_left = member.size;
    return {};
  }

  std::size_t take_text(std::span<std::byte> into) {
    const std::size_t n = std::min(into.size(), text.size() - text_at);
    std::memcpy(into.data(), text.data() + text_at, n);
    text_at += n;
    return n;
  }

  Result<std::size_t> take_file(std::span<std::byte> into) {
    const Member& member = members[next - 1];
    const std::string doing = fmt::format("exporting '{}'", member.path);
    const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(file_left, into.size()));
    ssize_t n = 0;
    do {
      n = ::read(file.get(), into.data(), want);
    } while (n < 0 && errno == EINTR);
    if (n < 0) return fail(from_errno(errno, doing));
    if (n == 0) return fail(Errc::corrupt, doing + ": the stored file is too short");
    const auto count = static_cast<std::size_t>(n);
    hash.update(into.first(count));
    file_left -= count;
    if (file_left > 0) return count;
    file = Fd();
    if (hash.finish() != member.sha256) {
      return fail(Errc::corrupt, doing + ": the stored bytes are not those of its digest",
                  "run modelctl scrub, then modelctl repair");
    }
    text = std::string(tar_padding(member.size), '\0');
    text_at = 0;
    return count;
  }
};

BundleReader::BundleReader(Store& store, const BundleContent& content)
    : state_(std::make_unique<State>(
          State{store, members_of(content), {}, bundle_bytes(content), 0, {}, 0, {}, 0, {}})) {
  std::vector<Sha256Digest> blobs;
  for (const Member& member : state_->members) {
    if (member.text.empty()) blobs.push_back(member.sha256);
  }
  state_->held = store.hold(std::move(blobs));
}

BundleReader::~BundleReader() = default;

std::uint64_t BundleReader::size() const {
  return state_->size;
}

Result<std::size_t> BundleReader::read(std::span<std::byte> into) {
  State& s = *state_;
  std::size_t got = 0;
  while (got < into.size()) {
    if (s.text_at < s.text.size()) {
      got += s.take_text(into.subspan(got));
    } else if (s.file_left > 0) {
      MODELD_ASSIGN(const std::size_t n, s.take_file(into.subspan(got)));
      got += n;
    } else if (s.next > s.members.size()) {
      break;
    } else {
      MODELD_TRY(s.begin_next());
    }
  }
  return got;
}

Result<void> export_bundle(Store& store, const BundleContent& content, ByteSink& out,
                           Progress* progress) {
  BundleReader reader(store, content);
  if (progress != nullptr) progress->total = reader.size();
  std::vector<std::byte> part(k_part);
  for (;;) {
    if (progress != nullptr && progress->cancel) {
      return fail(Errc::cancelled, "exporting a bundle: cancelled");
    }
    MODELD_ASSIGN(const std::size_t n, reader.read(part));
    if (n == 0) return {};
    MODELD_TRY(out.write(std::span(part).first(n)));
    if (progress != nullptr) progress->done += n;
  }
}

Result<BundleContent> import_bundle(Store& store,
                                    const std::function<Result<void>(std::span<std::byte>)>& read,
                                    Progress* progress, std::optional<std::uint32_t> payer) {
  TarReader tar(read);
  return Import(store, tar, payer, progress).run();
}

Result<BundleContent> import_bundle(Store& store, const std::filesystem::path& path,
                                    Progress* progress, std::optional<std::uint32_t> payer) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const std::string doing = fmt::format("importing bundle '{}'", path.string());
  if (!file) return fail(from_errno(errno, doing));
  auto content = import_bundle(
      store,
      [&](std::span<std::byte> into) -> Result<void> {
        while (!into.empty()) {
          const ssize_t n = ::read(file.get(), into.data(), into.size());
          if (n < 0 && errno == EINTR) continue;
          if (n < 0) return fail(from_errno(errno, doing));
          if (n == 0) return fail(Errc::malformed, doing + ": it ends in the middle");
          into = into.subspan(static_cast<std::size_t>(n));
        }
        return {};
      },
      progress, payer);
  if (!content) return fail(std::move(content).error().context(doing));
  return content;
}

} // namespace modeld::store
