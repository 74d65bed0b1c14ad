// SPDX-License-Identifier: Apache-2.0
// The client against the local Hub, on a good day and where the Hub says no.
#include "fetch/hub_client.hpp"

#include "tests/fetch/fetch_hosts.hpp"
#include "tests/fetch/test_bytes.hpp"
#include "tests/hub/test_hub.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace modeld;
using namespace modeld::fetch;
using namespace modeld::test;

namespace {

const RepoId k_repo{"org/name"};

HubClient client_of(const TestHub& hub) {
  HubOptions options;
  options.endpoint = hub.endpoint();
  return HubClient::create(options).value();
}

std::vector<std::pair<std::string, std::string>> small_repo() {
  return {{"config.json", "{}\n"},
          {"empty.txt", ""},
          {"sub/dir/a b#?%+.json", "odd"},
          {"model.safetensors", random_bytes(3 << 20)}};
}

std::string detail(const Error& error, std::string_view name) {
  for (const auto& [key, value] : error.details) {
    if (key == name) return value;
  }
  return {};
}

} // namespace

TEST_CASE("HubClient::resolve finds branches, tags, pull requests and commits",
          "[fetch][resolve]") {
  TestHub hub;
  const std::string old = hub.add_repo("org/name", {{"a", "1"}});
  const std::string now = hub.add_repo("org/name", {{"a", "2"}});
  const std::string pull = hub.add_repo("org/name", {{"a", "3"}}, "refs/pr/1");
  const std::string other = hub.add_repo("org/name", {{"a", "4"}}, "feature/x");
  hub.change([&](Repositories& all) { all.find("org/name")->tags["v1"] = old; });
  HubClient client = client_of(hub);
  TestHost host;
  const std::pair<std::string, std::string> cases[] = {
      {"", now},  {"main", now},          {"v1", old}, {"refs/pr/1", pull}, {"feature/x", other},
      {old, old}, {old.substr(0, 8), old}};
  for (const auto& [revision, commit] : cases) {
    INFO(revision);
    const auto resolved = client.resolve(k_repo, revision, {}, host);
    REQUIRE(resolved);
    CHECK(resolved->commit.hex() == commit);
    CHECK(resolved->repo == k_repo);
  }
}

TEST_CASE("HubClient::resolve takes one-part names", "[fetch][resolve][pitfall-31]") {
  TestHub hub;
  hub.add_repo("gpt2", {{"a", "1"}});
  TestHost host;
  CHECK(client_of(hub).resolve(RepoId{"gpt2"}, "main", {}, host));
}

TEST_CASE("HubClient::create keeps the endpoint's path and drops its last slash",
          "[fetch][resolve][pitfall-18]") {
  HubConfig config;
  config.prefix = "/hf/deep";
  TestHub hub(config);
  hub.add_repo("org/name", small_repo());
  HubOptions options;
  options.endpoint = hub.endpoint() + "/";
  HubClient client = HubClient::create(options).value();
  TestHost host;
  const Resolved resolved = client.resolve(k_repo, "main", {}, host).value();
  MemoryDownload download(client.list(k_repo, resolved.commit, {}, host).value());
  REQUIRE(client.download(k_repo, resolved.commit, download.downloads, {}, download));
  CHECK(download.bytes("config.json") == "{}\n");
  for (const auto& seen : hub.requests())
    CHECK(seen.request.target.find("//") == std::string::npos);
}

TEST_CASE("HubClient::create refuses what is no endpoint", "[fetch]") {
  for (const char* bad : {"", "huggingface.co", "ftp://h", "https://user:pw@h", "https://h/?x=1"}) {
    HubOptions options;
    options.endpoint = bad;
    CHECK_FALSE(HubClient::create(options));
  }
}

TEST_CASE("HubClient tells missing, private, gated and refused apart",
          "[fetch][resolve][C18][pitfall-25]") {
  TestHub hub;
  hub.add_repo("org/private", {{"a", "1"}});
  hub.add_repo("org/gated", {{"a", "1"}});
  hub.add_repo("org/disabled", {{"a", "1"}});
  hub.change([](Repositories& all) {
    all.find("org/private")->is_private = true;
    all.find("org/gated")->gated = "manual";
    all.find("org/disabled")->disabled = true;
    all.add_token("hf_owner", {"org/private", "org/gated"});
    all.add_token("hf_other", {});
  });
  HubClient client = client_of(hub);
  TestHost host;
  const auto error = [&](const char* repo, const char* with) {
    const auto resolved = client.resolve(RepoId{repo}, "main", token(with), host);
    if (!resolved) return resolved.error();
    MemoryDownload download(client.list(RepoId{repo}, resolved->commit, token(with), host).value());
    auto done =
        client.download(RepoId{repo}, resolved->commit, download.downloads, token(with), download);
    return done ? Error{Errc::internal, "worked", "", {}, 0} : done.error();
  };
  for (const char* with : {"", "hf_other"}) {
    for (const char* repo : {"org/none", "org/private"}) {
      const Error missing = error(repo, with);
      CHECK(missing.code == Errc::not_found);
      CHECK(detail(missing, "missing") == "repository");
      CHECK(missing.hint.find("private") != std::string::npos);
    }
    const Error gated = error("org/gated", with);
    CHECK(gated.code == Errc::denied);
    CHECK(detail(gated, "reason") == "gated");
    CHECK(detail(gated, "page") == hub.endpoint() + "/org/gated");
  }
  const Error bad_token = error("org/private", "hf_wrong");
  CHECK(bad_token.code == Errc::denied);
  CHECK(detail(bad_token, "reason") == "token");
  CHECK(detail(error("org/disabled", ""), "reason") == "disabled");
  CHECK(error("org/private", "hf_owner").message == "worked");
  CHECK(error("org/gated", "hf_owner").message == "worked");
  CHECK(host.notices.empty()); // none of these is tried again
}

TEST_CASE("HubClient names a missing revision and a missing file", "[fetch][resolve][C18]") {
  TestHub hub;
  const std::string commit = hub.add_repo("org/name", {{"a", "1"}});
  HubClient client = client_of(hub);
  TestHost host;
  const auto revision = client.resolve(k_repo, "v9", {}, host);
  REQUIRE_FALSE(revision);
  CHECK(revision.error().code == Errc::not_found);
  CHECK(detail(revision.error(), "missing") == "revision");
  CHECK(revision.error().message == "finding 'org/name': there is no revision 'v9'");
  ListedFile ghost{"ghost.bin", 3, {}, {}};
  MemoryDownload download({ghost});
  const auto done =
      client.download(k_repo, GitOid::parse(commit).value(), download.downloads, {}, download);
  REQUIRE_FALSE(done);
  CHECK(detail(done.error(), "missing") == "file");
}

TEST_CASE("HubClient follows a renamed repository with query and token", "[fetch][resolve][C05]") {
  TestHub hub;
  const std::string commit = hub.add_repo("org/new", small_repo());
  hub.change([](Repositories& all) {
    all.find("org/new")->is_private = true;
    all.add_token("hf_owner", {"org/new"});
    all.rename("org/old", "org/new");
  });
  HubClient client = client_of(hub);
  TestHost host;
  const auto resolved = client.resolve(RepoId{"org/old"}, "main", token("hf_owner"), host);
  REQUIRE(resolved);
  CHECK(resolved->repo.text == "org/new");
  CHECK(resolved->commit.hex() == commit);
  CHECK(host.notices.size() == 1);
  // By the old name throughout, as a client that pinned it does.
  const auto files = client.list(RepoId{"org/old"}, resolved->commit, token("hf_owner"), host);
  REQUIRE(files);
  MemoryDownload download(*files);
  REQUIRE(client.download(RepoId{"org/old"}, resolved->commit, download.downloads,
                          token("hf_owner"), download));
  CHECK(download.published.size() == 4);
}

TEST_CASE("HubClient::list reads every page", "[fetch][list][C12][pitfall-17]") {
  HubConfig config;
  config.page_size = 50;
  TestHub hub(config);
  std::vector<std::pair<std::string, std::string>> files;
  for (int i = 0; i < 120; ++i)
    files.emplace_back(fmt::format("dir{}/file{:03}.txt", i % 7, i), "x");
  const auto commit = GitOid::parse(hub.add_repo("org/name", files)).value();
  TestHost host;
  const auto listed = client_of(hub).list(k_repo, commit, {}, host);
  REQUIRE(listed);
  CHECK(listed->size() == 120);
  CHECK(std::is_sorted(listed->begin(), listed->end(),
                       [](const auto& a, const auto& b) { return a.path < b.path; }));
}

TEST_CASE("HubClient::list refuses a hostile listing whole", "[fetch][list][C13][pitfall-15]") {
  TestHub hub;
  TestHost host;
  for (const char* name : {"../../x", "/x", "a/..\\..\\x", "a//b", "bell\x07"}) {
    const auto commit =
        GitOid::parse(hub.add_repo("org/name", {{"good", "1"}, {name, "2"}})).value();
    const auto listed = client_of(hub).list(k_repo, commit, {}, host);
    REQUIRE_FALSE(listed);
    CHECK(listed.error().code == Errc::malformed);
  }
}

TEST_CASE("HubClient::download brings every byte of every file", "[fetch][download]") {
  TestHub hub;
  const auto files = small_repo();
  const auto commit = GitOid::parse(hub.add_repo("org/name", files)).value();
  HubClient client = client_of(hub);
  TestHost host;
  MemoryDownload download(client.list(k_repo, commit, {}, host).value());
  REQUIRE(client.download(k_repo, commit, download.downloads, {}, download));
  for (const auto& [path, bytes] : files)
    CHECK(download.bytes(path) == bytes);
  CHECK(download.published.size() == files.size());
}

TEST_CASE("HubClient::download needs no request for a file that is complete or empty",
          "[fetch][download][C01][pitfall-29]") {
  TestHub hub;
  const std::string bytes = random_bytes(1000);
  const auto commit =
      GitOid::parse(hub.add_repo("org/name", {{"a.bin", bytes}, {"empty", ""}})).value();
  HubClient client = client_of(hub);
  TestHost host;
  MemoryDownload download(client.list(k_repo, commit, {}, host).value());
  download.keep(0, bytes);
  hub.forget_requests();
  REQUIRE(client.download(k_repo, commit, download.downloads, {}, download));
  CHECK(hub.requests().empty());
  CHECK(download.published.size() == 2);
}

TEST_CASE("HubClient::download continues from what is there", "[fetch][download][resume]") {
  TestHub hub;
  const std::string big = random_bytes(1 << 20);
  const std::string small = random_bytes(5000);
  const auto commit =
      GitOid::parse(hub.add_repo("org/name", {{"big.bin", big}, {"small.json", small}})).value();
  HubClient client = client_of(hub);
  TestHost host;
  for (const std::size_t offset : {std::size_t{1}, std::size_t{29}, std::size_t{4999}}) {
    MemoryDownload download(client.list(k_repo, commit, {}, host).value());
    download.keep(0, std::string_view(big).substr(0, offset));
    download.keep(1, std::string_view(small).substr(0, offset));
    REQUIRE(client.download(k_repo, commit, download.downloads, {}, download));
    CHECK(download.bytes("big.bin") == big);
    CHECK(download.bytes("small.json") == small);
    CHECK(download.restarts == 0);
  }
}

TEST_CASE("HubClient::download fetches a file with a wrong beginning once more, then fails",
          "[fetch][download][C15]") {
  TestHub hub;
  const std::string big = random_bytes(100'000);
  const auto commit = GitOid::parse(hub.add_repo("org/name", {{"big.bin", big}})).value();
  HubClient client = client_of(hub);
  TestHost host;
  const auto listed = client.list(k_repo, commit, {}, host).value();
  MemoryDownload mended(listed);
  mended.keep(0, std::string(1000, 'x'));
  REQUIRE(client.download(k_repo, commit, mended.downloads, {}, mended));
  CHECK(mended.bytes("big.bin") == big);
  CHECK(mended.restarts == 1);
  auto wrong = listed;
  wrong[0].sha256->bytes[0] ^= std::byte{1}; // as if the Hub's listing and content disagreed
  MemoryDownload hopeless(wrong);
  const auto done = client.download(k_repo, commit, hopeless.downloads, {}, hopeless);
  REQUIRE_FALSE(done);
  CHECK(hopeless.published.empty());
}

TEST_CASE("HubClient::download refuses more bytes than the file has", "[fetch][download][C01]") {
  TestHub hub;
  const auto commit = GitOid::parse(hub.add_repo("org/name", {{"a.bin", "abc"}})).value();
  HubClient client = client_of(hub);
  TestHost host;
  MemoryDownload download(client.list(k_repo, commit, {}, host).value());
  download.keep(0, "abcd");
  const auto done = client.download(k_repo, commit, download.downloads, {}, download);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::invalid_argument);
}

TEST_CASE("HubClient::download passes on a full disk and keeps what is there",
          "[fetch][download][C14]") {
  TestHub hub;
  const auto commit =
      GitOid::parse(hub.add_repo("org/name", {{"a.bin", random_bytes(1 << 20)}})).value();
  HubClient client = client_of(hub);
  TestHost host;
  MemoryDownload download(client.list(k_repo, commit, {}, host).value());
  download.sinks[0]->fail_at = 500'000;
  const auto done = client.download(k_repo, commit, download.downloads, {}, download);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::no_space);
  CHECK(download.restarts == 0);
}

TEST_CASE("HubClient::download stops when it is told to", "[fetch][download]") {
  TestHub hub;
  const auto commit =
      GitOid::parse(hub.add_repo("org/name", {{"a.bin", random_bytes(4 << 20)}})).value();
  HubClient client = client_of(hub);
  TestHost host;
  MemoryDownload download(client.list(k_repo, commit, {}, host).value());
  bool some = false;
  download.progress = [&](std::size_t, std::uint64_t bytes) { some = bytes > 0; };
  download.cancel = [&] { return some; };
  const auto done = client.download(k_repo, commit, download.downloads, {}, download);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::cancelled);
}

TEST_CASE("HubClient sends the token to the Hub's origin and nowhere else",
          "[fetch][download][C04]") {
  TestHub hub;
  const auto commit = GitOid::parse(hub.add_repo("org/name", small_repo())).value();
  hub.change([](Repositories& all) {
    all.find("org/name")->is_private = true;
    all.add_token("hf_secret", {"org/name"});
  });
  HubClient client = client_of(hub);
  TestHost host;
  MemoryDownload download(client.list(k_repo, commit, token("hf_secret"), host).value());
  REQUIRE(client.download(k_repo, commit, download.downloads, token("hf_secret"), download));
  bool storage = false;
  for (const auto& seen : hub.requests()) {
    const bool has = seen.raw.find("hf_secret") != std::string::npos;
    CHECK(has == (seen.request.origin == Origin::hub));
    storage = storage || seen.request.origin == Origin::data;
  }
  CHECK(storage);
}

TEST_CASE("HubClient::download makes two requests for a file and reuses connections",
          "[fetch][download][C11]") {
  TestHub hub;
  std::vector<std::pair<std::string, std::string>> files;
  for (int i = 0; i < 100; ++i)
    files.emplace_back(fmt::format("f{:03}.json", i), std::to_string(i));
  const auto commit = GitOid::parse(hub.add_repo("org/name", files)).value();
  HubClient client = client_of(hub);
  TestHost host;
  MemoryDownload download(client.list(k_repo, commit, {}, host).value());
  hub.forget_requests();
  REQUIRE(client.download(k_repo, commit, download.downloads, {}, download));
  CHECK(hub.requests().size() == 200);
  CHECK(hub.connections() <= 9);
}
