// SPDX-License-Identifier: Apache-2.0
#include "store/adopt.hpp"

#include "store/show.hpp"
#include "tests/store/fixture.hpp"

#include <sys/stat.h>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::store;
namespace fs = std::filesystem;

namespace {

ino_t inode(const fs::path& path) {
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_ino;
}

/// models--org--Name with a small file by git id and a large one by SHA-256.
class HubCache {
public:
  explicit HubCache(fs::path root) : root_(std::move(root)) {
    add("config.json", git_id("{}").hex(), "{}");
    add("sub/model.safetensors", sha("weights").hex(), "weights");
    write_file(repo() / "refs/main", commit);
  }
  fs::path repo() const { return root_ / "models--org--Name"; }
  void add(const std::string& path, const std::string& etag, std::string_view text) {
    write_file(repo() / "blobs" / etag, text);
    const fs::path link = repo() / "snapshots" / commit / path;
    fs::create_directories(link.parent_path());
    fs::create_symlink(path.find('/') == std::string::npos ? "../../blobs/" + etag
                                                           : "../../../blobs/" + etag,
                       link);
  }
  void list_tree() {
    write_file(repo() / "trees" / (commit + ".json"),
               R"({"format_version":1,"files":{"config.json":{},"sub/model.safetensors":{}}})");
  }
  const std::string commit = std::string(40, 'a');

private:
  fs::path root_;
};

} // namespace

TEST_CASE("adopt takes a Hugging Face cache that proves to be complete", "[store][adopt]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  HubCache cache(dir / "hub");
  cache.list_tree();
  const auto found = adopt(*store, AdoptSource::huggingface, dir / "hub", {}, nullptr);
  if (!found) FAIL(found.error().message);
  REQUIRE(found->size() == 1);
  CHECK(found->front().listed);
  CHECK(found->front().repo.text == "org/Name");
  const auto snapshot = store->find_snapshot(RepoId{"org/Name"}, *GitOid::parse(cache.commit));
  REQUIRE(*snapshot);
  REQUIRE((*snapshot)->files.size() == 2);
  CHECK((*snapshot)->files[0].git_oid == git_id("{}"));
  CHECK((*snapshot)->files[1].git_oid ==
        git_id("version https://git-lfs.github.com/spec/v1\noid sha256:" + sha("weights").hex() +
               "\nsize 7\n"));
  CHECK((*store->find_ref(RepoId{"org/Name"}, "main"))->commit.hex() == cache.commit);
  check_invariants(*store);
}

TEST_CASE("adopt keeps the files of a cache that may lack some, without listing it",
          "[store][adopt]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  HubCache cache(dir / "hub");
  AdoptOptions options;
  const auto found = adopt(*store, AdoptSource::huggingface, dir / "hub", options, nullptr);
  REQUIRE(found);
  CHECK_FALSE(found->front().listed);
  CHECK_FALSE(found->front().note.empty());
  CHECK(store->list_snapshots()->empty());
  CHECK(*store->find_blob(sha("weights")));
  options.assume_complete = true;
  CHECK(adopt(*store, AdoptSource::huggingface, dir / "hub", options, nullptr)->front().listed);
}

TEST_CASE("adopt does not list a cache with a damaged file and names it", "[store][adopt][C15]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  HubCache cache(dir / "hub");
  cache.list_tree();
  write_file(cache.repo() / "blobs" / sha("weights").hex(), "wEights");
  const auto found = adopt(*store, AdoptSource::huggingface, dir / "hub", {}, nullptr);
  REQUIRE(found);
  CHECK_FALSE(found->front().listed);
  CHECK(found->front().note.find("model.safetensors") != std::string::npos);
  CHECK(store->list_snapshots()->empty());
}

TEST_CASE("adopt with dry_run changes nothing", "[store][adopt]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  HubCache cache(dir / "hub");
  cache.list_tree();
  AdoptOptions options;
  options.dry_run = true;
  CHECK(adopt(*store, AdoptSource::huggingface, dir / "hub", options, nullptr)->front().listed);
  CHECK(store->list_snapshots()->empty());
  CHECK_FALSE(*store->find_blob(sha("weights")));
}

TEST_CASE("adopt takes an Ollama model without a second copy", "[store][adopt][ollama][E01]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const fs::path blobs = dir / "ollama/blobs";
  write_file(blobs / ("sha256-" + sha("gguf bytes").hex()), "gguf bytes");
  write_file(blobs / ("sha256-" + sha("template").hex()), "template");
  write_file(dir / "ollama/manifests/registry.ollama.ai/library/tiny/latest",
             R"({"schemaVersion":2,"layers":[{"mediaType":"application/vnd.ollama.image.model",)"
             R"("digest":"sha256:)" +
                 sha("gguf bytes").hex() +
                 R"(","size":10},{"mediaType":"application/vnd.ollama.image.template",)"
                 R"("digest":"sha256:)" +
                 sha("template").hex() + R"(","size":8}]})");
  AdoptOptions options;
  options.may_link = true;
  const auto found = adopt(*store, AdoptSource::ollama, dir / "ollama", options, nullptr);
  if (!found) FAIL(found.error().message);
  REQUIRE(found->size() == 1);
  CHECK(found->front().listed);
  CHECK(found->front().repo.text == "ollama/tiny");
  CHECK(found->front().copied == 0);
  CHECK(inode(store->blob_path(sha("gguf bytes"))) ==
        inode(blobs / ("sha256-" + sha("gguf bytes").hex())));
  const auto folder = store->snapshot_folder(RepoId{"ollama/tiny"}, found->front().commit);
  CHECK(read_file(folder / "tiny-latest.gguf") == "gguf bytes");
  check_invariants(*store);
}

TEST_CASE("adopt takes LM Studio folders and plain folders", "[store][adopt]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  write_file(dir / "lm/pub/Model-GGUF/Model-Q4_K_M.gguf", "gguf");
  write_file(dir / "plain/My-Model/config.json", "{}");
  CHECK(adopt(*store, AdoptSource::lmstudio, dir / "lm", {}, nullptr)->front().repo.text ==
        "pub/Model-GGUF");
  const auto plain = adopt(*store, AdoptSource::folder, dir / "plain/My-Model", {}, nullptr);
  CHECK(plain->front().repo.text == "local/My-Model");
  CHECK(adopt(*store, AdoptSource::folder, dir / "plain/My-Model", {}, nullptr)->front().commit ==
        plain->front().commit);
  CHECK(store->list_snapshots()->size() == 2);
  CHECK(adopt(*store, AdoptSource::folder, dir / "none", {}, nullptr).error().code ==
        Errc::not_found);
}

TEST_CASE("E05 content that is here needs no copy and no space, and its claim is verified",
          "[store][adopt][E05]") {
  TempDir dir;
  REQUIRE(ingest(*open_store(dir / "root"), "already stored"));
  // No space at all from here on: more is to stay free than any disk has.
  auto options = small_options();
  options.min_free = std::uint64_t{1} << 62;
  const auto store = open_store(dir / "root", options);
  write_file(dir / "folder/file", "already stored");
  const auto found = adopt(*store, AdoptSource::folder, dir / "folder", {}, nullptr);
  if (!found) FAIL(found.error().message);
  CHECK(found->front().listed);
  CHECK(found->front().copied == 0);
  write_file(dir / "other/file", "not stored yet");
  const auto refused = adopt(*store, AdoptSource::folder, dir / "other", {}, nullptr);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::no_space);
}

TEST_CASE("adopt reads back what show wrote", "[store][adopt][show]") {
  TempDir dir;
  const Files files{{"config.json", "{}"}, {"Name-Q8_0.gguf", "gguf"}};
  const auto snapshot = snapshot_of("org/Name", '1', files);
  {
    const auto store = open_store(dir / "root");
    REQUIRE(pull(*store, snapshot, files));
    ShowOptions options;
    options.root = dir / "hub";
    REQUIRE(show(*store, ShowTarget::huggingface, {snapshot, {}, {"main"}, {}}, options));
  }
  const auto other = open_store(dir / "other");
  AdoptOptions options;
  options.assume_complete = true;
  REQUIRE(adopt(*other, AdoptSource::huggingface, dir / "hub", options, nullptr));
  CHECK(**other->find_snapshot(snapshot.repo, snapshot.commit) == snapshot);
}

TEST_CASE("E13 a complete snapshot is found by its name or commit with the store alone",
          "[store][E13]") {
  TempDir dir;
  const Files files{{"config.json", "{}"}};
  const auto snapshot = snapshot_of("org/Name", '1', files);
  const auto store = open_store(dir / "root");
  REQUIRE(pull(*store, snapshot, files));
  REQUIRE(store->record_ref({snapshot.repo, "main", snapshot.commit, snapshot.repo, 1}));
  const auto ref = store->find_ref(snapshot.repo, "main");
  REQUIRE(*ref);
  CHECK(*store->find_snapshot((*ref)->canonical, (*ref)->commit));
  const auto incomplete = snapshot_of("org/Half", '2', {{"config.json", "{}"}, {"weights", "w"}});
  const auto published = store->publish_snapshot(incomplete);
  REQUIRE_FALSE(published);
  CHECK(published.error().message.find("weights") != std::string::npos);
}

TEST_CASE("E03 published files can be read by everybody, whatever the umask", "[store][E03]") {
  TempDir dir;
  const auto old = umask(0077);
  const Files files{{"sub/weights", "wwww"}};
  const auto snapshot = snapshot_of("org/Name", '1', files);
  const auto store = open_store(dir / "root");
  REQUIRE(pull(*store, snapshot, files));
  umask(old);
  struct stat info {};
  const auto folder = store->snapshot_folder(snapshot.repo, snapshot.commit);
  REQUIRE(stat((folder / "sub/weights").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0444);
  for (fs::path at = folder / "sub"; at != dir.path(); at = at.parent_path()) {
    INFO(at.string());
    REQUIRE(stat(at.c_str(), &info) == 0);
    CHECK((info.st_mode & 0555) == 0555);
  }
}
