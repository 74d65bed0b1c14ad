// SPDX-License-Identifier: Apache-2.0
// Parts of files into memory: what looks at a model before it is pulled.
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
constexpr std::size_t k_size = 300'000;

struct Fixture {
  Fixture() : large(random_bytes(k_size)) {
    commit = GitOid::parse(
                 hub.add_repo("org/name", {{"config.json", "{}\n"}, {"model.safetensors", large}}))
                 .value();
    options.endpoint = hub.endpoint();
    options.max_attempts = 3;
    files = HubClient::create(options).value().list(k_repo, commit, {}, host).value();
    hub.forget_requests();
  }
  FilePiece piece(std::string_view path, std::uint64_t offset, std::uint64_t length) const {
    const auto at = std::find_if(files.begin(), files.end(),
                                 [path](const ListedFile& file) { return file.path == path; });
    return {*at, offset, length, {}};
  }
  Result<void> read(std::vector<FilePiece>& pieces) {
    host.stalled = [this] { return hub.silent(); };
    return HubClient::create(options).value().read(k_repo, commit, pieces, {}, host);
  }
  void misbehave(std::string name, std::uint64_t at, unsigned times) {
    FaultRule rule;
    rule.fault = std::move(name);
    rule.at = at;
    rule.match.origin = Origin::data;
    rule.match.times = times;
    hub.misbehave(rule);
  }

  std::string large;
  TestHub hub;
  TestHost host;
  GitOid commit;
  HubOptions options;
  std::vector<ListedFile> files;
};

std::string text(const FilePiece& piece) {
  return {reinterpret_cast<const char*>(piece.bytes.data()), piece.bytes.size()};
}

} // namespace

TEST_CASE("HubClient::read brings exactly the bytes that were asked for", "[fetch][read]") {
  Fixture at;
  std::vector<FilePiece> pieces{
      at.piece("model.safetensors", 0, 8), at.piece("model.safetensors", 1000, 5000),
      at.piece("model.safetensors", k_size - 1, 1), at.piece("config.json", 0, 3)};
  REQUIRE(at.read(pieces));
  CHECK(text(pieces[0]) == at.large.substr(0, 8));
  CHECK(text(pieces[1]) == at.large.substr(1000, 5000));
  CHECK(text(pieces[2]) == at.large.substr(k_size - 1));
  CHECK(text(pieces[3]) == "{}\n");
  for (const auto& seen : at.hub.requests()) {
    if (seen.request.target.find("safetensors") == std::string::npos) continue;
    CHECK(seen.raw.find("Range: bytes=") != std::string::npos);
  }
}

TEST_CASE("HubClient::read goes on after a cut, a reset and a silent server", "[fetch][read]") {
  const auto* const fault = GENERATE("cut", "reset", "stall");
  INFO(fault);
  Fixture at;
  at.misbehave(fault, 10, 1);
  std::vector<FilePiece> pieces{at.piece("model.safetensors", 500, 100'000)};
  REQUIRE(at.read(pieces));
  CHECK(text(pieces[0]) == at.large.substr(500, 100'000));
}

TEST_CASE("HubClient::read refuses a server that sends whole files for parts", "[fetch][read]") {
  Fixture at;
  at.misbehave("ignore_range", 0, 0);
  std::vector<FilePiece> pieces{at.piece("model.safetensors", 0, 8)};
  const auto read = at.read(pieces);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == Errc::net_permanent);
  CHECK(read.error().message.find("model.safetensors") != std::string::npos);
}

TEST_CASE("HubClient::read refuses a part that is not in the file", "[fetch][read]") {
  Fixture at;
  for (const auto& [offset, length] :
       {std::pair<std::uint64_t, std::uint64_t>{k_size, 1}, {0, k_size + 1}, {5, 0}}) {
    std::vector<FilePiece> pieces{at.piece("model.safetensors", offset, length)};
    const auto read = at.read(pieces);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == Errc::invalid_argument);
  }
  CHECK(at.hub.requests().empty());
}
