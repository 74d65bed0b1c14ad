// SPDX-License-Identifier: Apache-2.0
// Ways out: proxies, IPv6, certificates of one's own.
#include "fetch/hub_client.hpp"

#include "tests/fetch/fetch_hosts.hpp"
#include "tests/fetch/test_bytes.hpp"
#include "tests/hub/proxy.hpp"
#include "tests/hub/test_hub.hpp"
#include "tests/support/temp_dir.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>

using namespace modeld;
using namespace modeld::fetch;
using namespace modeld::test;

namespace {

constexpr std::string_view k_secret = "hf_ThisIsTheSecretThatMustNotLeak0123456789";
const RepoId k_repo{"org/name"};

/// The proxies and certificates of the environment, as they are for one test.
class ProxyVariables {
public:
  explicit ProxyVariables(std::vector<std::pair<std::string, std::string>> set) {
    clear();
    for (const auto& [name, value] : set) {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~ProxyVariables() { clear(); }
  ProxyVariables(const ProxyVariables&) = delete;
  ProxyVariables& operator=(const ProxyVariables&) = delete;

private:
  static void clear() {
    for (const char* name :
         {"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
          "no_proxy", "NO_PROXY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}) {
      ::unsetenv(name);
    }
  }
};

/// Resolve, list and download; fails the test where a byte is wrong.
void pull(const TestHub& hub, const std::string& bytes, HubOptions options, const Token& with) {
  options.endpoint = hub.endpoint();
  TestHost host;
  HubClient client = HubClient::create(options).value();
  const auto resolved = client.resolve(k_repo, "main", with, host);
  if (!resolved) FAIL(resolved.error().message);
  const auto files = client.list(k_repo, resolved->commit, with, host);
  if (!files) FAIL(files.error().message);
  MemoryDownload download(*files);
  const auto done = client.download(k_repo, resolved->commit, download.downloads, with, download);
  if (!done) FAIL(done.error().message);
  CHECK(download.bytes("model.bin") == bytes);
}

struct Fixture {
  explicit Fixture(bool tls, const std::string& address = "127.0.0.1")
      : bytes(random_bytes(200'000)), hub(config(tls, address)) {
    hub.add_repo("org/name", {{"config.json", "{}"}, {"model.bin", bytes}});
    hub.change([](Repositories& all) {
      all.find("org/name")->is_private = true;
      all.add_token(std::string(k_secret), {"org/name"});
    });
    if (!tls) return;
    options.ca_bundle = (folder / "ca.pem").string();
    std::ofstream(options.ca_bundle) << hub.ca_pem();
  }
  static HubConfig config(bool tls, const std::string& address) {
    HubConfig made;
    made.tls = tls;
    made.address = address;
    return made;
  }
  void pull() const { ::pull(hub, bytes, options, token(k_secret)); }

  TempDir folder;
  std::string bytes;
  TestHub hub;
  HubOptions options;
};

bool has_ipv6() {
  try {
    HubConfig config;
    config.address = "::1";
    const TestHub hub(config);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

} // namespace

TEST_CASE("HubClient goes through HTTP_PROXY, in either case", "[fetch][proxy]") {
  const Fixture at(false);
  for (const char* name : {"http_proxy", "HTTP_PROXY", "ALL_PROXY"}) {
    INFO(name);
    TestProxy proxy;
    const ProxyVariables set({{name, proxy.address()}});
    at.pull();
    const auto heads = proxy.heads();
    CHECK(heads.size() >= 4); // revision, tree, and two files at least
    CHECK(std::all_of(heads.begin(), heads.end(),
                      [](const std::string& head) { return head.starts_with("GET http://127."); }));
  }
}

TEST_CASE("HubClient tunnels through HTTPS_PROXY, which never sees the token",
          "[fetch][proxy][tls][C04]") {
  const Fixture at(true);
  TestProxy proxy;
  const ProxyVariables set({{"HTTPS_PROXY", proxy.address()}});
  at.pull();
  const auto heads = proxy.heads();
  REQUIRE_FALSE(heads.empty());
  for (const std::string& head : heads) {
    CHECK(head.starts_with("CONNECT 127.0.0.1:"));
    CHECK(head.find("hf_") == std::string::npos);
    CHECK(head.find("Authorization") == std::string::npos);
  }
}

TEST_CASE("HubClient goes around the proxy where NO_PROXY says so", "[fetch][proxy]") {
  const Fixture at(false);
  for (const char* name : {"no_proxy", "NO_PROXY"}) {
    const std::string with_port =
        at.hub.endpoint().substr(7) + ", " + at.hub.data_endpoint().substr(7);
    for (const std::string& value : {std::string("127.0.0.1"), std::string("localhost,127.0.0.1"),
                                     std::string("127.0.0.0/8"), std::string("*"), with_port}) {
      INFO(value);
      TestProxy proxy;
      const ProxyVariables set({{"HTTP_PROXY", proxy.address()}, {name, value}});
      at.pull();
      CHECK(proxy.heads().empty());
    }
  }
}

TEST_CASE("A proxy that is not there is a network error that names it", "[fetch][proxy]") {
  const Fixture at(true);
  std::string gone;
  { gone = TestProxy().address(); }
  const ProxyVariables set({{"HTTPS_PROXY", gone}});
  TestHost host;
  HubOptions options = at.options;
  options.endpoint = at.hub.endpoint();
  const auto answer = HubClient::create(options).value().resolve(k_repo, "main", {}, host);
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == Errc::net_transient);
  CHECK(answer.error().message.find(gone.substr(gone.rfind(':') + 1)) != std::string::npos);
}

TEST_CASE("HubClient trusts a certificate of one's own, for every range and redirect",
          "[fetch][tls]") {
  const ProxyVariables none({});
  Fixture at(true);
  at.options.part_bytes = 16 << 10;
  at.pull();
  for (const auto& seen : at.hub.requests()) {
    CHECK(seen.status < 400);
  }
}

TEST_CASE("HubClient trusts the certificates that the environment names, unless told others",
          "[fetch][tls]") {
  Fixture at(true);
  const std::string file = at.options.ca_bundle;
  at.options.ca_bundle.clear();
  for (const char* name : {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}) {
    INFO(name);
    const ProxyVariables set({{name, file}});
    at.pull();
  }
  at.options.ca_bundle = file;
  const ProxyVariables wrong({{"SSL_CERT_FILE", std::string("/dev/null")}});
  at.pull();
}

TEST_CASE("HubClient talks IPv6", "[fetch][ipv6]") {
  if (!has_ipv6()) {
    WARN("no IPv6 on this machine");
    return;
  }
  const ProxyVariables none({});
  for (const bool tls : {false, true}) {
    const Fixture at(tls, "::1");
    CHECK(at.hub.endpoint().find("://[::1]:") != std::string::npos);
    at.pull();
  }
}

TEST_CASE("HubClient::whoami tells the user of a token, or that it is not taken",
          "[fetch][token][C18]") {
  const ProxyVariables none({});
  const Fixture at(false);
  HubOptions options;
  options.endpoint = at.hub.endpoint();
  TestHost host;
  HubClient client = HubClient::create(options).value();
  CHECK(client.whoami(token(k_secret), host).value() == "tester");
  const auto refused = client.whoami(token("hf_wrong"), host);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::denied);
  CHECK(refused.error().message.find("hf_wrong") == std::string::npos);
  CHECK(host.notices.empty());
}
