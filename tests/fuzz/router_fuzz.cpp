// SPDX-License-Identifier: Apache-2.0
// What a client may send: a request as it comes from the socket, answered by the daemon's own
// routes over a store with a snapshot, a variant and a pin. Jobs end at once.
#include "fuzz.hpp"

#include "daemon/log.hpp"
#include "daemon/request_message.hpp"
#include "daemon/services.hpp"
#include "schema/json.hpp"
#include "tests/support/small_store.hpp"
#include "tests/support/temp_dir.hpp"

#include <boost/beast/http/parser.hpp>
#include <boost/json.hpp>

using namespace modeld;
using namespace modeld::daemon;
using namespace modeld::fuzz;

namespace {

namespace http = boost::beast::http;

class NoRecords final : public JobRecords {
public:
  Result<void> put(const store::JobRecord&) override { return {}; }
  Result<std::vector<store::JobRecord>> list() override { return std::vector<store::JobRecord>{}; }
  Result<void> remove(std::string_view) override { return {}; }
};

class Daemon {
public:
  Daemon() {
    set_log_level("error");
    for (const char* kind : {"pull", "variant", "check", "gc", "fsck", "scrub", "repair", "link",
                             "unlink", "sync", "import"})
      jobs_.add_kind(kind, 1, [](Job&) -> Result<boost::json::object> {
        return fail(Errc::unsupported, "fuzzing: no work is done");
      });
    // All but those that ask the Hub.
    for (const auto add : {add_service_routes, add_snapshot_routes, add_variant_routes,
                           add_job_routes, add_blob_routes, add_lease_routes, add_pin_routes,
                           add_view_routes, add_import_routes, add_care_routes, add_check_routes})
      add(router_, services_);
    require(jobs_.start().has_value(), "an engine that starts");
    fill();
  }

  Response answer(Request request) {
    request.peer = {::getuid(), ::getgid(), ::getpid()};
    request.connection = 1;
    return router_.handle(std::move(request));
  }

private:
  store::BlobInfo blob(std::string_view text) {
    auto ingest = store_->begin_ingest({});
    require(ingest && (*ingest)->write(std::as_bytes(std::span(text))), "a blob");
    return (*ingest)->commit().value();
  }

  void fill() {
    const auto info = blob("hello");
    Snapshot snapshot;
    snapshot.repo = RepoId{"org/name"};
    snapshot.commit = GitOid::parse(std::string(40, 'a')).value();
    snapshot.files = {{"README.md", 5, *info.git_oid, info.sha256}};
    require(store_->publish_snapshot(snapshot).has_value(), "a snapshot");
    require(store_->record_access(snapshot.repo, false, {}).has_value(), "access");
    require(
        store_->record_ref({snapshot.repo, "main", snapshot.commit, snapshot.repo, 1}).has_value(),
        "a ref");
  }

  test::TempDir folder_;
  Config config_;
  std::unique_ptr<store::Store> store_ =
      store::Store::open(folder_ / "root", test::small_options()).value();
  NoRecords records_;
  JobEngine jobs_{records_, {}};
  Metrics metrics_;
  BuildSlots builds_{1};
  Services services_{config_,  *store_, jobs_,
                     metrics_, builds_, std::make_shared<fetch::Bandwidth>(0)};
  Router router_;
};

void check(const Response& response) {
  require(response.status >= 100 && response.status <= 599, "a status that is none");
  require(response.status != 500, "an exception or a bug of ours");
  for (const auto& [name, value] : response.headers)
    require(value.find_first_of("\r\n") == std::string::npos, "a header that begins another");
  const auto* body = std::get_if<std::string>(&response.body);
  if (body == nullptr || !response.content_type.ends_with("json")) return;
  const auto value = parse_json(*body, "an answer");
  require(value.has_value(), "an answer that is no JSON");
  if (response.status < 400) return;
  require(value->is_object(), "a problem that is no object");
  require(json_string(value->get_object(), "code").has_value(), "a problem without a code");
  require(json_string(value->get_object(), "detail").has_value(), "a problem without words");
}

} // namespace

int modeld::fuzz::fuzz_router(const std::uint8_t* data, std::size_t size) {
  static Daemon daemon;
  const Config::Server limits;
  http::request_parser<http::string_body> parser;
  parser.header_limit(static_cast<std::uint32_t>(limits.max_header));
  parser.body_limit(limits.max_body);
  parser.eager(true);
  boost::beast::error_code error;
  const std::size_t used = parser.put(boost::asio::buffer(data, size), error);
  require(used <= size, "more bytes than there are");
  if (!error && !parser.is_done()) parser.put_eof(error);
  if (error || !parser.is_done()) return 0;
  check(daemon.answer(request_of(parser.get())));
  return 0;
}
