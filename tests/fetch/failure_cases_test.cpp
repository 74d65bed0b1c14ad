// SPDX-License-Identifier: Apache-2.0
// The failure cases C01 to C22 and the pitfalls of the Hub protocol that concern one download, each
// by name, where no other test has it.
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
using Files = std::vector<std::pair<std::string, std::string>>;

/// A Hub with one repository, its listing, and what a download of it came to.
struct Fixture {
  explicit Fixture(Files files_there, HubConfig config = {})
      : hub(std::move(config)), content(std::move(files_there)) {
    commit = GitOid::parse(hub.add_repo("org/name", content)).value();
    options.endpoint = hub.endpoint();
    TestHost host;
    files = HubClient::create(options).value().list(k_repo, commit, {}, host).value();
    hub.forget_requests();
    download = std::make_unique<MemoryDownload>(files);
    download->stalled = [this] { return hub.silent(); };
  }

  Result<void> run() {
    return HubClient::create(options).value().download(k_repo, commit, download->downloads, with,
                                                       *download);
  }
  /// Nothing but the right bytes will do.
  void require_right() {
    const auto done = run();
    if (!done) FAIL(done.error().message);
    for (const auto& [path, bytes] : content)
      CHECK(download->bytes(path) == bytes);
    CHECK(download->published.size() == content.size());
  }
  /// Nothing but this error will do.
  Error require_error(Errc code) {
    const auto done = run();
    REQUIRE_FALSE(done);
    CHECK(done.error().code == code);
    CHECK(download->published.empty());
    return done.error();
  }

  TestHub hub;
  Files content;
  GitOid commit;
  HubOptions options;
  Token with;
  std::vector<ListedFile> files;
  std::unique_ptr<MemoryDownload> download;
};

FaultRule rule(std::string fault, Origin origin, unsigned times = 1) {
  FaultRule made;
  made.fault = std::move(fault);
  made.match.origin = origin;
  made.match.times = times;
  return made;
}

FaultRule header_rule(std::string fault, Origin origin, std::string name, std::string value = "") {
  FaultRule made = rule(std::move(fault), origin, 0);
  made.name = std::move(name);
  made.value = std::move(value);
  return made;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("C02: a partial file and a server that sends everything give one right file",
          "[fetch][C02][pitfall-7][pitfall-30]") {
  Fixture at(Files{{"model.bin", random_bytes(10'000)}});
  at.download->keep(0, at.content[0].second.substr(0, 29));
  at.hub.misbehave(rule("whole_file", Origin::data, 0));
  at.require_right();
  CHECK(at.download->restarts == 1);
}

TEST_CASE("C03: an address that expires three times in one file costs no attempt", "[fetch][C03]") {
  Fixture at(Files{{"model.bin", random_bytes(4 << 20)}});
  FaultRule expiring = rule("expire_after", Origin::data, 0);
  expiring.at = 1 << 20;
  at.hub.misbehave(expiring);
  std::int64_t second = 1'000'000;
  at.hub.set_clock([&second] { return ++second; });
  at.options.max_attempts = 2; // a counted renewal would be the last
  at.options.max_ranges = 1;
  at.require_right();
}

TEST_CASE("C07: a redirect's own length is not the file's", "[fetch][C07][pitfall-1][pitfall-4]") {
  Fixture at(Files{{"model.bin", random_bytes(10'000)}});
  at.hub.misbehave(header_rule("drop_header", Origin::hub, "X-Linked-Size"));
  at.require_right(); // the 302 itself announces 33 bytes
}

TEST_CASE("C07: a compressed config.json is unpacked and proved", "[fetch][C07][pitfall-6]") {
  Fixture at(Files{{"config.json", std::string(5000, '{')}});
  at.hub.misbehave(rule("gzip", Origin::hub, 0));
  at.require_right();
  for (const auto& seen : at.hub.requests()) {
    CHECK(seen.request.header("Accept-Encoding") == "identity");
  }
}

TEST_CASE("C09: a pointer in place of the model is named as one", "[fetch][C09]") {
  for (const char* name : {"model.safetensors", "tokenizer.model"}) {
    Fixture at(Files{{name, random_bytes(10'000)}});
    at.hub.misbehave(rule("pointer", Origin::data, 0));
    const Error error = at.require_error(Errc::net_permanent);
    CHECK(contains(error.message, "LFS pointer"));
    CHECK(contains(error.message, at.files[0].sha256->hex()));
    CHECK(contains(error.message, "10000 bytes"));
  }
}

TEST_CASE("C09: a pointer as long as the file is caught too", "[fetch][C09]") {
  // The listing says 127 bytes, and 127 bytes come: only the first line tells.
  Fixture at(Files{{"model.safetensors", std::string(127, 'x')}});
  at.hub.misbehave(rule("pointer", Origin::data, 0));
  CHECK(contains(at.require_error(Errc::net_permanent).message, "LFS pointer"));
}

TEST_CASE("C10: a web page in place of the model is named as one", "[fetch][C10][pitfall-5]") {
  for (const char* fault : {"page", "disguised_page"}) {
    for (const Origin origin : {Origin::hub, Origin::data}) {
      Fixture at(Files{{"x.gguf", random_bytes(10'000)}});
      at.hub.misbehave(rule(fault, origin, 0));
      CHECK(contains(at.require_error(Errc::net_permanent).message, "web page"));
      CHECK(at.download->bytes("x.gguf").empty());
    }
  }
}

TEST_CASE("C11: all transfers wait together when the Hub limits requests", "[fetch][C11]") {
  Files many;
  for (int i = 0; i < 200; ++i)
    many.emplace_back(fmt::format("f{:03}.json", i), std::to_string(i));
  Fixture at(many);
  FaultRule limit = rule("status", Origin::hub, 8);
  limit.status = 429;
  limit.seconds = 40;
  limit.match.from = 51;
  at.hub.misbehave(limit);
  const auto before = at.download->time.now();
  at.require_right();
  CHECK(at.download->time.now() - before >= std::chrono::seconds(40));
  CHECK(at.download->told(Notice::Kind::rate_limited));
  // Two for each file, and the eight refused; where the second of a file is refused, its first is
  // made again.
  CHECK(at.hub.requests().size() >= 408);
  CHECK(at.hub.requests().size() <= 416);
}

TEST_CASE("C15: one wrong byte is found, and the second copy is proved again",
          "[fetch][C15][pitfall-8]") {
  Fixture at(Files{{"model.bin", random_bytes(1 << 20)}});
  FaultRule flip = rule("flip", Origin::data);
  flip.at = 500'000;
  at.hub.misbehave(flip);
  at.require_right();
  CHECK(at.download->restarts == 1);
  flip.match.times = 0;
  at.hub.script().clear();
  at.hub.misbehave(flip);
  at.download = std::make_unique<MemoryDownload>(at.files);
  at.require_error(Errc::digest_mismatch);
}

TEST_CASE("C16: decorated and foreign tags are no mismatch", "[fetch][C16][pitfall-34]") {
  Fixture at(Files{{"config.json", "{}\n"}, {"model.bin", random_bytes(10'000)}});
  for (const char* tag :
       {"W/\"0967ef424bce6791893e9a57bb952f80fd536e93-gzip\"", "\"1234-5678\"", "", "*"}) {
    INFO(tag);
    at.hub.script().clear();
    FaultRule decorated = header_rule("set_header", Origin::hub, "X-Linked-ETag", tag);
    decorated.match.path = "config.json";
    at.hub.misbehave(decorated);
    at.download = std::make_unique<MemoryDownload>(at.files);
    at.require_right(); // the storage's tag has 64 digits and is no SHA-256 of anything, either
  }
}

TEST_CASE("C16: a linked tag that names other content ends the download", "[fetch][C16]") {
  Fixture at(Files{{"model.bin", random_bytes(10'000)}});
  at.hub.misbehave(
      header_rule("set_header", Origin::hub, "X-Linked-ETag", '"' + std::string(64, 'a') + '"'));
  CHECK(contains(at.require_error(Errc::net_permanent).message, "digest"));
}

TEST_CASE("C17: a silent connection is replaced, and cancelling works meanwhile",
          "[fetch][C17][pitfall-27]") {
  Fixture at(Files{{"model.bin", random_bytes(2 << 20)}});
  FaultRule silent = rule("stall", Origin::data);
  silent.at = 1 << 20;
  at.hub.misbehave(silent);
  at.require_right();
  CHECK(at.download->told(Notice::Kind::stalled));
  silent.match.times = 0;
  at.hub.script().clear();
  at.hub.misbehave(silent);
  at.download = std::make_unique<MemoryDownload>(at.files);
  at.download->cancel = [&] { return at.hub.silent(); };
  at.require_error(Errc::cancelled);
}

TEST_CASE("C20: odd names arrive whole", "[fetch][C20][pitfall-16]") {
  Files odd;
  for (const char* name :
       {"a b/C?.json", "x#1.gguf", "50%.gguf", "p+q.gguf", "e\xCC\x81.txt", "\xC3\xA9.txt",
        "it's \"quoted\" [1].txt", "a@b.json", "100%25.txt", "~tilde", "semi;colon,x=1&y"}) {
    odd.emplace_back(name, std::string("content of ") + name);
  }
  Fixture at(odd);
  at.require_right();
}

TEST_CASE("Pitfall 3: a proxy that drops X-Repo-Commit does no harm", "[fetch][pitfall-3]") {
  Fixture at(Files{{"config.json", "{}"}, {"model.bin", random_bytes(1000)}});
  at.hub.misbehave(header_rule("drop_header", Origin::hub, "X-Repo-Commit"));
  at.require_right();
}

TEST_CASE("Pitfall 5: a mirror that announces size 0 is contradicted by the listing",
          "[fetch][pitfall-5]") {
  Fixture at(Files{{"model.bin", random_bytes(1000)}});
  at.hub.misbehave(header_rule("set_header", Origin::hub, "X-Linked-Size", "0"));
  CHECK(contains(at.require_error(Errc::net_permanent).message,
                 "announces 0 bytes, its listing says 1000"));
}

TEST_CASE("Pitfall 21: a 416 in the middle is no end of file", "[fetch][pitfall-21]") {
  Fixture at(Files{{"model.bin", random_bytes(10'000)}});
  at.download->keep(0, at.content[0].second.substr(0, 5000));
  FaultRule spurious = rule("status", Origin::data);
  spurious.status = 416;
  spurious.name = "Content-Range";
  spurious.value = "bytes */5000";
  at.hub.misbehave(spurious);
  at.require_right();
}

TEST_CASE("Pitfall 24: the branch moves, the files stay those of the commit",
          "[fetch][pitfall-24]") {
  Fixture at(Files{{"config.json", "old"}, {"model.bin", random_bytes(1 << 20)}});
  bool moved = false;
  at.download->progress = [&](std::size_t, std::uint64_t) {
    if (!moved)
      at.hub.add_repo("org/name",
                      {{"config.json", "new"}, {"model.bin", random_bytes(1 << 20, 2)}});
    moved = true;
  };
  at.require_right();
  CHECK(moved);
}

TEST_CASE("Pitfall 24: an answer for another commit is refused", "[fetch][pitfall-24]") {
  Fixture at(Files{{"config.json", "{}"}});
  at.hub.misbehave(header_rule("set_header", Origin::hub, "X-Repo-Commit", std::string(40, 'b')));
  CHECK(contains(at.require_error(Errc::net_permanent).message, std::string(40, 'b')));
}

TEST_CASE("Pitfall 28: servers without tags and without Accept-Ranges are enough",
          "[fetch][pitfall-28]") {
  Fixture at(Files{{"model.bin", random_bytes(1 << 20)}});
  at.hub.misbehave(header_rule("drop_header", Origin::data, "ETag"));
  at.download->keep(0, at.content[0].second.substr(0, 1000));
  at.require_right();
}

TEST_CASE("Pitfall 30: offline mode touches no network", "[fetch][pitfall-30][E13]") {
  Fixture at(Files{{"config.json", "{}"}});
  at.options.offline = true;
  const auto connections = at.hub.connections();
  CHECK(contains(at.require_error(Errc::net_permanent).message, "offline"));
  TestHost host;
  HubClient client = HubClient::create(at.options).value();
  CHECK_FALSE(client.resolve(k_repo, "main", {}, host));
  CHECK_FALSE(client.list(k_repo, at.commit, {}, host));
  CHECK(at.hub.connections() == connections);
}

TEST_CASE("Pitfall 20: a redacted Xet hash of a gated repository is no hash",
          "[fetch][pitfall-20]") {
  Fixture at(Files{{"model.bin", random_bytes(1000)}});
  at.hub.change([](Repositories& all) { all.find("org/name")->gated = "auto"; });
  TestHost host;
  const auto files = HubClient::create(at.options).value().list(k_repo, at.commit, {}, host);
  REQUIRE(files);
  CHECK(*files == at.files);
}

TEST_CASE("Mirrors are tried in order, and the Hub last", "[fetch][mirror][pitfall-19]") {
  Fixture at(Files{{"config.json", "{}"}, {"model.bin", random_bytes(1 << 20)}});
  TestHub empty; // knows nothing
  TestHub wrong; // has other bytes under the same names and commit: proved wrong
  TestHub good;
  good.add_repo("org/name", at.content);
  wrong.add_repo("org/name", at.content);
  FaultRule flip = rule("flip", Origin::data, 0);
  flip.at = 1000;
  wrong.misbehave(flip);
  at.options.data_mirrors = {empty.endpoint(), wrong.endpoint() + "/", good.endpoint()};
  at.require_right();
  CHECK_FALSE(good.requests().empty());
  CHECK(at.hub.requests().empty());
  good.stop();
  at.download = std::make_unique<MemoryDownload>(at.files);
  at.require_right(); // a dead mirror is passed over, the Hub itself answers
  CHECK_FALSE(at.hub.requests().empty());
}

TEST_CASE("Mirrors answer resolve and list where they can", "[fetch][mirror]") {
  Fixture at(Files{{"config.json", "{}"}});
  TestHub mirror;
  at.options.api_mirrors = {mirror.endpoint()};
  TestHost host;
  HubClient client = HubClient::create(at.options).value();
  CHECK(client.resolve(k_repo, "main", {}, host)->commit ==
        at.commit); // the mirror does not know it
  CHECK(host.notices.size() == 1);
  mirror.add_repo("org/name", at.content);
  at.hub.forget_requests();
  CHECK(client.resolve(k_repo, "main", {}, host)->commit == at.commit);
  CHECK(client.list(k_repo, at.commit, {}, host) == at.files);
  CHECK(at.hub.requests().empty());
}
