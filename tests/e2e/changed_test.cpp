// SPDX-License-Identifier: Apache-2.0
// A file that changes at the server while the daemon is down.
#include "tests/e2e/private_daemon.hpp"
#include "tests/hub/test_hub.hpp"
#include "validate/sha256.hpp"

#include <catch2/catch.hpp>

#include <random>
#include <span>

using namespace modeld::test;
using Catch::Contains;

namespace {

std::string random_bytes(std::size_t size) {
  std::mt19937 random(7);
  std::string text(size, '\0');
  for (char& c : text) {
    c = static_cast<char>(random());
  }
  return text;
}

std::uintmax_t partial_size(const PrivateDaemon& daemon) {
  std::uintmax_t most = 0;
  for (const auto& entry : std::filesystem::directory_iterator(daemon.root() / "tmp")) {
    if (entry.path().extension() == ".part") most = std::max(most, entry.file_size());
  }
  return most;
}

std::string sha256_of(const std::string& text) {
  return modeld::validate::sha256_of(std::as_bytes(std::span(text))).hex();
}

std::size_t left_overs(const PrivateDaemon& daemon) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(daemon.root() / "tmp")) {
    if (entry.is_regular_file()) ++count;
  }
  return count;
}

} // namespace

TEST_CASE("a file that changed while the daemon was down is never glued together",
          "[e2e][restart][validator]") {
  const std::string fault = GENERATE("replaced", "replaced_blindly", "replaced_silently");
  const bool for_good = GENERATE(false, true);
  INFO(fault << (for_good ? ", for good" : ", for one answer"));
  TestHub hub;
  const std::string big = random_bytes(32U << 20);
  hub.add_repo("org/big", {{"big.bin", big}});
  PrivateDaemon daemon(hub.endpoint());
  REQUIRE(daemon.ctl({"pull", "--detach", "--limit-rate", "8MiB", "org/big"}).status == 0);
  REQUIRE(wait_until([&] { return partial_size(daemon) > (4U << 20); }));
  daemon.kill();
  hub.forget_requests();
  FaultRule rule;
  rule.fault = fault;
  rule.match.origin = Origin::data;
  rule.match.times = for_good ? 0 : 1;
  hub.misbehave(rule);
  daemon.start();

  const Finished pulled = daemon.ctl({"pull", "--limit-rate", "none", "org/big"});
  INFO(pulled.err);
  bool conditional = false;
  for (const SeenRequest& seen : hub.requests()) {
    conditional = conditional || !seen.request.header("If-Range").empty();
  }
  CHECK(conditional); // the first life's tag went along
  if (for_good) {
    CHECK(pulled.status == 4);
    CHECK_THAT(last_line(pulled.err), Contains("SHA-256") && Contains("[digest_mismatch]"));
    CHECK(daemon.ctl_json({"ls"}).at("snapshots").as_array().empty());
    CHECK(std::filesystem::exists(daemon.root() / "quarantine" / (sha256_of(big) + ".wrong")));
  } else {
    REQUIRE(pulled.status == 0);
    const std::filesystem::path folder = pulled.out.substr(0, pulled.out.size() - 1);
    CHECK(read_file(folder / "big.bin") == big);
  }
  CHECK(left_overs(daemon) == 0);
}
