// SPDX-License-Identifier: Apache-2.0
// Every fault of the scripted Hub, against small and large files, at the first, a middle and the
// last byte, once and for ever, with and without a new start of the client in the middle. Each run
// ends in one of two ways: exactly the right bytes, or the named error with nothing published.
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
constexpr std::size_t k_large = (1 << 20) + 13;
constexpr std::size_t k_small = 5000;

/// Errc, or the right bytes.
using End = std::optional<Errc>;
constexpr End k_bytes = std::nullopt;

struct Row {
  FaultRule rule;
  End once;
  End always;
};

FaultRule fault(std::string name, std::uint64_t at = 0) {
  FaultRule rule;
  rule.fault = std::move(name);
  rule.at = at;
  return rule;
}

FaultRule ranged_fault(std::string name) {
  FaultRule rule = fault(std::move(name));
  rule.match.ranged = true;
  return rule;
}

FaultRule status_fault(unsigned status, std::int64_t seconds = -1) {
  FaultRule rule = fault("status");
  rule.status = status;
  rule.seconds = seconds;
  return rule;
}

FaultRule header_fault(std::string kind, std::string name, std::string value = "") {
  FaultRule rule = fault(std::move(kind));
  rule.name = std::move(name);
  rule.value = std::move(value);
  return rule;
}

FaultRule redirect_fault(std::string to) {
  FaultRule rule = fault("redirect");
  rule.value = std::move(to);
  return rule;
}

FaultRule limit_fault(std::int64_t seconds) {
  FaultRule rule = fault("rate_limit");
  rule.seconds = seconds;
  return rule;
}

std::vector<Row> rows(std::size_t size) {
  const End transient = Errc::net_transient;
  const End permanent = Errc::net_permanent;
  std::vector<Row> all{
      {status_fault(500), k_bytes, transient},
      {status_fault(502), k_bytes, transient},
      {status_fault(503, 7), k_bytes, transient},
      {status_fault(408), k_bytes, transient},
      {status_fault(429, 120), k_bytes, transient},
      {status_fault(416), k_bytes, transient},
      {limit_fault(55), k_bytes, transient},
      {redirect_fault("self"), k_bytes, permanent},
      {redirect_fault(""), permanent, permanent},
      {redirect_fault("ftp://127.0.0.1/x"), permanent, permanent},
      {ranged_fault("ignore_range"), k_bytes, k_bytes},
      {ranged_fault("whole_file"), k_bytes, k_bytes},
      {ranged_fault("no_content_range"), k_bytes, k_bytes},
      {ranged_fault("wrong_content_range"), k_bytes, k_bytes},
      {ranged_fault("bare_206"), k_bytes, k_bytes},
      {ranged_fault("shifted"), k_bytes, k_bytes},
      {fault("gzip"), k_bytes, k_bytes},
      {fault("page"), permanent, permanent},
      {fault("disguised_page"), permanent, permanent},
      {fault("long_body"), k_bytes, transient},
      {fault("endless_body"), k_bytes, k_bytes},
      {fault("wrong_length"), k_bytes, transient},
      {fault("never_answer"), k_bytes, transient},
      {fault("hang_up"), k_bytes, transient},
      {fault("reset_at_once"), k_bytes, transient},
      {fault("huge_head"), permanent, permanent},
      {fault("other_etag"), k_bytes, k_bytes},
      {ranged_fault("wrong_unit"), k_bytes, k_bytes},
      {ranged_fault("wrong_total"), k_bytes, k_bytes},
      {ranged_fault("multipart"), k_bytes, k_bytes},
      {fault("less", 64 << 10), k_bytes, k_bytes},
      {fault("less", 1000), k_bytes, k_bytes},
      {fault("always_206"), k_bytes, k_bytes},
      {fault("chunked"), k_bytes, k_bytes},
      {fault("cut_chunks"), k_bytes, transient},
      {fault("max_range", 1 << 20), k_bytes, k_bytes},
      {header_fault("set_header", "Content-Type", "text/html"), k_bytes, k_bytes},
      {header_fault("set_header", "Content-Encoding", "unheard-of"), k_bytes, transient},
      {fault("replaced"), k_bytes, Errc::digest_mismatch},
      {fault("replaced_blindly"), k_bytes, Errc::digest_mismatch},
      {fault("replaced_silently"), k_bytes, Errc::digest_mismatch},
      {fault("slow", 64 << 20), k_bytes, k_bytes},
      {header_fault("drop_header", "Content-Length"), k_bytes, k_bytes},
      {header_fault("drop_header", "ETag"), k_bytes, k_bytes},
      {header_fault("drop_header", "X-Repo-Commit"), k_bytes, k_bytes},
      {header_fault("drop_header", "X-Linked-Size"), k_bytes, k_bytes},
      {header_fault("drop_header", "Accept-Ranges"), k_bytes, k_bytes},
  };
  for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
    // With the same place each time, a resumed answer ends later, so these get on; only silence
    // from the first byte on never does.
    const End in_the_end = at == 0 ? transient : k_bytes;
    all.push_back({fault("cut", at), k_bytes, in_the_end});
    all.push_back({fault("reset", at), k_bytes, in_the_end});
    all.push_back({fault("stall", at), k_bytes, in_the_end});
    all.push_back({fault("short_body", at), k_bytes, transient});
    all.push_back({fault("flip", at), k_bytes, Errc::digest_mismatch});
  }
  return all;
}

struct Case {
  std::string file;
  Origin origin;
  std::string path;                         ///< which hop is hit
  bool restart = false;                     ///< a first client stops half-way
  std::uint64_t part = 4 << 20;             ///< length of a range
  std::optional<std::uint64_t> covers = {}; ///< only answers with this byte are hit
};

HubOptions options_for(const TestHub& hub, const Case& one) {
  HubOptions options;
  options.endpoint = hub.endpoint();
  options.part_bytes = one.part;
  return options;
}

/// Runs one download with the fault in place.
Result<void> run(TestHub& hub, const Case& one, const ListedFile& file, const GitOid& commit,
                 MemoryDownload& download) {
  MemoryShelf shelf;
  download.downloads[0].shelf = &shelf;
  if (one.restart) {
    HubClient first = HubClient::create(options_for(hub, one)).value();
    MemoryDownload half({file});
    half.stalled = [&] { return hub.silent(); };
    half.downloads[0].shelf = &shelf;
    std::uint64_t got = 0;
    half.progress = [&](std::size_t, std::uint64_t bytes) { got = bytes; };
    half.cancel = [&] { return got >= file.size / 3; };
    const auto done = first.download(k_repo, commit, half.downloads, {}, half);
    if (half.sinks[0]->text.size() < file.size)
      download.keep(0, half.sinks[0]->text, half.validators[0]);
    if (!done && done.error().code != Errc::cancelled && done.error().code != Errc::net_transient) {
      return done;
    }
  }
  HubClient client = HubClient::create(options_for(hub, one)).value();
  auto done = client.download(k_repo, commit, download.downloads, {}, download);
  if (done) CHECK(shelf.parts.empty());
  return done;
}

void check(TestHub& hub, const Case& one, const ListedFile& file, const std::string& bytes,
           const GitOid& commit, const End& end) {
  MemoryDownload download({file});
  download.stalled = [&] { return hub.silent(); };
  const auto done = run(hub, one, file, commit, download);
  if (end) {
    CHECK(download.published.empty());
    REQUIRE_FALSE(done);
    CHECK(done.error().code == *end);
    CHECK_FALSE(done.error().message.empty());
  } else {
    if (!done) FAIL(done.error().message);
    CHECK(download.bytes(file.path) == bytes);
    CHECK(download.published == std::vector<std::string>{file.path});
  }
}

void run_matrix(const Case& one, std::size_t size) {
  const std::string bytes = random_bytes(size);
  TestHub hub;
  const auto commit = GitOid::parse(hub.add_repo("org/name", {{one.file, bytes}})).value();
  TestHost host;
  const ListedFile file =
      HubClient::create(options_for(hub, one)).value().list(k_repo, commit, {}, host).value()[0];
  for (const Row& row : rows(std::min<std::size_t>(size, one.part))) {
    for (const unsigned times : {1u, 0u}) {
      FaultRule rule = row.rule;
      rule.match.origin = one.origin;
      rule.match.path = one.path;
      rule.match.times = times;
      rule.match.covers = one.covers;
      INFO(rule.fault << " status " << rule.status << " at " << rule.at << " '" << rule.value
                      << "' " << rule.name << (times == 1 ? " once" : " always"));
      hub.script().clear();
      hub.misbehave(rule);
      check(hub, one, file, bytes, commit, times == 1 ? row.once : row.always);
    }
  }
}

} // namespace

TEST_CASE("FileFetch ends right under every fault of the storage", "[fetch][matrix]") {
  run_matrix({"model.bin", Origin::data, "/lfs/"}, k_large);
}

TEST_CASE("FileFetch ends right under every fault of the storage, started anew half-way",
          "[fetch][matrix]") {
  run_matrix({"model.bin", Origin::data, "/lfs/", true}, k_large);
}

TEST_CASE("FileFetch ends right under every fault of the site's own files", "[fetch][matrix]") {
  run_matrix({"config.json", Origin::hub, "/resolve-cache/"}, k_small);
}

TEST_CASE("FileFetch ends right under every fault of the site's own files, started anew half-way",
          "[fetch][matrix]") {
  run_matrix({"config.json", Origin::hub, "/resolve-cache/", true}, k_small);
}

TEST_CASE("FileFetch gives up on a server that sends a byte now and then", "[fetch][matrix][C17]") {
  const std::string bytes = random_bytes(k_large);
  TestHub hub;
  const auto commit = GitOid::parse(hub.add_repo("org/name", {{"model.bin", bytes}})).value();
  const Case one{"model.bin", Origin::data, "/lfs/"};
  TestHost host;
  const ListedFile file =
      HubClient::create(options_for(hub, one)).value().list(k_repo, commit, {}, host).value()[0];
  FaultRule rule = fault("stall", 1);
  rule.match.origin = Origin::data;
  rule.match.times = 0;
  hub.misbehave(rule);
  check(hub, one, file, bytes, commit, Errc::net_transient);
  CHECK(hub.script().applied() <= 6);
}

// Ranges: a file of 17 parts, several on their way at once.
constexpr std::uint64_t k_part = 64 << 10;

TEST_CASE("FileFetch ends right under every fault of the first part", "[fetch][matrix][parts]") {
  run_matrix({"model.bin", Origin::data, "/lfs/", false, k_part, 0}, k_large);
}

TEST_CASE("FileFetch ends right under every fault of any part, started anew half-way",
          "[fetch][matrix][parts]") {
  run_matrix({"model.bin", Origin::data, "/lfs/", true, k_part}, k_large);
}
