// SPDX-License-Identifier: Apache-2.0
#include "store/adopt_files.hpp"

#include "store/fd.hpp"
#include "validate/sha256.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>

namespace modeld::store {
namespace {

constexpr std::size_t k_read_size = 1U << 20;
/// Files from here on are LFS objects on the Hub, where a name does not say it.
constexpr std::uint64_t k_large_file = 10U << 20;

/// Both ids of a file, without taking it in.
Result<BlobInfo> identify(const std::filesystem::path& path, Progress* progress) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const std::string doing = fmt::format("reading '{}'", path.string());
  if (!file) return fail(from_errno(errno, doing));
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return fail(from_errno(errno, doing));
  if (!S_ISREG(info.st_mode)) {
    return fail(Errc::not_found, fmt::format("{}: not a regular file", doing));
  }
  BlobInfo blob;
  validate::Sha256 sha256;
  validate::GitBlobHasher git(static_cast<std::uint64_t>(info.st_size));
  std::vector<std::byte> part(k_read_size);
  for (;;) {
    if (progress != nullptr && progress->cancel)
      return fail(Errc::cancelled, doing + ": cancelled");
    const ssize_t n = ::read(file.get(), part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(from_errno(errno, doing));
    if (n == 0) break;
    const auto bytes = std::span(part).first(static_cast<std::size_t>(n));
    sha256.update(bytes);
    git.update(bytes);
    blob.size += bytes.size();
    if (progress != nullptr) progress->done += bytes.size();
  }
  blob.sha256 = sha256.finish();
  blob.git_oid = git.finish();
  return blob;
}

GitOid pointer_id(const BlobInfo& blob) {
  const std::string pointer =
      fmt::format("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n",
                  blob.sha256.hex(), blob.size);
  return validate::git_blob_id(std::as_bytes(std::span(pointer)));
}

Result<void> check_claim(const SourceFile& source, const BlobInfo& blob) {
  const std::string found = source.claim.size() == 64   ? blob.sha256.hex()
                            : source.claim.size() == 40 ? blob.git_oid->hex()
                                                        : source.claim;
  if (found == source.claim) return {};
  return fail(Errc::digest_mismatch, fmt::format("reading '{}': its digest is {}, its name says {}",
                                                 source.where.string(), found, source.claim));
}

} // namespace

GitOid local_commit(const std::vector<SnapshotFile>& files) {
  std::string text = "modeld.local/1\n";
  for (const SnapshotFile& file : files) {
    text += fmt::format("{} {} {}:{}\n", file.sha256.hex(), file.size, file.path.size(), file.path);
  }
  return validate::git_blob_id(std::as_bytes(std::span(text)));
}

Result<BlobInfo> AdoptFiles::bring_in(const SourceFile& source, const BlobInfo& known,
                                      Adopted& adopted) {
  Expected expected;
  expected.size = known.size;
  expected.sha256 = known.sha256;
  expected.what = source.where.string();
  if (options_.may_link) {
    auto linked = ingest_by_link(store_, source.where, expected);
    if (linked) return linked;
    const int sys = linked.error().sys;
    if (sys != EXDEV && sys != EPERM && sys != EMLINK) return linked;
  }
  const auto before = store_.usage();
  MODELD_ASSIGN(expected.space, store_.reserve_space(known.size, options_.payer));
  space_.push_back(expected.space);
  MODELD_ASSIGN(const auto blob, store_.ingest_file(source.where, std::move(expected)));
  const auto after = store_.usage();
  // Shared blocks show as no loss of free space.
  if (before && after && before->free > after->free) adopted.copied += known.size;
  return blob;
}

Result<SnapshotFile> AdoptFiles::take(const SourceFile& source, Adopted& adopted,
                                      std::vector<BlobHold>& holds) {
  MODELD_ASSIGN(const auto known, identify(source.where, progress_));
  MODELD_TRY(check_claim(source, known));
  adopted.bytes += known.size;
  holds.push_back(store_.hold({known.sha256}));
  MODELD_ASSIGN(const auto there, store_.find_blob(known.sha256));
  if (!there && !options_.dry_run) MODELD_TRY(bring_in(source, known, adopted));
  const bool large =
      source.claim.size() == 64 || (source.claim.size() != 40 && known.size >= k_large_file);
  return SnapshotFile{source.path, known.size, large ? pointer_id(known) : *known.git_oid,
                      known.sha256};
}

} // namespace modeld::store
