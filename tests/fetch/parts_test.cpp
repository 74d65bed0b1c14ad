// SPDX-License-Identifier: Apache-2.0
// Large files in several ranges at once.
#include "fetch/hub_client.hpp"

#include "fetch/bandwidth.hpp"
#include "fetch/range_tuner.hpp"
#include "tests/fetch/fetch_hosts.hpp"
#include "tests/fetch/one_file_hub.hpp"
#include "tests/fetch/test_bytes.hpp"
#include "tests/hub/test_hub.hpp"

#include <catch2/catch.hpp>

using namespace modeld;
using namespace modeld::fetch;
using namespace modeld::test;

namespace {

const RepoId k_repo{"org/name"};
constexpr std::uint64_t k_part = 64 << 10;
constexpr std::size_t k_size = (1 << 20) + 13;

struct Fixture : OneFileHub {
  Fixture() : OneFileHub(k_size, k_part) {}
  Result<void> fetch(MemoryDownload& download) const {
    download.stalled = [this] { return hub.silent(); };
    return OneFileHub::fetch(download);
  }
  static FaultRule at_middle(std::string name, std::uint64_t at = 0) {
    return rule_at(std::move(name), k_size / 2, at);
  }
};

} // namespace

TEST_CASE("FileFetch cuts a large file into parts and asks the site once", "[fetch][parts]") {
  Fixture at;
  MemoryDownload download(at.files);
  REQUIRE(at.fetch(download));
  CHECK(download.bytes("model.bin") == at.bytes);
  unsigned parts = 0;
  for (const auto& seen : at.hub.requests()) {
    if (seen.request.origin == Origin::data) ++parts;
  }
  CHECK(parts == 17);
  CHECK(at.hub.requests().size() == 17 + 1);
}

TEST_CASE("FileFetch mends one broken part without touching the others", "[fetch][parts]") {
  for (const char* name :
       {"cut", "reset", "stall", "hang_up", "never_answer", "short_body", "bare_206"}) {
    INFO(name);
    Fixture at;
    at.hub.misbehave(at.at_middle(name, 1000));
    MemoryDownload download(at.files);
    REQUIRE(at.fetch(download));
    CHECK(download.bytes("model.bin") == at.bytes);
    CHECK(download.restarts == 0);
  }
}

TEST_CASE("FileFetch asks for a late first part again before it counts as silent",
          "[fetch][parts][C17]") {
  Fixture at;
  FaultRule late;
  late.fault = "stall";
  late.at = 100;
  late.match.origin = Origin::data;
  late.match.covers = k_part + 1;
  at.hub.misbehave(late);
  MemoryDownload download(at.files);
  const auto before = download.time.now();
  // Time goes on in small steps, and only while nothing else can.
  download.stalled = [&] {
    if (at.hub.silent()) download.time.advance(std::chrono::milliseconds(500));
    return false;
  };
  REQUIRE(HubClient::create(at.options)
              .value()
              .download(k_repo, at.commit, download.downloads, {}, download));
  CHECK(download.bytes("model.bin") == at.bytes);
  CHECK(download.told(Notice::Kind::stalled));
  CHECK(download.time.now() - before < at.options.low_speed_time / 2);
}

TEST_CASE("FileFetch never glues parts of two different files together", "[fetch][parts][C02]") {
  Fixture at;
  at.hub.misbehave(at.at_middle("other_etag"));
  MemoryDownload download(at.files);
  REQUIRE(at.fetch(download));
  CHECK(download.bytes("model.bin") == at.bytes);
}

TEST_CASE("FileFetch keeps a beginning of the file in the sink, whatever comes first",
          "[fetch][parts][resume]") {
  Fixture at;
  at.hub.misbehave([&] {
    FaultRule rule = at.at_middle("status");
    rule.status = 404;
    rule.match.times = 0;
    return rule;
  }());
  MemoryDownload download(at.files);
  const auto done = at.fetch(download);
  REQUIRE_FALSE(done);
  const std::string& kept = download.bytes("model.bin");
  CHECK(kept == at.bytes.substr(0, kept.size()));
  CHECK(kept.size() == k_size / 2 / k_part * k_part);
  at.hub.script().clear();
  MemoryDownload rest(at.files);
  rest.keep(0, kept);
  REQUIRE(at.fetch(rest));
  CHECK(rest.bytes("model.bin") == at.bytes);
}

TEST_CASE("FileFetch renews expired addresses as often as needed",
          "[fetch][parts][C03][pitfall-27]") {
  Fixture at;
  FaultRule rule;
  rule.fault = "expire_after";
  rule.at = 20'000; // more than fifty times in this file
  rule.match.origin = Origin::data;
  rule.match.times = 0;
  at.hub.misbehave(rule);
  std::int64_t second = 1'000'000; // each address differs from the last
  at.hub.set_clock([&second] { return ++second; });
  MemoryDownload download(at.files);
  REQUIRE(at.fetch(download));
  CHECK(download.bytes("model.bin") == at.bytes);
  CHECK(download.told(Notice::Kind::renewed));
}

TEST_CASE("FileFetch narrows its ranges for a server that refuses long ones",
          "[fetch][C08][pitfall-26]") {
  Fixture at;
  const std::string big = random_bytes(5 << 20);
  const auto commit = GitOid::parse(at.hub.add_repo("org/name", {{"big.bin", big}})).value();
  TestHost host;
  at.options.part_bytes = 64 << 20;
  HubClient client = HubClient::create(at.options).value();
  const auto files = client.list(k_repo, commit, {}, host).value();
  FaultRule rule;
  rule.fault = "max_range";
  rule.at = 1 << 20;
  rule.match.origin = Origin::data;
  rule.match.times = 0;
  at.hub.misbehave(rule);
  MemoryDownload download(files);
  REQUIRE(client.download(k_repo, commit, download.downloads, {}, download));
  CHECK(download.bytes("big.bin") == big);
}

TEST_CASE("FileFetch keeps to its limit of memory and of ranges", "[fetch][parts]") {
  Fixture at;
  at.options.max_buffer_bytes = k_part; // one part ahead
  MemoryDownload download(at.files);
  REQUIRE(at.fetch(download));
  CHECK(download.bytes("model.bin") == at.bytes);
  at.options.max_ranges = 1;
  at.hub.forget_requests();
  MemoryDownload single(at.files);
  REQUIRE(at.fetch(single));
  CHECK(at.hub.requests().size() == 2);
}

TEST_CASE("RangeTuner goes up while that helps, and back where it does not", "[fetch][parts]") {
  using std::chrono::seconds;
  RangeTuner tuner(8);
  Clock::time_point now{std::chrono::hours(1)};
  std::uint64_t bytes = 0;
  const auto second = [&](std::uint64_t rate) {
    now += seconds(1);
    bytes += rate;
    tuner.measure(now, bytes);
    return tuner.level();
  };
  tuner.measure(now, 0);
  CHECK(tuner.level() == 2);
  CHECK(second(100) == 4);
  CHECK(second(200) == 8);
  CHECK(second(205) == 4); // no faster: back
  for (int i = 0; i < 29; ++i)
    CHECK(second(200) == 4);
  second(200);
  CHECK(tuner.level() == 8); // looks again
  CHECK(second(400) == 8);   // now it helps, and there are no more
  CHECK(second(100) == 8);   // one slow second is no reason
}

TEST_CASE("Bandwidth holds the average and may be changed while it runs", "[fetch][bandwidth]") {
  const auto limit = std::make_shared<Bandwidth>(1000);
  Bandwidth::Share share(limit);
  const Clock::time_point now{std::chrono::hours(1)};
  CHECK(share.wait(now) == Clock::duration::zero());
  share.count(500, now);
  share.count(1500, now);
  CHECK(share.wait(now) == std::chrono::seconds(2));
  CHECK(share.wait(now + std::chrono::seconds(3)) == Clock::duration::zero());
  limit->set_limit(0);
  CHECK(share.wait(now) == Clock::duration::zero());
  share.count(1u << 30, now);
  CHECK(share.wait(now) == Clock::duration::zero());
}

TEST_CASE("Bandwidth gives two clients the same, whatever they take at once",
          "[fetch][bandwidth]") {
  const auto limit = std::make_shared<Bandwidth>(100'000);
  Bandwidth::Share many(limit);
  Bandwidth::Share one(limit);
  // Each reads what has arrived for it since it read last, at most so much.
  const auto race = [&](Clock::time_point from, std::uint64_t most_of_many, double arrives) {
    std::pair<std::uint64_t, std::uint64_t> got;
    double waiting = 0;
    for (auto now = from; now < from + std::chrono::seconds(20);
         now += std::chrono::milliseconds(2)) {
      waiting = std::min(waiting + arrives * 0.002, 1000.0);
      if (many.wait(now) == Clock::duration::zero()) {
        many.count(most_of_many, now);
        got.first += most_of_many;
      }
      const auto take = static_cast<std::uint64_t>(waiting);
      if (arrives > 0 && one.wait(now) == Clock::duration::zero() && take > 0) {
        one.count(take, now);
        got.second += take;
        waiting = 0;
      }
    }
    return got;
  };
  const Clock::time_point start{std::chrono::hours(1)};
  const auto both = race(start, 8000, 1e9); // eight connections against one
  CHECK(both.first + both.second > 1'800'000);
  CHECK(both.first + both.second < 2'200'000);
  CHECK(both.first < 2 * both.second);
  CHECK(both.second < 2 * both.first);
  // What one leaves, the other may take.
  const auto alone = race(start + std::chrono::hours(1), 8000, 0);
  CHECK(alone.first > 1'800'000);
  const auto little = race(start + std::chrono::hours(2), 8000, 5000);
  CHECK(little.second > 80'000); // of 100,000 that arrived
  CHECK(little.first > 1'600'000);
}

TEST_CASE("HubClient::download keeps each bandwidth limit", "[fetch][bandwidth]") {
  Fixture at;
  const auto global = std::make_shared<Bandwidth>(10 << 20);
  const auto own = std::make_shared<Bandwidth>(128 << 10);
  at.options.limits = {global, own};
  MemoryDownload download(at.files);
  const auto before = download.time.now();
  REQUIRE(at.fetch(download));
  const auto took = download.time.now() - before;
  CHECK(took >= std::chrono::seconds(6)); // 8 s, of which the last debt is not waited for
  CHECK(took <= std::chrono::seconds(10));
  CHECK_FALSE(download.told(Notice::Kind::stalled));
}
