// SPDX-License-Identifier: Apache-2.0
#include "daemon/file_sink.hpp"

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
  std::unique_ptr<FileSink> sink(new FileSink(store, std::move(expected)));
  if (file.size > k_small) {
    MODELD_ASSIGN(sink->ingest_, store.resume_ingest(resume_key(file), sink->expected_));
  }
  return sink;
}

Result<void> FileSink::open_small() {
  if (ingest_ != nullptr) return {};
  MODELD_ASSIGN(ingest_, store_.begin_ingest(expected_));
  return {};
}

Result<void> FileSink::write(std::span<const std::byte> bytes) {
  MODELD_TRY(open_small());
  return ingest_->write(bytes);
}

Result<void> FileSink::commit() {
  MODELD_TRY(open_small()); // an empty file has no first byte
  MODELD_ASSIGN(committed_, ingest_->commit());
  ingest_.reset();
  return {};
}

Result<void> FileSink::restart() {
  if (ingest_ == nullptr) return {};
  return ingest_->restart();
}

} // namespace modeld::daemon
