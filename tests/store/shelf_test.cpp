// SPDX-License-Identifier: Apache-2.0
// Parts of a resumable file that came before their turn: they last as long as the file does, and
// what is not exactly what was put there is fetched again.
#include "store/shelf.hpp"

#include "store/collect.hpp"
#include "store/layout.hpp"
#include "store/space.hpp"
#include "tests/store/faults.hpp"
#include "tests/store/fixture.hpp"

#include <filesystem>
#include <iterator>

using namespace modeld;
using namespace modeld::store;
using namespace modeld::test;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view k_text = "0123456789abcdefghij";

std::vector<std::vector<std::byte>> pieces_of(std::string_view text) {
  const auto bytes = bytes_of(text);
  const auto half = bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2);
  return {{bytes.begin(), half}, {}, {half, bytes.end()}};
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Expected expected() {
  Expected expected;
  expected.size = k_text.size();
  expected.sha256 = sha(k_text);
  return expected;
}

std::ptrdiff_t files_in(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), {});
}

/// A store with a partial file of 4 bytes and parts "abc" at 10 and "fg" at 15.
struct Fixture {
  Fixture() {
    const auto store = open_store(dir / "root");
    auto ingest = *store->resume_ingest("key", expected());
    REQUIRE(ingest->write(bytes_of(k_text.substr(0, 4))));
    REQUIRE(ingest->shelve(15, pieces_of("fg")));
    REQUIRE(ingest->shelve(10, pieces_of("abc")));
  }
  fs::path at(std::string_view name) const { return dir / "root/tmp" / name; }

  TempDir dir;
};

using Parts = std::vector<ShelvedPart>;

} // namespace

TEST_CASE("Ingest keeps parts beside a resumable file and gives them back once", "[store][shelf]") {
  const Fixture f;
  const auto store = open_store(f.dir / "root");
  auto ingest = *store->resume_ingest("key", expected());
  CHECK(ingest->offset() == 4);
  CHECK(ingest->shelved() == Parts{{10, 3}, {15, 2}});
  CHECK(text_of(*ingest->unshelve(10)) == "abc");
  CHECK(ingest->shelved() == Parts{{15, 2}});
  CHECK(ingest->unshelve(10).error().code == Errc::not_found);
  CHECK_FALSE(fs::exists(f.at("resume-key.at-10")));
  CHECK(files_in(f.at("")) == 2);
}

TEST_CASE("Ingest::shelve replaces a part at the same place", "[store][shelf]") {
  const Fixture f;
  const auto store = open_store(f.dir / "root");
  auto ingest = *store->resume_ingest("key", expected());
  REQUIRE(ingest->shelve(10, pieces_of("abcde")));
  CHECK(ingest->shelved() == Parts{{10, 5}, {15, 2}});
  CHECK(text_of(*ingest->unshelve(10)) == "abcde");
}

TEST_CASE("Ingest::shelve refuses what cannot be a part", "[store][shelf]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  auto plain = *store->begin_ingest(expected());
  CHECK(plain->shelve(1, pieces_of("x")).error().code == Errc::invalid_argument);
  auto ingest = *store->resume_ingest("key", expected());
  CHECK(ingest->shelve(1, {}).error().code == Errc::invalid_argument);
  CHECK(ingest->shelve(19, pieces_of("ij!")).error().code == Errc::invalid_argument);
  CHECK(ingest->shelve(21, pieces_of("x")).error().code == Errc::invalid_argument);
  CHECK(ingest->shelve(UINT64_MAX, pieces_of("x")).error().code == Errc::invalid_argument);
  const std::vector<std::vector<std::byte>> long_part{std::vector<std::byte>(Shelf::k_longest + 1)};
  auto any = *store->resume_ingest("any", {});
  CHECK(any->shelve(0, long_part).error().code == Errc::invalid_argument);
  CHECK(files_in(dir / "root/tmp") == 3); // the files themselves
}

TEST_CASE("Ingest::unshelve gives nothing of a part with a flipped bit", "[store][shelf]") {
  const Fixture f;
  const std::string whole = read_file(f.at("resume-key.at-10"));
  REQUIRE(whole.size() == 3 + 32);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    INFO(i);
    std::string wrong = whole;
    wrong[i] = static_cast<char>(wrong[i] ^ 0x10);
    write_file(f.at("resume-key.at-10"), wrong);
    const auto store = open_store(f.dir / "root");
    auto ingest = *store->resume_ingest("key", expected());
    CHECK(ingest->unshelve(10).error().code == Errc::corrupt);
    CHECK(ingest->shelved() == Parts{{15, 2}});
    CHECK_FALSE(fs::exists(f.at("resume-key.at-10")));
  }
}

TEST_CASE("Ingest::unshelve gives nothing of a part that is cut or longer", "[store][shelf]") {
  const Fixture f;
  const std::string whole = read_file(f.at("resume-key.at-10"));
  for (std::size_t size = 0; size <= whole.size() + 2; ++size) {
    if (size == whole.size()) continue;
    INFO(size);
    std::string wrong = whole;
    wrong.resize(size, '\0');
    write_file(f.at("resume-key.at-10"), wrong);
    const auto store = open_store(f.dir / "root");
    auto ingest = *store->resume_ingest("key", expected());
    CHECK((size > 32) == (ingest->shelved().size() == 2));
    CHECK_FALSE(ingest->unshelve(10));
    CHECK_FALSE(fs::exists(f.at("resume-key.at-10")));
  }
}

TEST_CASE("Ingest::unshelve says where a part is gone", "[store][shelf]") {
  const Fixture f;
  const auto store = open_store(f.dir / "root");
  auto ingest = *store->resume_ingest("key", expected());
  fs::remove(f.at("resume-key.at-10"));
  CHECK_FALSE(ingest->unshelve(10));
  CHECK(ingest->shelved() == Parts{{15, 2}});
}

TEST_CASE("Store::resume_ingest drops parts that do not fit the file", "[store][shelf]") {
  const Fixture f;
  const std::string three = read_file(f.at("resume-key.at-10"));
  for (const std::string_view name :
       {"resume-key.at-0", "resume-key.at-1", "resume-key.at-3", // the file has that
        "resume-key.at-12",                                      // the part at 10 has
        "resume-key.at-18", "resume-key.at-20", "resume-key.at-18446744073709551615"}) {
    write_file(f.at(name), three);
  }
  write_file(f.at("resume-key.at-13"), "");
  const auto store = open_store(f.dir / "root");
  auto ingest = *store->resume_ingest("key", expected());
  CHECK(ingest->shelved() == Parts{{10, 3}, {15, 2}});
  CHECK(files_in(f.at("")) == 3);
}

TEST_CASE("Store::open sweeps what is no part of a partial file", "[store][shelf][open]") {
  const Fixture f;
  const std::vector<std::string> wrong{"resume-key.at-",
                                       "resume-key.at-x",
                                       "resume-key.at-1x",
                                       "resume-key.at--1",
                                       "resume-key.at-+1",
                                       "resume-key.at-01",
                                       "resume-key.at-0x10",
                                       "resume-key.at- 1",
                                       "resume-key.at-18446744073709551616",
                                       "resume-key.at-1.5",
                                       "resume-key.at-1.at-x",
                                       "resume-gone.at-10",
                                       "resume-.at-10",
                                       "key.at-10",
                                       "shelf-1-2"};
  for (const std::string& name : wrong) {
    write_file(f.at(name), "left over");
  }
  fs::create_directory(f.at("resume-key.at-17"));
  write_file(f.at("resume-key.at-17/x"), "x");
  const auto store = open_store(f.dir / "root");
  CHECK(files_in(f.at("")) == 3);
  CHECK(fs::exists(f.at("resume-key.at-10")));
  CHECK(fs::exists(f.at("resume-key.at-15")));
}

TEST_CASE("Ingest leaves no part behind the file's end", "[store][shelf]") {
  const Fixture f;
  const auto store = open_store(f.dir / "root");
  auto ingest = *store->resume_ingest("key", expected());
  SECTION("commit") {
    REQUIRE(ingest->write(bytes_of(k_text.substr(4))));
    REQUIRE(ingest->commit());
  }
  SECTION("commit of other bytes than were promised") {
    REQUIRE(ingest->write(bytes_of(std::string(k_text.size() - 4, 'x'))));
    CHECK(ingest->commit().error().code == Errc::digest_mismatch);
  }
  SECTION("drop") {
    ingest->drop();
  }
  CHECK(files_in(f.at("")) == 0);
}

TEST_CASE("Ingest::restart forgets the parts too", "[store][shelf][C02]") {
  const Fixture f;
  const auto store = open_store(f.dir / "root");
  auto ingest = *store->resume_ingest("key", expected());
  REQUIRE(ingest->restart());
  CHECK(ingest->shelved().empty());
  CHECK(files_in(f.at("")) == 1);
  REQUIRE(ingest->write(bytes_of(k_text)));
  REQUIRE(ingest->commit());
}

TEST_CASE("Ingest::clear_shelf forgets the parts alone", "[store][shelf]") {
  const Fixture f;
  const auto store = open_store(f.dir / "root");
  auto ingest = *store->resume_ingest("key", expected());
  ingest->clear_shelf();
  CHECK(ingest->shelved().empty());
  CHECK(ingest->offset() == 4);
  CHECK(files_in(f.at("")) == 1);
}

TEST_CASE("Ingest::shelve leaves nothing where the disk is full, at any step", "[store][shelf]") {
  for (int step = 0; step < 6; ++step) {
    INFO(step);
    TempDir dir;
    ErrorWatcher watcher;
    const auto store = open_store(dir / "root", small_options(&watcher));
    auto ingest = *store->resume_ingest("key", expected());
    REQUIRE(ingest->write(bytes_of(k_text.substr(0, 4))));
    watcher.arm(step, ENOSPC);
    const auto kept = ingest->shelve(10, pieces_of("abc"));
    watcher.disarm();
    if (watcher.fired()) {
      REQUIRE_FALSE(kept);
      CHECK(kept.error().code == Errc::no_space);
      CHECK(ingest->shelved().empty());
      CHECK(files_in(dir / "root/tmp") == 1);
    } else {
      CHECK(kept);
    }
    REQUIRE(ingest->write(bytes_of(k_text.substr(4)))); // the file itself goes on
    REQUIRE(ingest->commit());
  }
}

TEST_CASE("Ingest counts shelved bytes as written, once", "[store][shelf][space]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  Expected promise = expected();
  promise.space = *store->reserve_space(k_text.size());
  auto ingest = *store->resume_ingest("key", promise);
  REQUIRE(ingest->shelve(10, pieces_of("abc")));
  CHECK(promise.space->left() == 17);
  REQUIRE(ingest->shelve(10, pieces_of("abcd")));
  CHECK(promise.space->left() == 16);
  REQUIRE(ingest->unshelve(10));
  CHECK(promise.space->left() == 20);
  REQUIRE(ingest->shelve(15, pieces_of("fg")));
  ingest->clear_shelf();
  CHECK(promise.space->left() == 20);
  CHECK(store->usage()->reserved == 20);
  REQUIRE(ingest->write(bytes_of(k_text)));
  REQUIRE(ingest->commit());
  CHECK(promise.space->left() == 0);
}

TEST_CASE("collect takes the parts with the file that nobody continued", "[store][shelf][gc]") {
  const Fixture f;
  const auto store = open_store(f.dir / "root");
  CollectOptions options;
  options.partial_age = 3600;
  const auto young = collect(*store, options, nullptr);
  REQUIRE(young);
  CHECK(files_in(f.at("")) == 3);
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(2);
  fs::last_write_time(f.at("resume-key.part"), old);
  fs::last_write_time(f.at("resume-key.at-10"), old);
  REQUIRE(collect(*store, options, nullptr)); // the part at 15 is young
  CHECK(files_in(f.at("")) == 3);
  fs::last_write_time(f.at("resume-key.at-15"), old);
  {
    const auto ingest = *store->resume_ingest("key", expected()); // in use
    REQUIRE(collect(*store, options, nullptr));
    CHECK(files_in(f.at("")) == 3);
  }
  const auto plan = collect(*store, options, nullptr);
  REQUIRE(plan);
  CHECK(plan->won == 4 + (3 + 32) + (2 + 32));
  CHECK(files_in(f.at("")) == 0);
}

TEST_CASE("a part's name belongs to one file, whatever that is called", "[store][shelf]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  auto plain = *store->resume_ingest("key", expected());
  auto odd = *store->resume_ingest("key.at-10", expected());
  REQUIRE(odd->shelve(12, pieces_of("cd")));
  REQUIRE(plain->shelve(10, pieces_of("abc")));
  plain->drop();
  CHECK(odd->shelved() == Parts{{12, 2}});
  CHECK(text_of(*odd->unshelve(12)) == "cd");
}
