// SPDX-License-Identifier: Apache-2.0
#include "daemon/services.hpp"

#include "daemon/care_work.hpp"
#include "daemon/import_work.hpp"
#include "daemon/link_work.hpp"
#include "daemon/repair_work.hpp"
#include "daemon/store_records.hpp"
#include "tests/daemon/contract.hpp"
#include "tests/support/small_store.hpp"
#include "tests/support/temp_dir.hpp"
#include "validate/sha256.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>

using namespace modeld;
using namespace modeld::daemon;

namespace {

// A store with one snapshot, one variant and one pin, and jobs that end at once.
struct Fixture {
  test::TempDir dir;
  Config config;
  std::unique_ptr<store::Store> store =
      store::Store::open(dir / "root", test::small_options()).value();
  StoreJobRecords records{*store};
  JobEngine jobs{records, {}};
  Metrics metrics;
  BuildSlots builds{1};
  Services services{config, *store, jobs, metrics, builds, std::make_shared<fetch::Bandwidth>(0)};
  Router router;
  test::Contract contract;
  Snapshot snapshot;
  store::Variant variant;

  Fixture() {
    for (const char* kind : {"pull", "variant", "check"}) {
      jobs.add_kind(kind, 1, [](Job&) -> Result<boost::json::object> {
        return fail(Errc::unsupported, "testing");
      });
    }
    add_routes(router, services);
    fill();
  }

  store::BlobInfo blob(std::string_view text) {
    auto ingest = store->begin_ingest({}).value();
    REQUIRE(ingest->write(std::as_bytes(std::span(text))));
    return ingest->commit().value();
  }

  void fill() {
    const auto info = blob("hello");
    snapshot.repo = RepoId{"org/name"};
    snapshot.commit = GitOid::parse(std::string(40, 'a')).value();
    snapshot.files = {{"README.md", 5, *info.git_oid, info.sha256}};
    REQUIRE(store->publish_snapshot(snapshot));
    REQUIRE(store->record_access(snapshot.repo, false, {}));
    REQUIRE(store->record_ref({snapshot.repo, "main", snapshot.commit, snapshot.repo, 1}));
    const Recipe recipe = Recipe::parse_target("Q4_K_M").value();
    const auto inputs = store::variant_inputs(snapshot, recipe);
    const auto built = blob("built");
    variant.key = store::variant_key(inputs);
    variant.repo = snapshot.repo;
    variant.commit = snapshot.commit;
    variant.recipe = inputs.recipe;
    variant.converter = inputs.converter;
    variant.sources = inputs.sources;
    variant.result = built.sha256;
    variant.size = built.size;
    variant.file_name = store::variant_file_name(snapshot, recipe, variant.key);
    REQUIRE(store->publish_variant(variant));
  }

  Peer peer{::getuid(), ::getgid(), ::getpid()};

  Response ask(const std::string& method, const std::string& path, const std::string& body = {},
               const std::map<std::string, std::string, std::less<>>& headers = {}) {
    Request request;
    request.method = method;
    request.path = path;
    request.body = body;
    request.headers = headers;
    request.peer = peer;
    request.connection = 1;
    return router.handle(request);
  }

  // Asks, and checks the answer against the contract's entry for `pattern`.
  boost::json::value check(const std::string& method, const std::string& pattern,
                           const std::string& path, int status, const std::string& body = {}) {
    const Response response = ask(method, path, body);
    const auto* text = std::get_if<std::string>(&response.body);
    INFO(method << " " << path << " -> " << response.status << " "
                << (text != nullptr ? *text : ""));
    CHECK(response.status == status);
    const auto wrong = contract.check_answer(method, pattern, response.status,
                                             response.content_type, text != nullptr ? *text : "");
    for (const std::string& one : wrong) {
      FAIL_CHECK(one);
    }
    const bool json = text != nullptr && response.content_type.ends_with("json");
    return json ? boost::json::parse(*text) : boost::json::value();
  }

  // The result of the job that an answer speaks of.
  boost::json::object finish(const boost::json::value& started) {
    const auto job = jobs.find(started.at("job").at("id").as_string()).value();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!job->finished() && std::chrono::steady_clock::now() < deadline) {
      job->wait_event(UINT64_MAX, std::chrono::milliseconds(5));
    }
    const api::Job view = job->view();
    INFO((view.error ? view.error->message : ""));
    REQUIRE(view.result);
    return *view.result;
  }

  // Posts to /v1/<name>, and checks what its job comes to.
  boost::json::object run(const std::string& name, const std::string& answer,
                          const std::string& body = "{}") {
    const auto result = finish(check("POST", "/v1/" + name, "/v1/" + name, 202, body));
    for (const std::string& wrong : contract.check(answer, result)) {
      FAIL_CHECK(wrong);
    }
    return result;
  }
};

// As the contract writes it.
std::string plain(std::string pattern) {
  const auto dots = pattern.find("...}");
  if (dots != std::string::npos) pattern.erase(dots, 3);
  return pattern;
}

} // namespace

TEST_CASE("the routes are those of openapi.yaml, no more and no less", "[daemon][contract]") {
  Fixture fixture;
  std::set<std::string> routes;
  for (const Router::Entry& entry : fixture.router.entries()) {
    routes.insert(entry.method + " " + plain(entry.pattern));
  }
  CHECK(routes == fixture.contract.routes());
}

TEST_CASE("answers about the service, snapshots and variants are as the contract says",
          "[daemon][contract]") {
  Fixture f;
  f.check("GET", "/v1/health", "/v1/health", 200);
  f.check("GET", "/v1/version", "/v1/version", 200);
  f.check("GET", "/v1/usage", "/v1/usage", 200);
  f.check("GET", "/metrics", "/metrics", 200);
  f.check("GET", "/v1/openapi.yaml", "/v1/openapi.yaml", 200);
  const std::string commit(40, 'a');
  f.check("POST", "/v1/pulls", "/v1/pulls", 200, R"({"ref":"org/name@)" + commit + "\"}");
  f.check("POST", "/v1/pulls", "/v1/pulls", 202, R"({"ref":"org/name"})");
  f.check("POST", "/v1/pulls", "/v1/pulls", 400, R"({"ref":"org/name:Q4_K_M"})");
  f.check("GET", "/v1/snapshots", "/v1/snapshots", 200);
  f.check("GET", "/v1/snapshots/{ref}", "/v1/snapshots/org/name", 200);
  f.check("GET", "/v1/snapshots/{ref}", "/v1/snapshots/org/name@aaaaaaaa", 200);
  f.check("GET", "/v1/snapshots/{ref}", "/v1/snapshots/org/other", 404);
  f.check("GET", "/v1/snapshots/{ref}", "/v1/snapshots/org/..", 400);
  f.check("POST", "/v1/variants", "/v1/variants", 200, R"({"ref":"org/name:Q4_K_M"})");
  f.check("POST", "/v1/variants", "/v1/variants", 200, R"({"ref":"org/name:README.md"})");
  f.check("POST", "/v1/variants", "/v1/variants", 404, R"({"ref":"org/name:absent.md"})");
  f.check("POST", "/v1/variants", "/v1/variants", 202,
          R"({"ref":"org/name:Q4_K_M","recipe":{"pure":true}})");
  f.check("POST", "/v1/variants", "/v1/variants", 400, R"({"ref":"org/name:Q4_K_X"})");
  f.check("GET", "/v1/variants", "/v1/variants", 200);
  const std::string key = "/v1/variants/" + f.variant.key.hex();
  f.check("GET", "/v1/variants/{key}", key, 200);
  f.check("DELETE", "/v1/variants/{key}", key, 200);
  f.check("DELETE", "/v1/variants/{key}", key, 404);
  f.check("DELETE", "/v1/snapshots/{ref}", "/v1/snapshots/org/name", 400, R"({"frob":1})");
  f.check("DELETE", "/v1/snapshots/{ref}", "/v1/snapshots/org/name", 200, R"({"force":true})");
}

TEST_CASE("answers about jobs, leases, pins and blobs are as the contract says",
          "[daemon][contract]") {
  Fixture f;
  const auto job = f.check("POST", "/v1/pulls", "/v1/pulls", 202, R"({"ref":"org/name"})");
  const std::string id(job.at("job").at("id").as_string());
  f.check("GET", "/v1/jobs", "/v1/jobs", 200);
  f.check("GET", "/v1/jobs/{id}", "/v1/jobs/" + id, 200);
  f.check("GET", "/v1/jobs/{id}/events", "/v1/jobs/" + id + "/events", 200);
  f.check("GET", "/v1/jobs/{id}", "/v1/jobs/absent", 404);
  const std::string limit = "/v1/jobs/" + id + "/bandwidth";
  f.check("GET", "/v1/jobs/{id}/bandwidth", limit, 200);
  f.check("GET", "/v1/jobs/{id}/bandwidth", "/v1/jobs/absent/bandwidth", 404);
  f.check("PUT", "/v1/jobs/{id}/bandwidth", "/v1/jobs/absent/bandwidth", 404,
          R"({"limit_rate":5})");
  f.check("PUT", "/v1/jobs/{id}/bandwidth", limit, 400, R"({"rate":5})");
  f.check("PUT", "/v1/jobs/{id}/bandwidth", limit, 400, "{}");
  f.check("GET", "/v1/bandwidth", "/v1/bandwidth", 200);
  f.check("PUT", "/v1/bandwidth", "/v1/bandwidth", 200, R"({"limit_rate":4096})");
  CHECK(f.services.bandwidth->limit() == 4096);
  f.check("PUT", "/v1/bandwidth", "/v1/bandwidth", 400, R"({"limit_rate":"fast"})");
  CHECK(f.jobs.stop(std::chrono::seconds(20)));

  const std::string blob = f.variant.result.hex();
  f.check("GET", "/v1/blobs/{digest}", "/v1/blobs/" + blob, 200);
  f.check("GET", "/v1/blobs/{digest}", "/v1/blobs/" + std::string(64, '0'), 404);
  f.check("GET", "/v1/blobs/{digest}", "/v1/blobs/xyz", 400);
  CHECK(f.ask("GET", "/v1/blobs/" + blob, {}, {{"range", "bytes=1-2"}}).status == 206);
  CHECK(f.ask("GET", "/v1/blobs/" + blob, {}, {{"range", "bytes=9-"}}).status == 416);

  const std::string ask = R"({"blob":")" + blob + "\"";
  f.check("POST", "/v1/leases", "/v1/leases", 200, ask + "}");
  f.check("POST", "/v1/leases", "/v1/leases", 200, ask + R"(,"holder":"process"})");
  f.check("POST", "/v1/leases", "/v1/leases", 400, ask + R"(,"holder":"deadline"})");
  f.check("POST", "/v1/leases", "/v1/leases", 400, ask + R"(,"frob":1})");
  const auto lease = f.check("POST", "/v1/leases", "/v1/leases", 200,
                             ask + R"(,"holder":"deadline","seconds":60,"descriptor":true})");
  f.check("GET", "/v1/leases", "/v1/leases", 200);
  const std::string lease_path =
      "/v1/leases/" + std::string(lease.at("lease").at("id").as_string());
  f.check("DELETE", "/v1/leases/{id}", lease_path, 200);
  f.check("DELETE", "/v1/leases/{id}", lease_path, 404);

  f.check("PUT", "/v1/pins/{name}", "/v1/pins/mine", 200, R"({"ref":"org/name:Q4_K_M"})");
  f.check("PUT", "/v1/pins/{name}", "/v1/pins/other", 404, R"({"ref":"org/other"})");
  f.check("GET", "/v1/pins", "/v1/pins", 200);
  f.check("GET", "/v1/pins/{name}", "/v1/pins/mine", 200);
  f.check("DELETE", "/v1/snapshots/{ref}", "/v1/snapshots/org/name", 409);
  f.check("DELETE", "/v1/pins/{name}", "/v1/pins/mine", 200);
  f.check("GET", "/v1/pins/{name}", "/v1/pins/mine", 404);
}

TEST_CASE("a check is a job of a whole repository, as the contract says", "[daemon][contract]") {
  Fixture f;
  f.check("POST", "/v1/checks", "/v1/checks", 202, R"({"ref":"org/name"})");
  f.check("POST", "/v1/checks", "/v1/checks", 202,
          R"({"ref":"org/name@v1","profile":"compat","context":4096})");
  f.check("POST", "/v1/checks", "/v1/checks", 400, R"({"ref":"org/name:Q4_K_M"})");
  f.check("POST", "/v1/checks", "/v1/checks", 400, R"({"ref":"org/name","profile":"lax"})");
  f.check("POST", "/v1/checks", "/v1/checks", 400, R"({"ref":"org/name","context":99999999999})");
  f.check("POST", "/v1/checks", "/v1/checks", 400, R"({"ref":"org/name","frob":1})");
}

TEST_CASE("answers about the care of the store are as the contract says", "[daemon][contract]") {
  Fixture f;
  f.jobs.add_kind("gc", 1, [&f](Job& job) { return run_gc(f.services, job); });
  f.jobs.add_kind("fsck", 1, [&f](Job& job) { return run_fsck(f.services, job); });
  f.jobs.add_kind("scrub", 1, [&f](Job& job) { return run_scrub(f.services, job); });
  f.check("POST", "/v1/gc", "/v1/gc", 200, R"({"dry_run":true})");
  f.check("POST", "/v1/gc", "/v1/gc", 400, R"({"order":"frob"})");
  f.jobs.add_kind("repair", 1, [&f](Job& job) { return run_repair(f.services, job); });
  f.run("gc", "GcAnswer");
  f.run("fsck", "FsckAnswer");
  f.run("fsck", "FsckAnswer", R"({"rebuild":true})");
  f.run("scrub", "ScrubAnswer");
  f.run("repair", "RepairAnswer");
  f.run("repair", "RepairAnswer", R"({"ref":"org/name"})");
  f.check("POST", "/v1/repair", "/v1/repair", 400, R"({"ref":"org/.."})");
}

TEST_CASE("answers about other programs' folders are as the contract says", "[daemon][contract]") {
  Fixture f;
  f.jobs.add_kind("link", 1, [&f](Job& job) { return run_link(f.services, job); });
  f.jobs.add_kind("unlink", 1, [&f](Job& job) { return run_unlink(f.services, job); });
  const std::string root = (f.dir / "shown").string();
  const std::string place = R"("target":"folder","root":")" + root + "\"";
  f.check("POST", "/v1/views", "/v1/views", 400, "{" + place + "}");
  f.check("POST", "/v1/views", "/v1/views", 400, R"({"ref":"org/name","all":true,)" + place + "}");
  f.check("POST", "/v1/views", "/v1/views", 400,
          R"({"ref":"org/name","target":"vllm","root":"/x"})");
  f.check("POST", "/v1/views", "/v1/views", 400,
          R"({"ref":"org/name","target":"folder","root":"x"})");
  f.check("POST", "/v1/views", "/v1/views", 400,
          R"({"ref":"org/name","form":"written",)" + place + "}");
  const auto shown = f.run("views", "ViewAnswer", R"({"ref":"org/name",)" + place + "}");
  CHECK(shown.at("views").at(0).at("names").at(0).as_string() == root);
  f.run("views", "ViewAnswer", R"({"all":true,)" + place + "}");
  const auto list = f.check("GET", "/v1/views", "/v1/views", 200);
  const std::string id(list.at("views").at(0).at("id").as_string());
  CHECK(list.at("standing").as_array().size() == 1);
  f.check("DELETE", "/v1/views/{id}", "/v1/views/absent", 404);
  const auto hidden = f.finish(f.check("DELETE", "/v1/views/{id}", "/v1/views/" + id, 202));
  CHECK(f.contract.check("ViewRemoved", hidden).empty());
}

TEST_CASE("answers about imports and bundles are as the contract says", "[daemon][contract]") {
  Fixture f;
  f.jobs.add_kind("import", 1, [&f](Job& job) { return run_import(f.services, job); });
  std::filesystem::create_directories(f.dir / "mine");
  std::ofstream(f.dir / "mine" / "a.txt") << "a";
  f.run("import", "ImportAnswer", R"({"path":")" + (f.dir / "mine").string() + "\"}");
  f.check("POST", "/v1/import", "/v1/import", 400, R"({"path":"relative"})");
  f.check("POST", "/v1/import", "/v1/import", 400, R"({"path":"/x","source":"vllm"})");
  f.check("GET", "/v1/bundles/{ref}", "/v1/bundles/org/name", 200);
  f.check("GET", "/v1/bundles/{ref}", "/v1/bundles/org/name:Q4_K_M", 200);
  f.check("GET", "/v1/bundles/{ref}", "/v1/bundles/org/name:Q6_K", 404);
  f.check("GET", "/v1/bundles/{ref}", "/v1/bundles/org/absent", 404);
}

TEST_CASE("what only an administrator may do is denied to others", "[daemon][contract][rule-5]") {
  Fixture f;
  f.peer = {65534, 65534, 1};
  const std::string place = R"("target":"folder","root":"/tmp/x-modeld")";
  f.check("POST", "/v1/views", "/v1/views", 403, R"({"ref":"org/name",)" + place + "}");
  f.check("POST", "/v1/import", "/v1/import", 403, R"({"path":"/etc"})");
  f.check("POST", "/v1/gc", "/v1/gc", 403, "{}");
  f.check("PUT", "/v1/bandwidth", "/v1/bandwidth", 403, R"({"limit_rate":1})");
  f.check("POST", "/v1/repair", "/v1/repair", 403, "{}");
  REQUIRE(f.store->record_access(f.snapshot.repo, true, 1000));
  f.check("GET", "/v1/bundles/{ref}", "/v1/bundles/org/name", 403);
  f.check("POST", "/v1/repair", "/v1/repair", 403, R"({"ref":"org/name"})");
  CHECK(f.check("GET", "/v1/snapshots", "/v1/snapshots", 200).at("snapshots").as_array().empty());
  f.check("GET", "/v1/blobs/{digest}", "/v1/blobs/" + f.variant.result.hex(), 404);
}

TEST_CASE("a body that is no JSON object of known members is refused by name",
          "[daemon][contract]") {
  Fixture f;
  for (const char* body : {"", "x", "[]", "{\"ref\":5}", "{}", "{\"ref\":\"a/b\",\"rev\":1}"}) {
    f.check("POST", "/v1/pulls", "/v1/pulls", 400, body);
  }
}

TEST_CASE("every error code becomes a problem as the contract says", "[daemon][contract]") {
  const test::Contract contract;
  for (const ErrcInfo& row : all_error_codes()) {
    const Response response =
        Response::problem(Error{row.code, "doing 'x': why", "hint", {{"a", "b"}}, 0});
    CHECK(response.status == row.http_status);
    CHECK(contract.check("Problem", boost::json::parse(std::get<std::string>(response.body)))
              .empty());
  }
}
