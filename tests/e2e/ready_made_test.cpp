// SPDX-License-Identifier: Apache-2.0
// Repositories that hold GGUF files: the selector picks a file, and only that is fetched.
#include "tests/e2e/private_daemon.hpp"
#include "tests/hub/test_hub.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <algorithm>

using namespace modeld::test;
using Catch::Contains;
using Catch::EndsWith;

namespace {

// A repository with GGUF files only, made of what was built from TinyVerse.
struct Fixture {
  TestHub hub;
  std::string commit;
  PrivateDaemon daemon;

  Fixture() : commit(hub.add_folder("modeld/TinyVerse-4M", tiny_verse())), daemon(hub.endpoint()) {
    commit = hub.add_repo("org/ready", {{"README.md", "ready made"},
                                        {"config.json", "{}"},
                                        {"ready-Q4_K_M.gguf", built("Q4_K_M")},
                                        {"ready-Q8_0.gguf", built("Q8_0")},
                                        {"broken-Q6_K.gguf", "GGUF, but cut short"}});
    hub.forget_requests();
  }

  std::string built(const std::string& recipe) const {
    const Finished got = daemon.ctl({"get", "modeld/TinyVerse-4M:" + recipe});
    if (got.status != 0) throw std::runtime_error(got.err);
    return read_file(got.out.substr(0, got.out.size() - 1));
  }

  bool asked_for(const std::string& name) const {
    const auto seen = hub.requests();
    return std::any_of(seen.begin(), seen.end(), [&name](const SeenRequest& one) {
      return one.request.target.find(name) != std::string::npos;
    });
  }
};

} // namespace

TEST_CASE("a quantization that the repository holds is fetched alone", "[e2e][gguf][C21]") {
  Fixture f;
  // Here the content is known already, by its digest: it was built from other files.
  const Finished known = f.daemon.ctl({"get", "org/ready:Q8_0"});
  INFO(known.err);
  CHECK(known.status == 0);
  CHECK_FALSE(f.asked_for("resolve/" + f.commit + "/ready-Q8_0.gguf"));

  const PrivateDaemon daemon(f.hub.endpoint());
  const Finished got = daemon.ctl({"get", "org/ready:q8_0"});
  INFO(got.err);
  REQUIRE(got.status == 0);
  CHECK_THAT(got.out, EndsWith("/org/ready/" + f.commit + "/ready-Q8_0.gguf\n"));
  CHECK(file_sha256(got.out.substr(0, got.out.size() - 1)) == expected_sha256("Q8_0"));
  CHECK(f.asked_for("ready-Q8_0.gguf"));
  CHECK_FALSE(f.asked_for("resolve/" + f.commit + "/ready-Q4_K_M.gguf"));
  CHECK_FALSE(f.asked_for("resolve/" + f.commit + "/README.md"));

  f.hub.stop(); // a second time needs no network
  CHECK(daemon.ctl({"get", "org/ready:Q8_0"}).out == got.out);
  CHECK_THAT(daemon.ctl({"ls"}).out, Contains("org/ready") && Contains(":Q8_0"));
  CHECK(daemon.ctl({"rm", "org/ready:Q8_0"}).status == 0);
  CHECK(daemon.ctl({"rm", "org/ready:Q8_0"}).status == 3);
}

TEST_CASE("without a selector the usual quantization is taken, and a path is itself",
          "[e2e][gguf][C22]") {
  Fixture f;
  const Finished usual = f.daemon.ctl({"get", "org/ready"});
  INFO(usual.err);
  CHECK_THAT(usual.out, EndsWith("/ready-Q4_K_M.gguf\n"));
  const Finished path = f.daemon.ctl({"get", "org/ready:ready-Q8_0.gguf"});
  INFO(path.err);
  CHECK_THAT(path.out, EndsWith("/ready-Q8_0.gguf\n"));
  CHECK_THAT(f.daemon.ctl({"get", "org/ready:README.md"}).out, EndsWith("/README.md\n"));
  // The whole snapshot beside files that were kept alone, and back.
  const Finished pulled = f.daemon.ctl({"pull", "org/ready"});
  CHECK(pulled.status == 4); // one of its files is broken
  CHECK_THAT(pulled.err, Contains("broken-Q6_K.gguf"));
}

TEST_CASE("a quantization that is not there lists those that are", "[e2e][gguf]") {
  Fixture f;
  const Finished absent = f.daemon.ctl({"get", "org/ready:Q5_K_M"});
  CHECK(absent.status == 3);
  CHECK_THAT(absent.err, Contains("ready-Q4_K_M.gguf") && Contains("ready-Q8_0.gguf"));
  const Finished broken = f.daemon.ctl({"get", "org/ready:Q6_K"});
  CHECK(broken.status == 4);
  CHECK_THAT(broken.err, Contains("broken-Q6_K.gguf"));
}

TEST_CASE("a file that was kept alone and its snapshot share the view", "[e2e][gguf]") {
  TestHub hub;
  hub.add_repo("org/name", {{"a.txt", "a"}, {"b.txt", "b"}});
  PrivateDaemon daemon(hub.endpoint());
  const Finished alone = daemon.ctl({"get", "org/name:a.txt"});
  REQUIRE(alone.status == 0);
  REQUIRE(daemon.ctl({"pull", "org/name"}).status == 0);
  CHECK(daemon.ctl({"get", "org/name:a.txt"}).out == alone.out);
  CHECK(daemon.ctl({"rm", "org/name:a.txt"}).status == 0);
  const Finished still = daemon.ctl({"get", "org/name:a.txt"});
  CHECK(still.out == alone.out);
  CHECK(read_file(still.out.substr(0, still.out.size() - 1)) == "a");
}
