// SPDX-License-Identifier: Apache-2.0
// resolve and list while the Hub misbehaves: the whole answer, or a named error.
#include "fetch/hub_client.hpp"

#include "tests/fetch/fetch_hosts.hpp"
#include "tests/hub/test_hub.hpp"

#include <catch2/catch.hpp>

using namespace modeld;
using namespace modeld::fetch;
using namespace modeld::test;

namespace {

const RepoId k_repo{"org/name"};

/// A Hub with one repository of 120 files on pages of 50, and a client with a token.
struct Fixture {
  explicit Fixture(std::string path) : hub(config()), match_path(std::move(path)) {
    std::vector<std::pair<std::string, std::string>> files;
    for (int i = 0; i < 120; ++i)
      files.emplace_back(fmt::format("f{:03}.txt", i), "x");
    commit = hub.add_repo("org/name", files);
    hub.change([](Repositories& all) { all.add_token("hf_secret", {"org/name"}); });
    host.stalled = [this] { return hub.silent(); };
  }
  static HubConfig config() {
    HubConfig with;
    with.page_size = 50;
    return with;
  }
  FaultRule rule(std::string name, unsigned from = 1, unsigned times = 1) const {
    FaultRule made;
    made.fault = std::move(name);
    made.match.path = match_path;
    made.match.from = from;
    made.match.times = times;
    return made;
  }
  Result<std::vector<ListedFile>> list() {
    HubOptions options;
    options.endpoint = hub.endpoint();
    return HubClient::create(options).value().list(k_repo, GitOid::parse(commit).value(),
                                                   token("hf_secret"), host);
  }
  Result<Resolved> resolve() {
    HubOptions options;
    options.endpoint = hub.endpoint();
    return HubClient::create(options).value().resolve(k_repo, "main", token("hf_secret"), host);
  }

  TestHub hub;
  std::string match_path;
  std::string commit;
  TestHost host;
};

} // namespace

TEST_CASE("HubClient::list reads to the end or fails, whatever breaks a page",
          "[fetch][list][matrix][C12]") {
  Fixture at("/tree/");
  const auto run = [&](FaultRule rule, std::optional<Errc> end) {
    INFO(rule.fault << " status " << rule.status << " from " << rule.match.from << " times "
                    << rule.match.times);
    at.hub.script().clear();
    at.hub.misbehave(std::move(rule));
    const auto listed = at.list();
    if (end) {
      REQUIRE_FALSE(listed);
      CHECK(listed.error().code == *end);
    } else {
      if (!listed) FAIL(listed.error().message);
      CHECK(listed->size() == 120);
    }
  };
  for (const unsigned page : {1u, 2u, 3u}) {
    for (const char* name : {"hang_up", "reset_at_once", "never_answer", "cut", "reset", "stall"}) {
      FaultRule rule = at.rule(name, page);
      rule.at = 100;
      run(rule, std::nullopt);
      rule.match.times = 0;
      run(rule, Errc::net_transient);
    }
    for (const unsigned status : {500u, 503u, 429u, 408u}) {
      FaultRule rule = at.rule("status", page);
      rule.status = status;
      rule.seconds = 30;
      run(rule, std::nullopt);
      rule.match.times = 0;
      run(rule, Errc::net_transient); // an endless 429 is never "not found"
    }
    run(at.rule("page", page), Errc::malformed);
    run(at.rule("self_link", page), Errc::malformed);
    run(at.rule("gzip", page), std::nullopt);
    run(at.rule("chunked", page), std::nullopt);
    run(at.rule("odd_link", page, 0), std::nullopt);
    run(at.rule("endless_pages", page, 0), Errc::malformed);
    run(at.rule("empty_pages", page, 0), Errc::malformed);
    if (page < 3) run(at.rule("broken_link", page), Errc::malformed);
    FaultRule far = at.rule("set_header", page);
    far.name = "Link";
    far.value = "<http://127.0.0.1:9/api/models/x?cursor=1>; rel=\"next\"";
    run(far, Errc::malformed);
    FaultRule cut_json = at.rule("short_body", page);
    cut_json.at = 100;
    run(cut_json, Errc::malformed);
  }
}

TEST_CASE("HubClient::list waits as long as the Hub asks, and says so",
          "[fetch][list][C11][pitfall-23]") {
  Fixture at("/tree/");
  FaultRule rule = at.rule("rate_limit");
  rule.seconds = 55;
  at.hub.misbehave(rule);
  const auto before = at.host.time.now();
  REQUIRE(at.list());
  CHECK(at.host.time.now() - before >= std::chrono::seconds(56));
  REQUIRE(at.host.notices.size() == 1);
  CHECK(at.host.notices[0].kind == Notice::Kind::rate_limited);
}

TEST_CASE("HubClient::resolve ends right under every fault", "[fetch][resolve][matrix]") {
  Fixture at("/revision/");
  for (const char* name : {"hang_up", "never_answer", "cut", "stall", "reset"}) {
    INFO(name);
    at.hub.script().clear();
    at.hub.misbehave(at.rule(name));
    CHECK(at.resolve());
    at.hub.script().clear();
    at.hub.misbehave(at.rule(name, 1, 0));
    const auto never = at.resolve();
    REQUIRE_FALSE(never);
    CHECK(never.error().code == Errc::net_transient);
  }
  for (const char* name : {"page", "disguised_page"}) {
    at.hub.script().clear();
    at.hub.misbehave(at.rule(name));
    const auto page = at.resolve();
    REQUIRE_FALSE(page);
    CHECK(page.error().code == Errc::malformed);
  }
}

TEST_CASE("HubClient::resolve stops at once while the Hub is silent", "[fetch][resolve][C17]") {
  Fixture at("/revision/");
  at.hub.misbehave(at.rule("never_answer", 1, 0));
  at.host.stalled = nullptr; // time stands still: only cancelling helps
  at.host.cancel = [&] { return at.hub.silent(); };
  const auto resolved = at.resolve();
  REQUIRE_FALSE(resolved);
  CHECK(resolved.error().code == Errc::cancelled);
}

TEST_CASE("HubClient follows a mirror's redirects to listed Hub hosts only, without the token",
          "[fetch][resolve][C06][pitfall-2]") {
  Fixture at("/revision/");
  TestHub elsewhere;
  FaultRule rule = at.rule("redirect", 1, 0);
  rule.status = 308;
  rule.value = elsewhere.endpoint() + "/api/models/org/name/revision/main";
  at.hub.misbehave(rule);
  const auto resolved = at.resolve();
  REQUIRE_FALSE(resolved);
  CHECK(resolved.error().code == Errc::net_permanent);
  CHECK(resolved.error().message.find(elsewhere.endpoint()) != std::string::npos);
  CHECK(elsewhere.requests().empty());
}
