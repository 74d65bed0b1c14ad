// SPDX-License-Identifier: Apache-2.0
#include "store/bundle.hpp"

#include "store/fd.hpp"
#include "store/state.hpp"
#include "store/tar.hpp"
#include "validate/sha256.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

// A bundle, version 1, is a tar of plain files in this order:
//   SHA256SUMS               "<64 hex>  <path>" of everything that follows
//   modeld-snapshot.json     the snapshot's manifest
//   modeld-variant-<n>.json  one manifest for each variant, n from 0
//   files/<path>             each file of the snapshot, by path
//   variants/<file name>     each variant's file

namespace modeld::store {
namespace {

constexpr const char* k_sums = "SHA256SUMS";
constexpr const char* k_snapshot = "modeld-snapshot.json";
constexpr std::string_view k_variant = "modeld-variant-";
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

Result<void> write_text(ByteSink& out, std::string_view text) {
  return out.write(std::as_bytes(std::span(text)));
}

/// The blob's bytes, proved again on the way out: a bundle never carries damage.
Result<void> write_blob(Store& store, const Member& member, ByteSink& out, Progress* progress) {
  const Fd file(::open(store.blob_path(member.sha256).c_str(), O_RDONLY | O_CLOEXEC));
  const std::string doing = fmt::format("exporting '{}'", member.path);
  if (!file) return fail(from_errno(errno, doing));
  validate::Sha256 hash;
  std::vector<std::byte> part(k_part);
  for (std::uint64_t left = member.size; left > 0;) {
    if (progress != nullptr && progress->cancel)
      return fail(Errc::cancelled, doing + ": cancelled");
    const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(left, part.size()));
    const ssize_t n = ::read(file.get(), part.data(), want);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(from_errno(errno, doing));
    if (n == 0) return fail(Errc::corrupt, doing + ": the stored file is too short");
    const auto bytes = std::span(part).first(static_cast<std::size_t>(n));
    hash.update(bytes);
    MODELD_TRY(out.write(bytes));
    left -= bytes.size();
    if (progress != nullptr) progress->done += bytes.size();
  }
  if (hash.finish() == member.sha256) return {};
  return fail(Errc::corrupt, doing + ": the stored bytes are not those of its digest",
              "run modelctl scrub");
}

/// Counts what an import reads.
class Import {
public:
  Import(Store& store, TarReader& tar, Progress* progress)
      : store_(store), tar_(tar), progress_(progress) {}

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
    MODELD_TRY(store_.publish_snapshot(content_.snapshot));
    for (const Variant& variant : content_.variants) {
      MODELD_TRY(store_.publish_variant(variant));
    }
    return content_;
  }

private:
  Result<void> expect(std::string_view path) {
    MODELD_ASSIGN(const auto entry, tar_.next());
    if (entry && entry->path == path) return {};
    return fail(Errc::malformed,
                fmt::format("importing a bundle: '{}' instead of '{}'",
                            entry ? entry->path : "the end", path),
                "was it made with modelctl export?");
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
    MODELD_ASSIGN(auto ingest, store_.begin_ingest(std::move(expected)));
    MODELD_TRY(tar_.copy_to(*ingest));
    MODELD_TRY(ingest->commit());
    return {};
  }

  Store& store_;
  TarReader& tar_;
  Progress* progress_;
  BundleContent content_;
  std::string sums_;
  std::map<std::string, std::pair<Sha256Digest, std::uint64_t>> wanted_;
  std::vector<BlobHold> holds_;
};

} // namespace

std::uint64_t bundle_bytes(const BundleContent& content) {
  std::uint64_t bytes = tar_end().size();
  for (const Member& member : members_of(content)) {
    bytes += tar_header({member.path, member.size}).size() + member.size + tar_padding(member.size);
  }
  return bytes;
}

Result<void> export_bundle(Store& store, const BundleContent& content, ByteSink& out,
                           Progress* progress) {
  const auto members = members_of(content);
  std::vector<Sha256Digest> blobs;
  for (const Member& member : members) {
    if (member.text.empty()) blobs.push_back(member.sha256);
  }
  const BlobHold held = store.hold(std::move(blobs));
  if (progress != nullptr) progress->total = bundle_bytes(content);
  for (const Member& member : members) {
    MODELD_TRY(write_text(out, tar_header({member.path, member.size})));
    if (member.text.empty()) {
      MODELD_TRY(write_blob(store, member, out, progress));
    } else {
      MODELD_TRY(write_text(out, member.text));
    }
    MODELD_TRY(write_text(out, std::string(tar_padding(member.size), '\0')));
  }
  return write_text(out, tar_end());
}

Result<BundleContent> import_bundle(Store& store,
                                    const std::function<Result<void>(std::span<std::byte>)>& read,
                                    Progress* progress) {
  TarReader tar(read);
  return Import(store, tar, progress).run();
}

Result<BundleContent> import_bundle(Store& store, const std::filesystem::path& path,
                                    Progress* progress) {
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
      progress);
  if (!content) return fail(std::move(content).error().context(doing));
  return content;
}

} // namespace modeld::store
