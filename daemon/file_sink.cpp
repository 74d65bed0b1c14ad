// SPDX-License-Identifier: Apache-2.0
#include "daemon/file_sink.hpp"

#include "daemon/log.hpp"
#include "store/space.hpp"

#include <vector>

namespace modeld::daemon {
namespace {

// Partial files are named by what is promised, so that any repository and commit with the same
// content goes on with them.
std::string resume_key(const ListedFile& file) {
  return file.sha256 ? "sha256-" + file.sha256->hex() : "git-" + file.git_oid.hex();
}

} // namespace

Result<std::unique_ptr<FileSink>> FileSink::open(store::Store& store, const ListedFile& file,
                                                 std::string what, const std::string& job,
                                                 std::shared_ptr<store::SpaceReservation> space) {
  store::Expected expected;
  expected.size = file.size;
  expected.sha256 = file.sha256;
  if (!file.sha256) expected.git_oid = file.git_oid;
  expected.what = std::move(what);
  expected.job = job;
  expected.space = std::move(space);
  expected.uncached = true;
  const bool small = file.size <= k_small;
  std::unique_ptr<FileSink> sink(
      new FileSink(store, std::move(expected), small ? std::string() : resume_key(file)));
  if (!small) MODELD_TRY(sink->open_ingest());
  return sink;
}

Result<void> FileSink::open_ingest() {
  if (ingest_ != nullptr) return {};
  if (key_.empty()) {
    MODELD_ASSIGN(ingest_, store_.begin_ingest(expected_));
  } else {
    MODELD_ASSIGN(ingest_, store_.resume_ingest(key_, expected_));
  }
  return {};
}

Result<void> FileSink::write(std::span<const std::byte> bytes) {
  MODELD_TRY(open_ingest());
  return ingest_->write(bytes);
}

std::uint64_t FileSink::bytes_here() const {
  if (ingest_ == nullptr) return 0;
  std::uint64_t sum = ingest_->offset();
  for (const store::ShelvedPart& part : ingest_->shelved()) {
    sum += part.length;
  }
  return sum;
}

// The note of a partial file: two lines, origin and ETag.
fetch::Validator FileSink::validator() const {
  if (bytes_here() == 0) return {};
  const std::string note = ingest_->note();
  const auto end = note.find('\n');
  if (end == std::string::npos || !note.ends_with('\n') || end + 1 == note.size()) return {};
  return {note.substr(0, end), note.substr(end + 1, note.size() - end - 2)};
}

void FileSink::keep(const fetch::Validator& validator) {
  if (ingest_ == nullptr || key_.empty()) return;
  // Without it the digest alone tells, at the end.
  if (auto kept = ingest_->set_note(validator.origin + '\n' + validator.etag + '\n'); !kept) {
    log_warning("keeping what a partial file is: {}", kept.error().message);
  }
}

Result<void> FileSink::prove() {
  MODELD_TRY(open_ingest()); // an empty file has no first byte
  auto proved = ingest_->prove();
  if (proved) return {};
  need_again(); // a restart begins anew
  ingest_.reset();
  return fail(std::move(proved).error());
}

Result<void> FileSink::commit_all(std::span<FileSink* const> sinks) {
  std::vector<store::Ingest*> ingests;
  std::vector<store::BlobInfo> proved;
  for (FileSink* sink : sinks) {
    MODELD_TRY(sink->prove());
    MODELD_ASSIGN(const auto info, sink->ingest_->prove());
    proved.push_back(info);
    ingests.push_back(sink->ingest_.get());
  }
  auto done = store::commit_all(ingests);
  for (std::size_t i = 0; i < sinks.size(); ++i) {
    if (done) sinks[i]->committed_ = proved[i];
    sinks[i]->ingest_.reset();
  }
  return done;
}

void FileSink::need_again() {
  if (expected_.space != nullptr) expected_.space->need(ingest_->offset());
}

Result<void> FileSink::restart() {
  if (ingest_ == nullptr) return open_ingest();
  need_again();
  return ingest_->restart();
}

Result<void> FileSink::put(std::uint64_t offset, std::span<const std::vector<std::byte>> pieces) {
  MODELD_TRY(open_ingest());
  auto kept = ingest_->shelve(offset, pieces);
  if (!kept) log_warning("keeping a part that came early: {}", kept.error().message);
  return kept;
}

Result<std::vector<std::byte>> FileSink::take(std::uint64_t offset) {
  MODELD_TRY(open_ingest());
  auto bytes = ingest_->unshelve(offset);
  if (!bytes) log_warning("{}; it is fetched again", bytes.error().message);
  return bytes;
}

std::vector<fetch::PartShelf::Part> FileSink::list() {
  std::vector<Part> parts;
  if (ingest_ == nullptr) return parts;
  for (const store::ShelvedPart& part : ingest_->shelved()) {
    parts.push_back({part.offset, part.length});
  }
  return parts;
}

void FileSink::clear() {
  if (ingest_ != nullptr) ingest_->clear_shelf();
}

} // namespace modeld::daemon
