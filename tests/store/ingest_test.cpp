// SPDX-License-Identifier: Apache-2.0
#include "store/ingest.hpp"

#include "tests/store/faults.hpp"
#include "tests/store/fixture.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <thread>
#include <vector>

using namespace modeld;
using namespace modeld::test;
using store::Expected;
using store::Ingest;
namespace fs = std::filesystem;

namespace {

Expected size_only(std::uint64_t size) {
  Expected expected;
  expected.size = size;
  return expected;
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// The part of a file that is in the page cache, of 1.
double resident(const fs::path& path) {
  const store::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto size = static_cast<std::size_t>(fs::file_size(path));
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  REQUIRE(mapped != MAP_FAILED);
  std::vector<unsigned char> pages((size + 4095) / 4096);
  REQUIRE(mincore(mapped, size, pages.data()) == 0);
  munmap(mapped, size);
  const auto there = std::count_if(pages.begin(), pages.end(), [](auto page) { return page & 1; });
  return static_cast<double>(there) / static_cast<double>(pages.size());
}

/// Whether files there have another home than the page cache.
bool on_a_disk(const fs::path& folder) {
  struct statfs info {};
  REQUIRE(statfs(folder.c_str(), &info) == 0);
  return info.f_type != TMPFS_MAGIC;
}

} // namespace

TEST_CASE("Ingest::commit publishes a read-only blob under its SHA-256", "[store][ingest]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const auto blob = ingest(*store, "hello", size_only(5));
  REQUIRE(blob);
  CHECK(blob->sha256 == sha("hello"));
  CHECK(blob->git_oid == git_id("hello"));
  CHECK(read_file(store->blob_path(blob->sha256)) == "hello");
  struct stat info {};
  REQUIRE(stat(store->blob_path(blob->sha256).c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0444);
  CHECK(*store->find_blob(sha("hello")) == *blob);
  CHECK(*store->find_blob(git_id("hello")) == *blob);
}

TEST_CASE("Ingest::commit takes an empty blob", "[store][ingest]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(ingest(*store, "", size_only(0)));
  CHECK(fs::file_size(store->blob_path(sha(""))) == 0);
}

TEST_CASE("Ingest::commit knows the git id of bytes whose number was unknown", "[store][ingest]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  CHECK(ingest(*store, "hello")->git_oid == git_id("hello"));
}

TEST_CASE("Ingest::commit rejects a blob whose SHA-256 differs and leaves nothing",
          "[store][ingest][C15]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  Expected expected = size_only(5);
  expected.sha256 = sha("hello");
  const auto blob = ingest(*store, "hellO", expected);
  REQUIRE_FALSE(blob);
  CHECK(blob.error().code == Errc::digest_mismatch);
  CHECK(blob.error().message.find(sha("hello").hex()) != std::string::npos);
  CHECK(blob.error().message.find(sha("hellO").hex()) != std::string::npos);
  CHECK(files_in(dir / "root/tmp") == 0);
  CHECK(files_in(dir / "root/blobs/sha256") == 0);
}

TEST_CASE("Ingest keeps what a download brought in place of the promised bytes",
          "[store][ingest][C15]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  Expected expected = size_only(5);
  expected.sha256 = sha("hello");
  expected.job = "job";
  const auto kept = dir / "root/quarantine" / (sha("hello").hex() + ".wrong");
  for (const char* wrong : {"hellO", "Hello"}) { // the last one replaces the one before
    const auto blob = ingest(*store, wrong, expected);
    REQUIRE_FALSE(blob);
    const auto& details = blob.error().details;
    const auto at = std::find_if(details.begin(), details.end(),
                                 [](const auto& one) { return one.first == "evidence"; });
    REQUIRE(at != details.end());
    CHECK(at->second == kept.string());
    CHECK(read_file(kept) == wrong);
  }
  CHECK(files_in(dir / "root/quarantine") == 1);
  CHECK(files_in(dir / "root/tmp") == 0);
  CHECK_FALSE(*store->find_blob(sha("hellO")));
}

TEST_CASE("Ingest::commit rejects a blob whose git id differs", "[store][ingest][C16]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  Expected expected;
  expected.git_oid = git_id("hello");
  CHECK(ingest(*store, "hellO", expected).error().code == Errc::digest_mismatch);
}

TEST_CASE("Ingest::commit rejects a short blob", "[store][ingest]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const auto blob = ingest(*store, "hell", size_only(5));
  REQUIRE_FALSE(blob);
  CHECK(blob.error().code == Errc::digest_mismatch);
  CHECK(blob.error().message.find("is 4, expected 5") != std::string::npos);
}

TEST_CASE("Ingest::write refuses bytes beyond the expected size", "[store][ingest]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  auto ingest = *store->begin_ingest(size_only(5));
  REQUIRE(ingest->write(bytes_of("hel")));
  CHECK(ingest->write(bytes_of("lo!")).error().code == Errc::digest_mismatch);
  CHECK_FALSE(ingest->commit());
}

TEST_CASE("Ingest leaves nothing behind without commit", "[store][ingest]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  {
    auto ingest = *store->begin_ingest({});
    REQUIRE(ingest->write(bytes_of("hello")));
    CHECK(files_in(dir / "root/tmp") == 1);
  }
  CHECK(files_in(dir / "root/tmp") == 0);
  CHECK_FALSE(*store->find_blob(sha("hello")));
}

TEST_CASE("Ingest::commit keeps the blob that is there", "[store][ingest][E05]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(ingest(*store, "hello"));
  struct stat before {};
  REQUIRE(stat(store->blob_path(sha("hello")).c_str(), &before) == 0);
  REQUIRE(ingest(*store, "hello"));
  struct stat after {};
  REQUIRE(stat(store->blob_path(sha("hello")).c_str(), &after) == 0);
  CHECK(before.st_ino == after.st_ino);
  CHECK(files_in(dir / "root/tmp") == 0);
}

TEST_CASE("Ingest::commit replaces a damaged file of another size under its name",
          "[store][ingest]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  write_file(store->blob_path(sha("hello")), "trash left by somebody");
  REQUIRE(ingest(*store, "hello"));
  CHECK(read_file(store->blob_path(sha("hello"))) == "hello");
}

TEST_CASE("Ingest of the same bytes by many writers ends in one blob", "[store][ingest]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const std::string text(300'000, 'x');
  std::vector<std::thread> writers;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i) {
    writers.emplace_back([&] {
      if (ingest(*store, text)) ++good;
    });
  }
  for (auto& writer : writers) {
    writer.join();
  }
  CHECK(good == 8);
  CHECK(files_in(store->blob_path(sha(text)).parent_path()) == 1);
  CHECK(files_in(dir / "root/tmp") == 0);
}

TEST_CASE("Ingest of a file resumes where it was after a restart", "[store][ingest][resume]") {
  TempDir dir;
  const std::string text = "0123456789";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    INFO(cut);
    const std::string key = "file-" + std::to_string(cut);
    {
      const auto store = open_store(dir / "root");
      auto ingest = *store->resume_ingest(key, size_only(text.size()));
      REQUIRE(ingest->offset() == 0);
      REQUIRE(ingest->write(bytes_of(text.substr(0, cut))));
    }
    const auto store = open_store(dir / "root");
    Expected expected = size_only(text.size());
    expected.sha256 = sha(text);
    auto ingest = *store->resume_ingest(key, expected);
    REQUIRE(ingest->offset() == cut);
    REQUIRE(ingest->write(bytes_of(text.substr(cut))));
    const auto blob = ingest->commit();
    REQUIRE(blob);
    CHECK(blob->git_oid == git_id(text));
    CHECK(files_in(dir / "root/tmp") == 0);
  }
}

TEST_CASE("commit_all publishes many blobs, equal ones once", "[store][ingest][batch]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  std::vector<std::unique_ptr<Ingest>> ingests;
  std::vector<Ingest*> all;
  for (int i = 0; i < 200; ++i) {
    const std::string text = "file " + std::to_string(i % 150);
    ingests.push_back(*store->begin_ingest(size_only(text.size())));
    REQUIRE(ingests.back()->write(bytes_of(text)));
    CHECK(ingests.back()->prove()->sha256 == sha(text));
    all.push_back(ingests.back().get());
  }
  CHECK_FALSE(*store->find_blob(sha("file 7"))); // nothing is visible yet
  REQUIRE(store::commit_all(all));
  for (int i = 0; i < 150; ++i) {
    const std::string text = "file " + std::to_string(i);
    const auto blob = *store->find_blob(sha(text));
    REQUIRE(blob);
    CHECK(blob->git_oid == git_id(text));
    CHECK(read_file(store->blob_path(sha(text))) == text);
  }
  CHECK(files_in(dir / "root/tmp") == 0);
  REQUIRE(store::commit_all({}));
}

TEST_CASE("commit_all publishes nothing where the bytes of one are wrong",
          "[store][ingest][batch]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  auto good = *store->begin_ingest(size_only(4));
  REQUIRE(good->write(bytes_of("good")));
  Expected expected = size_only(3);
  expected.sha256 = sha("xyz");
  auto bad = *store->begin_ingest(expected);
  REQUIRE(bad->write(bytes_of("bad")));
  const std::array<Ingest*, 2> both{good.get(), bad.get()};
  CHECK(store::commit_all(both).error().code == Errc::digest_mismatch);
  CHECK_FALSE(*store->find_blob(sha("good")));
  REQUIRE(good->commit()); // it is still right
}

TEST_CASE("Ingest keeps a note beside a resumable file for as long as the file is there",
          "[store][ingest][resume]") {
  TempDir dir;
  {
    const auto store = open_store(dir / "root");
    auto ingest = *store->resume_ingest("key", size_only(5));
    CHECK(ingest->note().empty());
    REQUIRE(ingest->set_note("first"));
    REQUIRE(ingest->write(bytes_of("hel")));
    REQUIRE(ingest->set_note("second"));
    auto plain = *store->begin_ingest({}); // what has no second life needs no note
    REQUIRE(plain->set_note("x"));
    CHECK(plain->note().empty());
  }
  write_file(dir / "root/tmp/resume-gone.note", "of a file that is gone");
  {
    const auto store = open_store(dir / "root");
    auto ingest = *store->resume_ingest("key", size_only(5));
    CHECK(ingest->note() == "second");
    CHECK(files_in(dir / "root/tmp") == 2);
    REQUIRE(ingest->restart());
    CHECK(ingest->note().empty());
    REQUIRE(ingest->set_note("third"));
    REQUIRE(ingest->write(bytes_of("hello")));
    REQUIRE(ingest->commit());
    CHECK(files_in(dir / "root/tmp") == 0);
  }
  const auto store = open_store(dir / "root");
  auto ingest = *store->resume_ingest("other", size_only(5));
  REQUIRE(ingest->set_note("fourth"));
  ingest->drop();
  CHECK(files_in(dir / "root/tmp") == 0);
}

TEST_CASE("Store::resume_ingest begins again where the partial file is too long",
          "[store][ingest][resume]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  write_file(dir / "root/tmp/resume-key.part", "another revision, longer");
  auto ingest = *store->resume_ingest("key", size_only(5));
  CHECK(ingest->offset() == 0);
  REQUIRE(ingest->write(bytes_of("hello")));
  CHECK(ingest->commit()->sha256 == sha("hello"));
}

TEST_CASE("Ingest::commit discards a partial file whose bytes are wrong",
          "[store][ingest][resume][C15]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  write_file(dir / "root/tmp/resume-key.part", "HELL");
  Expected expected = size_only(5);
  expected.sha256 = sha("hello");
  auto ingest = *store->resume_ingest("key", expected);
  REQUIRE(ingest->write(bytes_of("o")));
  CHECK(ingest->commit().error().code == Errc::digest_mismatch);
  ingest.reset();
  CHECK((*store->resume_ingest("key", expected))->offset() == 0);
}

TEST_CASE("Store::resume_ingest lets one writer have a key", "[store][ingest][resume][C19]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  auto first = store->resume_ingest("key", {});
  REQUIRE(first);
  CHECK(store->resume_ingest("key", {}).error().code == Errc::busy);
  first->reset();
  CHECK(store->resume_ingest("key", {}));
}

TEST_CASE("Ingest::restart forgets what was written", "[store][ingest][resume][C02]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  auto ingest = *store->resume_ingest("key", size_only(5));
  REQUIRE(ingest->write(bytes_of("wro")));
  REQUIRE(ingest->restart());
  REQUIRE(ingest->write(bytes_of("hello")));
  CHECK(ingest->commit()->sha256 == sha("hello"));
}

TEST_CASE("Ingest::drop removes a partial file", "[store][ingest][resume]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  auto ingest = *store->resume_ingest("key", {});
  REQUIRE(ingest->write(bytes_of("hello")));
  ingest->drop();
  CHECK(files_in(dir / "root/tmp") == 0);
}

TEST_CASE("Store::resume_ingest refuses a key that is no name", "[store][ingest][resume]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  CHECK(store->resume_ingest("../evil", {}).error().code == Errc::invalid_argument);
  CHECK(store->resume_ingest("", {}).error().code == Errc::invalid_argument);
}

TEST_CASE("Store::ingest_file takes a file's content and leaves the file", "[store][ingest]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  write_file(dir / "source", "hello");
  CHECK(store->ingest_file(dir / "source", {})->sha256 == sha("hello"));
  write_file(dir / "source", "changed later");
  CHECK(read_file(store->blob_path(sha("hello"))) == "hello");
}

TEST_CASE("Store::ingest_file refuses what is no regular file", "[store][ingest]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  CHECK(store->ingest_file(dir.path(), {}).error().code == Errc::invalid_argument);
  REQUIRE(mkfifo((dir / "fifo").c_str(), 0600) == 0);
  CHECK(store->ingest_file(dir / "fifo", {}).error().code == Errc::invalid_argument);
  CHECK(store->ingest_file(dir / "none", {}).error().code == Errc::not_found);
}

TEST_CASE("Ingest shrinks its space reservation as it writes", "[store][ingest][space]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  Expected expected = size_only(5);
  expected.space = *store->reserve_space(100);
  REQUIRE(ingest(*store, "hello", expected));
  CHECK(expected.space->left() == 95);
}

TEST_CASE("Ingest gives the same digests for large pieces as for small ones", "[store][ingest]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  std::string text(1'500'000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) {
    text[i] = static_cast<char>(i * 31 + i / 251);
  }
  for (const std::size_t piece : {1000U, 262'143U, 262'144U, 262'145U, 1'500'000U}) {
    INFO(piece);
    auto ingest = *store->begin_ingest(size_only(text.size()));
    for (std::size_t at = 0; at < text.size(); at += piece) {
      REQUIRE(ingest->write(bytes_of(std::string_view(text).substr(at, piece))));
    }
    const auto blob = ingest->commit();
    REQUIRE(blob);
    CHECK(blob->sha256 == sha(text));
    CHECK(blob->git_oid == git_id(text));
  }
  CHECK(read_file(store->blob_path(sha(text))) == text);
}

TEST_CASE("Ingest of a large piece can begin again after a failed write", "[store][ingest]") {
  TempDir dir;
  ErrorWatcher watcher;
  const auto store = open_store(dir / "root", small_options(&watcher));
  const std::string text(400'000, 'x');
  auto ingest = *store->resume_ingest("key", size_only(text.size()));
  watcher.matches = [](const store::DiskEvent& event) { return event.op == store::DiskOp::write; };
  watcher.arm(0, ENOSPC);
  CHECK(ingest->write(bytes_of(text)).error().code == Errc::no_space);
  CHECK_FALSE(ingest->commit());
  REQUIRE(ingest->restart());
  REQUIRE(ingest->write(bytes_of(text)));
  CHECK(ingest->commit()->sha256 == sha(text));
}

TEST_CASE("Ingest keeps large content out of the page cache where that is asked",
          "[store][ingest]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const std::string piece(512 << 10, 'x');
  constexpr std::size_t k_pieces = 100; // 50 MiB
  const bool uncached = GENERATE(true, false);
  Expected expected = size_only(k_pieces * piece.size());
  expected.uncached = uncached;
  auto ingest = *store->begin_ingest(expected);
  for (std::size_t i = 0; i < k_pieces; ++i) {
    REQUIRE(ingest->write(bytes_of(piece)));
  }
  const auto blob = ingest->commit();
  REQUIRE(blob);
  const double part = resident(store->blob_path(blob->sha256));
  if (uncached && on_a_disk(dir.path())) {
    CHECK(part < 0.5);
  } else {
    CHECK(part > 0.5);
  }
}

TEST_CASE("Ingest drops a resumable file whose bytes the disk did not take",
          "[store][ingest][resume]") {
  TempDir dir;
  ErrorWatcher watcher;
  const auto store = open_store(dir / "root", small_options(&watcher));
  const std::string piece(4 << 20, 'x');
  Expected expected = size_only(10 * piece.size());
  expected.uncached = true;
  {
    auto ingest = *store->resume_ingest("key", expected);
    watcher.matches = [](const store::DiskEvent& event) {
      return event.op == store::DiskOp::write_out;
    };
    watcher.arm(0, EIO);
    for (std::size_t i = 0; i < 3; ++i) {
      REQUIRE(ingest->write(bytes_of(piece)));
    }
    CHECK(ingest->write(bytes_of(piece)).error().code == Errc::io);
    CHECK(watcher.fired());
    CHECK_FALSE(ingest->commit());
  }
  CHECK(files_in(dir / "root/tmp") == 0);
  auto again = *store->resume_ingest("key", expected);
  CHECK(again->offset() == 0);
  for (std::size_t i = 0; i < 10; ++i) {
    REQUIRE(again->write(bytes_of(piece)));
  }
  CHECK(again->commit());
}
