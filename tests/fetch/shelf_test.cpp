// SPDX-License-Identifier: Apache-2.0
// Parts that came before their turn outlive the download that fetched them: the next one asks for
// the gaps only, and never takes from the shelf what does not belong to the file.
#include "fetch/part_shelf.hpp"

#include "fetch/hub_client.hpp"
#include "tests/fetch/fetch_hosts.hpp"
#include "tests/fetch/one_file_hub.hpp"

#include <catch2/catch.hpp>

#include <charconv>
#include <optional>

using namespace modeld;
using namespace modeld::fetch;
using namespace modeld::test;

namespace {

constexpr std::uint64_t k_part = 256 << 10;
constexpr std::uint64_t k_size = 16 * k_part + 13;

std::uint64_t number(std::string_view text, std::uint64_t otherwise) {
  std::from_chars(text.data(), text.data() + text.size(), otherwise);
  return otherwise;
}

/// What a life of the client left, beside the shelf.
struct Left {
  std::string bytes;
  Validator validator;
};

struct Fixture : OneFileHub {
  Fixture() : OneFileHub(k_size, k_part) {}

  Result<void> fetch(MemoryDownload& download) {
    // Time goes on in small steps, and only while nothing else can: a busy machine changes nothing.
    if (hangs) {
      download.stalled = [&] {
        if (hub.silent()) download.time.advance(std::chrono::milliseconds(500));
        return false;
      };
    }
    download.downloads[0].shelf = &shelf;
    return OneFileHub::fetch(download);
  }

  /// Answers that cover this byte of the file.
  void misbehave(std::string name, std::uint64_t covers, std::uint64_t at = 0, unsigned times = 0) {
    FaultRule rule = rule_at(std::move(name), covers, at);
    rule.match.times = times;
    hangs = hangs || rule.fault == "stall";
    hub.misbehave(rule);
  }

  void calm() {
    hub.script().clear();
    hub.forget_requests();
    hangs = false;
  }

  /// A download in which the first part hangs, ended when so many parts have come ahead of it.
  Left hang_front(std::size_t parts) {
    misbehave("stall", k_part - 1, 100);
    MemoryDownload download(files);
    download.cancel = [this, parts] { return shelf.parts.size() >= parts; };
    const auto done = fetch(download);
    REQUIRE_FALSE(done);
    CHECK(done.error().code == Errc::cancelled);
    calm();
    return {download.bytes("model.bin"), download.validators[0]};
  }

  /// Bytes that the storage was asked for.
  std::uint64_t asked() const {
    std::uint64_t sum = 0;
    for (const SeenRequest& seen : hub.requests()) {
      if (seen.request.origin != Origin::data) continue;
      const std::string range(seen.request.header("Range"));
      if (range.empty()) {
        sum += k_size;
        continue;
      }
      const auto dash = range.find('-');
      sum += number(range.substr(dash + 1), k_size - 1) + 1 - number(range.substr(6), 0);
    }
    return sum;
  }

  MemoryShelf shelf;
  bool hangs = false; ///< an answer may
};

/// Goes on as a new process would.
struct NextLife : MemoryDownload {
  NextLife(const Fixture& at, const Left& left) : MemoryDownload(at.files) {
    keep(0, left.bytes, left.validator);
  }
};

} // namespace

TEST_CASE("FileFetch killed with parts ahead asks afterwards for what is missing only",
          "[fetch][shelf]") {
  Fixture at;
  MemoryShelf at_kill;
  at.misbehave("stall", k_part - 1, 100);
  MemoryDownload first(at.files);
  first.cancel = [&] {
    at_kill.parts = at.shelf.parts; // what a kill -9 at this moment leaves
    return at.shelf.parts.size() >= 5;
  };
  REQUIRE_FALSE(at.fetch(first));
  REQUIRE(at_kill.parts.size() >= 5);
  at.shelf.parts = at_kill.parts;
  at.calm();
  NextLife rest(at, {"", first.validators[0]});
  REQUIRE(at.fetch(rest));
  CHECK(rest.bytes("model.bin") == at.bytes);
  CHECK(rest.restarts == 0);
  CHECK(at.asked() == k_size - at_kill.bytes());
  CHECK(at.shelf.parts.empty());
}

TEST_CASE("FileFetch keeps what came too early when it is stopped, also beginnings",
          "[fetch][shelf]") {
  Fixture at;
  at.misbehave("stall", k_part - 1, 100);
  at.misbehave("stall", 2 * k_part - 1, 100'000); // worth keeping
  at.misbehave("stall", 3 * k_part - 1, 60'000);  // not
  MemoryDownload first(at.files);
  std::optional<Clock::time_point> came;
  first.cancel = [&] {
    unsigned stalled = 0;
    for (const auto& seen : at.hub.requests()) {
      const std::string_view range = seen.request.header("Range");
      if (range.starts_with("bytes=262144-") || range.starts_with("bytes=524288-")) ++stalled;
    }
    if (stalled >= 2 && !came) came = first.time.now();
    // They have come as far as they will.
    return came && first.time.now() - *came > std::chrono::seconds(5);
  };
  at.options.low_speed_time = std::chrono::hours(24);
  at.options.head_patience = std::chrono::hours(24);
  at.options.shelve_after = std::chrono::hours(24); // nothing before the end
  REQUIRE_FALSE(at.fetch(first));
  REQUIRE(at.shelf.parts.count(k_part) == 1);
  CHECK(at.shelf.parts[k_part] == at.bytes.substr(k_part, 100'000));
  CHECK(at.shelf.parts.count(2 * k_part) == 0);
  const std::uint64_t kept = at.shelf.bytes() + first.bytes("model.bin").size();
  at.calm();
  NextLife rest(at, {first.bytes("model.bin"), first.validators[0]});
  REQUIRE(at.fetch(rest));
  CHECK(rest.bytes("model.bin") == at.bytes);
  CHECK(at.asked() == k_size - kept);
}

TEST_CASE("FileFetch keeps complete parts when a range or another file fails", "[fetch][shelf]") {
  Fixture at;
  FaultRule rule;
  rule.fault = "status";
  rule.status = 404;
  rule.match.origin = Origin::data;
  rule.match.covers = k_part + 5; // the second part never comes
  rule.match.times = 0;
  at.hub.misbehave(rule);
  at.misbehave("slow", k_part - 1, 1 << 20);
  MemoryDownload first(at.files);
  const auto done = at.fetch(first);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::net_transient);
  const std::string kept = first.bytes("model.bin");
  CHECK(kept == at.bytes.substr(0, kept.size()));
  const std::uint64_t here = kept.size() + at.shelf.bytes();
  at.calm();
  NextLife rest(at, {kept, first.validators[0]});
  REQUIRE(at.fetch(rest));
  CHECK(rest.bytes("model.bin") == at.bytes);
  CHECK(at.asked() == k_size - here);
}

TEST_CASE("FileFetch puts nothing on the shelf where no part waits", "[fetch][shelf]") {
  Fixture at;
  MemoryDownload download(at.files);
  REQUIRE(at.fetch(download));
  CHECK(download.bytes("model.bin") == at.bytes);
  CHECK(at.shelf.puts == 0);
}

TEST_CASE("FileFetch takes parts back from the shelf in the same life", "[fetch][shelf]") {
  Fixture at;
  at.misbehave("stall", k_part - 1, 100, 1);
  at.options.head_patience = std::chrono::seconds(25);
  MemoryDownload download(at.files);
  REQUIRE(at.fetch(download));
  CHECK(download.bytes("model.bin") == at.bytes);
  CHECK(at.shelf.puts >= 1);
  CHECK(at.shelf.parts.empty());
  CHECK(at.asked() == k_size + k_part - 100);
}

TEST_CASE("FileFetch gives memory back for parts on the shelf", "[fetch][shelf]") {
  Fixture at;
  at.options.max_buffer_bytes = k_part; // one part ahead at a time
  at.hang_front(5);
  CHECK(at.shelf.parts.size() >= 5);
}

TEST_CASE("FileFetch fetches again what the shelf does not give back", "[fetch][shelf]") {
  Fixture at;
  const Left first = at.hang_front(4);
  std::uint64_t lost = 0;
  SECTION("one part does not check") {
    at.shelf.also_listed.push_back({at.shelf.parts.begin()->first, k_part});
    at.shelf.parts.erase(at.shelf.parts.begin());
    lost = k_part;
  }
  SECTION("none does") {
    for (const auto& [offset, text] : at.shelf.parts) {
      at.shelf.also_listed.push_back({offset, text.size()});
    }
    lost = at.shelf.bytes();
    at.shelf.parts.clear();
  }
  SECTION("one is not of the length that was listed") {
    const auto second = std::next(at.shelf.parts.begin());
    at.shelf.also_listed.push_back({second->first, k_part});
    at.shelf.parts[second->first + 1] = "x"; // in its place
    at.shelf.parts.erase(second);
    lost = k_part;
  }
  const std::uint64_t here = at.shelf.bytes();
  NextLife rest(at, first);
  REQUIRE(at.fetch(rest));
  CHECK(rest.bytes("model.bin") == at.bytes);
  CHECK(lost > 0);
  CHECK(at.asked() <= k_size - here - first.bytes.size() + 1);
}

TEST_CASE("FileFetch leaves parts at wrong places alone", "[fetch][shelf]") {
  Fixture at;
  using Parts = std::vector<PartShelf::Part>;
  at.shelf.also_listed = GENERATE(Parts{{0, k_part}},                         // the sink has that
                                  Parts{{k_part - 1, k_part}},                // overlaps it
                                  Parts{{2 * k_part, k_size}},                // beyond the size
                                  Parts{{k_size, 1}}, Parts{{k_size + 5, 1}}, // behind the end
                                  Parts{{UINT64_MAX, UINT64_MAX}}, Parts{{2 * k_part, UINT64_MAX}},
                                  Parts{{2 * k_part, 0}});
  NextLife rest(at, {at.bytes.substr(0, k_part), {}});
  REQUIRE(at.fetch(rest));
  CHECK(rest.bytes("model.bin") == at.bytes);
  CHECK(at.asked() == k_size - k_part);
}

TEST_CASE("FileFetch uses of two parts that overlap one", "[fetch][shelf]") {
  Fixture at;
  at.shelf.parts[2 * k_part] = at.bytes.substr(2 * k_part, k_part);
  at.shelf.parts[3 * k_part - 5] = "these bytes are wrong";
  NextLife rest(at, {"", {}});
  REQUIRE(at.fetch(rest));
  CHECK(rest.bytes("model.bin") == at.bytes);
  CHECK(at.asked() == k_size - k_part);
}

TEST_CASE("FileFetch makes no request where sink and shelf have all of it", "[fetch][shelf]") {
  Fixture at;
  at.shelf.parts[k_part] = at.bytes.substr(k_part, 5);
  at.shelf.parts[k_part + 5] = at.bytes.substr(k_part + 5);
  NextLife rest(at, {at.bytes.substr(0, k_part), {}});
  REQUIRE(at.fetch(rest));
  CHECK(rest.bytes("model.bin") == at.bytes);
  CHECK(at.hub.requests().empty());
}

TEST_CASE("FileFetch goes on without a shelf that is full", "[fetch][shelf]") {
  Fixture at;
  at.shelf.full = true;
  at.misbehave("stall", k_part - 1, 100, 1);
  at.options.head_patience = std::chrono::seconds(25);
  MemoryDownload download(at.files);
  REQUIRE(at.fetch(download));
  CHECK(download.bytes("model.bin") == at.bytes);
  CHECK(at.shelf.puts == 1); // it is not asked again and again
}

TEST_CASE("FileFetch never glues shelved parts to a file that changed", "[fetch][shelf][C02]") {
  const std::string fault = GENERATE("replaced", "replaced_blindly", "replaced_silently");
  INFO(fault);
  Fixture at;
  const Left first = at.hang_front(4);
  const std::string kept = GENERATE(true, false) ? first.bytes : std::string();
  const unsigned times = GENERATE(1u, 0u);
  FaultRule rule;
  rule.fault = fault;
  rule.match.origin = Origin::data;
  rule.match.times = times;
  at.hub.misbehave(rule);
  NextLife rest(at, {kept, first.validator});
  const auto done = at.fetch(rest);
  if (times == 1) {
    INFO((done ? "" : done.error().message));
    REQUIRE(done);
    CHECK(rest.bytes("model.bin") == at.bytes);
  } else {
    REQUIRE_FALSE(done);
    CHECK(done.error().code == Errc::digest_mismatch);
    CHECK(rest.published.empty());
  }
  CHECK(at.shelf.parts.empty());
  CHECK_FALSE(at.hub.requests().empty());
  bool asked_by_etag = false;
  for (const SeenRequest& seen : at.hub.requests()) {
    if (seen.request.header("If-Range") == first.validator.etag) asked_by_etag = true;
  }
  CHECK(asked_by_etag); // also where the sink was empty
}

TEST_CASE("FileFetch clears the shelf for a server that gives the whole file only",
          "[fetch][shelf]") {
  Fixture at;
  const Left first = at.hang_front(4);
  FaultRule rule;
  rule.fault = "whole_file";
  rule.match.origin = Origin::data;
  rule.match.ranged = true;
  rule.match.times = 0;
  at.hub.misbehave(rule);
  NextLife rest(at, {"", first.validator});
  REQUIRE(at.fetch(rest));
  CHECK(rest.bytes("model.bin") == at.bytes);
  CHECK(at.shelf.clears >= 1);
  CHECK(at.shelf.parts.empty());
}

TEST_CASE("FileFetch fetches all again where a shelved part was wrong", "[fetch][shelf][C15]") {
  Fixture at;
  const Left first = at.hang_front(4);
  at.shelf.parts.begin()->second[7] ^= 1; // no checksum would tell: it came so
  NextLife rest(at, first);
  REQUIRE(at.fetch(rest));
  CHECK(rest.bytes("model.bin") == at.bytes);
  CHECK(rest.restarts == 1);
  CHECK(at.shelf.parts.empty());
}

TEST_CASE("FileFetch goes on through many cancels with all that each one left", "[fetch][shelf]") {
  Fixture at;
  std::string kept;
  Validator validator;
  for (int life = 0; life < 4; ++life) {
    at.misbehave("stall", kept.size() + 5000, 100); // another front each time
    NextLife download(at, {kept, validator});
    const std::size_t before = at.shelf.parts.size();
    download.cancel = [&] { return at.shelf.parts.size() >= before + 2; };
    REQUIRE_FALSE(at.fetch(download));
    at.calm();
    kept = download.bytes("model.bin");
    CHECK(kept == at.bytes.substr(0, kept.size()));
    if (!download.validators[0].etag.empty()) validator = download.validators[0];
  }
  CHECK(at.shelf.parts.size() >= 8);
  const std::uint64_t here = kept.size() + at.shelf.bytes();
  NextLife rest(at, {kept, validator});
  REQUIRE(at.fetch(rest));
  CHECK(rest.bytes("model.bin") == at.bytes);
  CHECK(at.asked() == k_size - here);
}
