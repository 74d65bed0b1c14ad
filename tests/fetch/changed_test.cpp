// SPDX-License-Identifier: Apache-2.0
// A file that changes at the server between two lives of the client: what the first life was told
// about its bytes is kept with them, so nothing of another file is put behind them.
#include "fetch/hub_client.hpp"

#include "tests/fetch/fetch_hosts.hpp"
#include "tests/fetch/test_bytes.hpp"
#include "tests/hub/test_hub.hpp"

#include <catch2/catch.hpp>

using namespace modeld;
using namespace modeld::fetch;
using namespace modeld::test;

namespace {

const RepoId k_repo{"org/name"};
constexpr std::size_t k_size = (1 << 20) + 13;
constexpr std::size_t k_kept = 400'000;

// One large file of which the first bytes are here, with what the storage said about them.
struct Half {
  std::string bytes = random_bytes(k_size);
  TestHub hub;
  GitOid commit;
  ListedFile file;
  Validator validator;

  Half() {
    commit = GitOid::parse(hub.add_repo("org/name", {{"model.bin", bytes}})).value();
    TestHost host;
    file = client().list(k_repo, commit, {}, host).value()[0];
    MemoryDownload first({file});
    std::uint64_t got = 0;
    first.progress = [&](std::size_t, std::uint64_t now) { got = now; };
    first.cancel = [&] { return got > 0; };
    hub.misbehave(slow());
    const auto stopped = client().download(k_repo, commit, first.downloads, {}, first);
    REQUIRE_FALSE(stopped);
    validator = first.validators[0];
    hub.script().clear();
    hub.forget_requests();
  }

  static FaultRule slow() {
    FaultRule rule;
    rule.fault = "slow";
    rule.match.origin = Origin::data;
    rule.at = 4 << 20;
    return rule;
  }

  HubClient client() {
    HubOptions options;
    options.endpoint = hub.endpoint();
    return HubClient::create(options).value();
  }

  void misbehave(std::string fault, unsigned times) {
    FaultRule rule;
    rule.fault = std::move(fault);
    rule.match.origin = Origin::data;
    rule.match.times = times;
    hub.misbehave(rule);
  }

  MemoryDownload rest() { return MemoryDownload({file}); }

  Result<void> go_on(MemoryDownload& download) {
    download.keep(0, bytes.substr(0, k_kept), validator);
    return client().download(k_repo, commit, download.downloads, {}, download);
  }

  /// The Range and If-Range of the storage's requests, in order.
  std::vector<std::pair<std::string, std::string>> asked() const {
    std::vector<std::pair<std::string, std::string>> out;
    for (const SeenRequest& seen : hub.requests()) {
      if (seen.request.origin != Origin::data) continue;
      out.emplace_back(seen.request.header("Range"), seen.request.header("If-Range"));
    }
    return out;
  }
};

} // namespace

TEST_CASE("HubClient::download tells what the bytes are before they come", "[fetch][validator]") {
  const Half half;
  CHECK(half.validator.origin == half.hub.data_endpoint());
  CHECK(half.validator.etag.size() == 66); // the storage's own tag, in quotes
}

TEST_CASE("HubClient::download asks by the validator of an earlier life", "[fetch][validator]") {
  Half half;
  MemoryDownload download = half.rest();
  REQUIRE(half.go_on(download));
  CHECK(download.bytes("model.bin") == half.bytes);
  CHECK(download.restarts == 0);
  const std::vector<std::pair<std::string, std::string>> expected{
      {"bytes=400000-", half.validator.etag}};
  CHECK(half.asked() == expected);
}

TEST_CASE("HubClient::download glues nothing to a file that changed between two lives",
          "[fetch][validator][C02]") {
  const std::string fault = GENERATE("replaced", "replaced_blindly", "replaced_silently");
  INFO(fault);
  SECTION("for one answer: all of it is fetched again") {
    Half half;
    half.misbehave(fault, 1);
    MemoryDownload download = half.rest();
    const auto done = half.go_on(download);
    INFO((done ? "" : done.error().message));
    REQUIRE(done);
    CHECK(download.bytes("model.bin") == half.bytes);
    CHECK(half.asked().front().second == half.validator.etag);
  }
  SECTION("for good: the digest is wrong, and stays wrong when all is fetched again") {
    Half half;
    half.misbehave(fault, 0);
    MemoryDownload download = half.rest();
    const auto done = half.go_on(download);
    REQUIRE_FALSE(done);
    CHECK(done.error().code == Errc::digest_mismatch);
    CHECK(download.published.empty());
    CHECK(download.restarts >= 1);
    CHECK(half.asked().back().first.empty()); // the last try is the whole file
  }
}

TEST_CASE("HubClient::download sends a validator only to the origin that gave it",
          "[fetch][validator]") {
  Half half;
  half.validator.origin = "http://127.0.0.1:1";
  MemoryDownload download = half.rest();
  REQUIRE(half.go_on(download));
  CHECK(half.asked().front().second.empty());
}
