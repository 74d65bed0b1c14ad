// SPDX-License-Identifier: Apache-2.0
// Pitfalls of caches that Hub clients share (hub-protocol.md section 7), as the store meets them.
#include "store/adopt.hpp"
#include "store/layout.hpp"
#include "store/show.hpp"
#include "tests/store/fixture.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <thread>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::store;
namespace fs = std::filesystem;

namespace {

const Files k_files{{"config.json", "{}"}, {"sub/weights", "wwww"}};

mode_t mode_of(const fs::path& path) {
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

/// Everything below a folder: paths, and what their files hold.
std::map<std::string, std::string> state_of(const fs::path& folder) {
  std::map<std::string, std::string> state;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const bool file = entry.is_regular_file() && !entry.is_symlink();
    state[entry.path().string()] = file ? read_file(entry.path()) : "";
  }
  return state;
}

} // namespace

TEST_CASE("Pitfall 9: writers of the same content never share an unfinished file",
          "[store][ingest][C19][pitfall-9]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const std::string text(100'000, 'x');
  std::vector<std::unique_ptr<Ingest>> writers;
  for (int i = 0; i < 4; ++i) {
    Expected expected;
    expected.size = text.size();
    expected.sha256 = sha(text);
    auto begun = store->begin_ingest(expected);
    REQUIRE(begun);
    REQUIRE((*begun)->write(bytes_of(std::string_view(text).substr(0, 10))));
    writers.push_back(std::move(*begun));
  }
  const auto unfinished = std::distance(fs::directory_iterator(dir / "root/tmp"), {});
  CHECK(unfinished >= 4);
  // The slower ones go on writing after the first has published.
  for (const auto& writer : writers) {
    REQUIRE(writer->write(bytes_of(std::string_view(text).substr(10))));
    REQUIRE(writer->commit());
    CHECK(read_file(store->blob_path(sha(text))) == text);
  }
  check_invariants(*store);
}

TEST_CASE("Pitfalls 10 and 12: modes are ours, whatever the umask is and whoever changes it",
          "[store][pitfall-10][pitfall-12][E03]") {
  TempDir dir;
  const auto old = umask(0077);
  const auto store = open_store(dir / "root");
  // The umask belongs to the whole process: another thread may change it at any moment.
  std::atomic<bool> stop{false};
  std::thread flipping([&stop] {
    while (!stop) {
      umask(0077);
      umask(0022);
    }
  });
  for (char digit = '1'; digit <= '9'; ++digit) {
    const Files files{{"a", std::string(1, digit)}, {"sub/b", std::string(2, digit)}};
    const auto snapshot = snapshot_of("org/Name", digit, files);
    REQUIRE(pull(*store, snapshot, files));
    const auto folder = store->snapshot_folder(snapshot.repo, snapshot.commit);
    CHECK(mode_of(folder / "sub/b") == 0444);
    CHECK((mode_of(folder / "sub") & 0777) == 0755);
    CHECK((mode_of(store->root() / layout::snapshot_manifest(snapshot.repo, snapshot.commit)) &
           0444) == 0444);
  }
  stop = true;
  flipping.join();
  umask(old);
}

TEST_CASE("Pitfall 11: a cache is adopted without a write into it", "[store][adopt][pitfall-11]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const fs::path repo = dir / "hub/models--org--Name";
  const std::string commit(40, 'a');
  write_file(repo / "blobs" / git_id("{}").hex(), "{}");
  fs::create_directories(repo / "snapshots" / commit);
  fs::create_symlink("../../blobs/" + git_id("{}").hex(),
                     repo / "snapshots" / commit / "config.json");
  write_file(repo / "refs/main", commit);
  write_file(repo / "trees" / (commit + ".json"),
             R"({"format_version":1,"files":{"config.json":{}}})");
  for (const auto& entry : fs::recursive_directory_iterator(dir / "hub")) {
    if (entry.is_symlink()) continue;
    fs::permissions(entry.path(),
                    fs::perms::owner_write | fs::perms::group_write | fs::perms::others_write,
                    fs::perm_options::remove);
  }
  const auto before = state_of(dir / "hub");
  const auto found = adopt(*store, AdoptSource::huggingface, dir / "hub", {}, nullptr);
  REQUIRE(found);
  CHECK(found->front().listed);
  CHECK(*store->find_blob(git_id("{}")));
  CHECK(state_of(dir / "hub") == before);
  for (const auto& entry : fs::recursive_directory_iterator(dir / "hub")) {
    if (!entry.is_symlink())
      fs::permissions(entry.path(), fs::perms::owner_write, fs::perm_options::add);
  }
}

TEST_CASE("Pitfall 13: names as long as a file system takes are kept, and lengthened nowhere",
          "[store][pitfall-13][C13]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const std::string longest(255, 'n');
  const Files files{{longest, "a"}, {"sub/" + longest, "b"}};
  const auto snapshot = snapshot_of("org/Name", '1', files);
  REQUIRE(pull(*store, snapshot, files));
  CHECK(read_file(store->snapshot_folder(snapshot.repo, snapshot.commit) / "sub" / longest) == "b");
  check_invariants(*store);
}

TEST_CASE("Pitfall 14: a cache that was written for huggingface_hub may be moved",
          "[store][show][pitfall-14]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  ShowSubject subject;
  subject.snapshot = snapshot_of("org/Name", '1', k_files);
  subject.revisions = {"main"};
  REQUIRE(pull(*store, subject.snapshot, k_files));
  ShowOptions options;
  options.root = dir / "cache";
  REQUIRE(show(*store, ShowTarget::huggingface, subject, options));
  fs::rename(dir / "cache", dir / "elsewhere");
  const fs::path shown = dir / ("elsewhere/models--org--Name/snapshots/" + std::string(40, '1'));
  CHECK(read_file(shown / "config.json") == "{}");
  CHECK(read_file(shown / "sub/weights") == "wwww");
  CHECK(fs::read_symlink(shown / "config.json").is_relative());
}
