// SPDX-License-Identifier: Apache-2.0
#include "daemon/path_cache.hpp"

#include "tests/support/temp_dir.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

using namespace modeld;
using namespace modeld::daemon;

namespace {

constexpr Peer k_ann{1000, 1000, 1};
constexpr Peer k_bob{1001, 1000, 1};
constexpr std::string_view k_question = R"({"ref":"org/model:Q4_K_M"})";

struct Fixture {
  test::TempDir dir;
  std::unique_ptr<store::Store> store;
  store::BlobInfo blob;

  Fixture() {
    store::StoreOptions options;
    options.min_free = 0;
    options.reserve_file = 0;
    auto opened = store::Store::open(dir / "store", options);
    REQUIRE(opened);
    store = *std::move(opened);
    auto ingest = store->begin_ingest({});
    REQUIRE(ingest);
    REQUIRE((*ingest)->write(std::as_bytes(std::span(std::string_view("weights")))));
    const auto stored = (*ingest)->commit();
    REQUIRE(stored);
    blob = *stored;
  }
};

} // namespace

TEST_CASE("a known path is told to who asked for it, until something changes", "[daemon][cache]") {
  Fixture f;
  PathCache cache(*f.store);
  CHECK_FALSE(cache.answer_at_once(k_ann, k_question));
  cache.put(k_ann, k_question, f.store->generation(), f.blob.sha256, "here");
  CHECK(cache.answer_at_once(k_ann, k_question) == "here");
  CHECK(cache.answer(k_ann, k_question) == "here");
  CHECK_FALSE(cache.answer_at_once(k_bob, k_question));
  CHECK_FALSE(cache.answer_at_once(k_ann, R"({"ref":"org/model:Q8_0"})"));
  REQUIRE(f.store->record_access(RepoId{"org/model"}, true, 1001));
  CHECK_FALSE(cache.answer_at_once(k_ann, k_question));
  CHECK_FALSE(cache.answer(k_ann, k_question));
}

TEST_CASE("E08 a known path is not told once its file changed", "[daemon][cache][E08]") {
  Fixture f;
  PathCache cache(*f.store);
  cache.put(k_ann, k_question, f.store->generation(), f.blob.sha256, "here");
  const auto path = f.store->blob_path(f.blob.sha256);
  SECTION("another time") {
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now());
  }
  SECTION("gone") {
    std::filesystem::remove(path);
  }
  CHECK_FALSE(cache.answer_at_once(k_ann, k_question));
  CHECK_FALSE(cache.answer(k_ann, k_question));
}

TEST_CASE("an answer that is older than what is known is not kept", "[daemon][cache]") {
  Fixture f;
  PathCache cache(*f.store);
  const auto before = f.store->generation();
  REQUIRE(f.store->record_access(RepoId{"org/model"}, true, 1001));
  cache.put(k_bob, k_question, before, f.blob.sha256, "old");
  CHECK_FALSE(cache.answer(k_bob, k_question));
}
