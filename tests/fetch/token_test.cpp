// SPDX-License-Identifier: Apache-2.0
// The token goes to the Hub's exact origin and nowhere else (design rule 5, failure case C04). Two
// Hubs stand for every other origin, and each byte that reached them is searched.
#include "fetch/hub_client.hpp"

#include "tests/fetch/fetch_hosts.hpp"
#include "tests/fetch/test_bytes.hpp"
#include "tests/hub/test_hub.hpp"
#include "tests/support/temp_dir.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace modeld;
using namespace modeld::fetch;
using namespace modeld::test;

namespace {

constexpr std::string_view k_secret = "hf_ThisIsTheSecretThatMustNotLeak0123456789";
const RepoId k_repo{"org/name"};

std::vector<std::pair<std::string, std::string>> content() {
  return {{"config.json", "{}"}, {"model.bin", random_bytes(1 << 20)}, {"b.txt", "b"}};
}

bool has_secret(std::string_view text) {
  return text.find(k_secret) != std::string_view::npos;
}

/// Where the secret is in the bytes that a Hub received: on its site, on its storage.
struct Reached {
  bool site = false;
  bool storage = false;
};

Reached reached(const TestHub& hub) {
  Reached where;
  for (const SeenRequest& seen : hub.requests()) {
    (seen.request.origin == Origin::hub ? where.site : where.storage) |= has_secret(seen.raw);
  }
  return where;
}

/// Resolve, list and download with the token; every message that came out on the way.
std::vector<std::string> use(const HubOptions& options) {
  std::vector<std::string> words;
  TestHost host;
  HubClient client = HubClient::create(options).value();
  const Token with = token(k_secret);
  const auto note = [&](const Error& error) {
    words.push_back(error.message);
    words.push_back(error.hint);
    for (const auto& [name, value] : error.details)
      words.push_back(name + value);
  };
  const auto resolved = client.resolve(k_repo, "main", with, host);
  if (!resolved) note(resolved.error());
  const GitOid commit = resolved ? resolved->commit : GitOid{};
  const auto files = client.list(k_repo, commit, with, host);
  if (!files) note(files.error());
  std::vector<ListedFile> wanted =
      files ? *files : std::vector<ListedFile>{{"model.bin", 1 << 20, {}, {}}};
  MemoryDownload download(wanted);
  const auto done = client.download(k_repo, commit, download.downloads, with, download);
  if (!done) note(done.error());
  for (const auto& notice : host.notices)
    words.push_back(notice.what);
  for (const auto& notice : download.notices)
    words.push_back(notice.what);
  return words;
}

FaultRule rule(std::string fault, std::string path, std::string value = "") {
  FaultRule made;
  made.fault = std::move(fault);
  made.match.path = std::move(path);
  made.match.times = 0;
  made.value = std::move(value);
  return made;
}

void make_private(TestHub& hub) {
  hub.add_repo("org/name", content());
  hub.change([](Repositories& all) {
    all.find("org/name")->is_private = true;
    all.add_token(std::string(k_secret), {"org/name"});
  });
}

} // namespace

TEST_CASE("Courier keeps the token from every other origin, whatever the Hub answers",
          "[fetch][token][C04]") {
  TestHub other;
  other.add_repo("org/name", content());
  const std::string site = other.endpoint();
  FaultRule link = rule("set_header", "/tree/");
  link.name = "Link";
  link.value = "<" + site + "/api/models/org/name/tree/main?cursor=1>; rel=\"next\"";
  FaultRule ranged = rule("redirect", "/resolve/", site + "/org/name/resolve/main/model.bin");
  ranged.match.ranged = true;
  std::vector<FaultRule> tricks{
      rule("redirect", "/revision/", site + "/api/models/org/name/revision/main"),
      rule("redirect", "/tree/", site + "/api/models/org/name/tree/main?recursive=true"),
      rule("redirect", "/resolve/", site + "/org/name/resolve/main/model.bin"),
      rule("redirect", "/resolve/",
           "//" + site.substr(site.find("127")) + "/org/name/resolve/main/b.txt"),
      rule("redirect", "/resolve/", "http://user:pass@" + site.substr(site.find("127")) + "/x"),
      rule("redirect", "/resolve/", "http://localhost" + site.substr(site.rfind(':')) + "/x"),
      rule("redirect", "/lfs/", site + "/org/name/resolve/main/model.bin"),
      rule("hang_up", "/lfs/"),
      rule("cut", "/lfs/"),
      link,
      ranged,
  };
  for (const FaultRule& trick : tricks) {
    INFO(trick.fault << " " << trick.match.path << " " << trick.value);
    TestHub hub;
    make_private(hub);
    hub.misbehave(trick);
    HubOptions options;
    options.endpoint = hub.endpoint();
    options.max_attempts = 3;
    for (const std::string& text : use(options))
      CHECK_FALSE(has_secret(text));
    CHECK(reached(hub).site);
    CHECK_FALSE(reached(hub).storage);
    CHECK_FALSE(reached(other).site);
    CHECK_FALSE(reached(other).storage);
  }
}

TEST_CASE("Courier keeps the token from mirrors", "[fetch][token][C04][mirror]") {
  TestHub hub;
  make_private(hub);
  TestHub mirror;
  mirror.add_repo("org/name", content());
  HubOptions options;
  options.endpoint = hub.endpoint();
  options.api_mirrors = options.data_mirrors = {mirror.endpoint()};
  use(options);
  CHECK_FALSE(mirror.requests().empty());
  CHECK_FALSE(reached(mirror).site);
  CHECK_FALSE(reached(mirror).storage);
}

TEST_CASE("Courier compares the port and the scheme too", "[fetch][token][C04][pitfall-29]") {
  const TempDir folder;
  HubConfig config;
  config.tls = true;
  TestHub hub(config);
  make_private(hub);
  const std::string ca = (folder / "ca.pem").string();
  std::ofstream(ca) << hub.ca_pem();
  HubOptions options;
  options.endpoint = hub.endpoint();
  options.ca_bundle = ca;
  use(options);
  CHECK(reached(hub).site); // over TLS all is well
  CHECK_FALSE(reached(hub).storage);
  TestHub plain;
  plain.add_repo("org/name", content());
  for (const char* path : {"/revision/", "/resolve/", "/lfs/"}) {
    hub.script().clear();
    hub.misbehave(rule("redirect", path, plain.endpoint() + "/org/name/resolve/main/model.bin"));
    for (const std::string& text : use(options))
      CHECK_FALSE(has_secret(text));
    CHECK(plain.requests().empty()); // a step down to http is not taken at all
  }
}

TEST_CASE("Url in messages holds no signature", "[fetch][token]") {
  TestHub hub;
  make_private(hub);
  hub.misbehave(rule("hang_up", "/lfs/"));
  HubOptions options;
  options.endpoint = hub.endpoint();
  for (const std::string& text : use(options))
    CHECK(text.find("Signature") == std::string::npos);
}

TEST_CASE("HubClient talks TLS only to a certificate that it trusts", "[fetch][tls]") {
  HubConfig config;
  config.tls = true;
  TestHub hub(config);
  hub.add_repo("org/name", content());
  HubOptions options;
  options.endpoint = hub.endpoint();
  TestHost host;
  const auto refused = HubClient::create(options).value().resolve(k_repo, "main", {}, host);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::net_permanent);
  CHECK(refused.error().hint.find("ca_bundle") != std::string::npos);
  CHECK(host.notices.empty()); // no retry makes a certificate right
}
