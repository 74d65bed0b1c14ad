// SPDX-License-Identifier: Apache-2.0
#include "daemon/file_sink.hpp"

#include "store/space.hpp"
#include "tests/support/small_store.hpp"
#include "tests/support/temp_dir.hpp"
#include "validate/sha256.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

using namespace modeld;
using namespace modeld::daemon;
using namespace modeld::test;

namespace {

constexpr std::uint64_t k_size = FileSink::k_small + 100;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// A store in which one file of k_size bytes is on its way.
struct Fixture {
  Fixture()
      : text(k_size, 'm'), store(*store::Store::open(dir / "root", small_options())),
        space(*store->reserve_space(k_size)) {
    file.path = "model.bin";
    file.size = k_size;
    file.sha256 = validate::sha256_of(bytes_of(text));
  }
  std::unique_ptr<FileSink> open() {
    auto sink = *FileSink::open(*store, file, "model.bin", "job", space);
    space->use(sink->bytes_here());
    return sink;
  }

  TempDir dir;
  std::string text;
  std::unique_ptr<store::Store> store;
  std::shared_ptr<store::SpaceReservation> space;
  ListedFile file;
};

const fetch::Validator k_tag{"http://127.0.0.1:1", "\"v1\""};

} // namespace

TEST_CASE("FileSink keeps parts and what they are, also where no byte stands before them",
          "[daemon][sink][shelf]") {
  Fixture at;
  const std::vector<std::byte> part(1000, std::byte{'m'});
  {
    const auto sink = at.open();
    CHECK(sink->validator() == fetch::Validator{});
    sink->keep(k_tag);
    REQUIRE(sink->put(4096, {&part, 1}));
    CHECK(at.space->left() == k_size - 1000);
  }
  at.space = *at.store->reserve_space(k_size); // another job's
  const auto sink = at.open();
  CHECK(sink->offset() == 0);
  CHECK(sink->bytes_here() == 1000);
  CHECK(at.space->left() == k_size - 1000);
  CHECK(sink->validator() == k_tag);
  REQUIRE(sink->list().size() == 1);
  CHECK(sink->list()[0].offset == 4096);
  CHECK(sink->list()[0].length == 1000);
  SECTION("they come back once") {
    CHECK(*sink->take(4096) == part);
    CHECK_FALSE(sink->take(4096));
    CHECK(at.space->left() == k_size);
  }
  SECTION("they go alone") {
    sink->clear();
  }
  SECTION("they go where the file begins anew") {
    REQUIRE(sink->restart());
    CHECK(at.space->left() == k_size);
  }
  CHECK(sink->list().empty());
  CHECK(sink->validator() == fetch::Validator{});
}

TEST_CASE("FileSink keeps the space that bytes will need again", "[daemon][sink][space]") {
  Fixture at;
  const auto sink = at.open();
  SECTION("begun anew") {
    REQUIRE(sink->write(bytes_of(at.text).first(5000)));
    CHECK(at.space->left() == k_size - 5000);
    REQUIRE(sink->restart());
  }
  SECTION("wrong in the end") {
    at.text[7] = 'x';
    REQUIRE(sink->write(bytes_of(at.text)));
    CHECK(at.space->left() == 0);
    CHECK(sink->prove().error().code == Errc::digest_mismatch);
    CHECK(at.space->left() == k_size);
    at.text[7] = 'm';
    REQUIRE(sink->restart());
  }
  CHECK(at.space->left() == k_size);
  REQUIRE(sink->write(bytes_of(at.text)));
  REQUIRE(sink->prove());
  CHECK(at.space->left() == 0);
  CHECK(sink->take(0).error().code == Errc::not_found);
}

TEST_CASE("FileSink goes on without a part that does not check", "[daemon][sink][shelf]") {
  Fixture at;
  const auto sink = at.open();
  const std::vector<std::byte> part(1000, std::byte{'m'});
  REQUIRE(sink->put(4096, {&part, 1}));
  for (const auto& entry : std::filesystem::directory_iterator(at.dir / "root/tmp")) {
    if (entry.path().extension().string().starts_with(".at-"))
      std::filesystem::resize_file(entry.path(), 1031);
  }
  CHECK_FALSE(sink->take(4096));
  CHECK(at.space->left() == k_size);
  REQUIRE(sink->write(bytes_of(at.text)));
  FileSink* const all = sink.get();
  REQUIRE(FileSink::commit_all({&all, 1}));
  CHECK(sink->committed()->size == k_size);
}
