// SPDX-License-Identifier: Apache-2.0
// A command line that is wrong names the word, and the nearest that would be right.
#include "tests/e2e/private_daemon.hpp"
#include "tests/hub/test_hub.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

using namespace modeld::test;
using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;

namespace {

// No daemon is asked.
Finished modelctl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {MODELCTL_PROGRAM, "--socket", "/nonexistent/modeld.sock"});
  return run(arguments);
}

void check_usage(const Finished& finished, const std::string& error, const std::string& hint) {
  INFO(finished.err);
  CHECK(finished.status == 2);
  CHECK(finished.out.empty());
  CHECK_THAT(last_line(finished.err), Contains(error) && EndsWith(" [invalid_argument]"));
  CHECK_THAT(finished.err, StartsWith("hint: ") && Contains(hint));
}

} // namespace

TEST_CASE("an unknown command is named, with the nearest", "[e2e][usage]") {
  check_usage(modelctl({"chekc", "x"}), "modelctl: there is no command 'chekc'",
              "the nearest command is 'check'");
  check_usage(modelctl({"pul", "org/name", "--detach"}), "there is no command 'pul'", "'pull'");
  check_usage(modelctl({"imatrix", "shwo", "x"}), "modelctl imatrix: there is no command 'shwo'",
              "'show'");
  check_usage(modelctl({}), "modelctl: a command is missing", "modelctl --help");
  check_usage(modelctl({"imatrix"}), "modelctl imatrix: a command is missing",
              "modelctl imatrix --help");
}

TEST_CASE("an unknown option is named, with the nearest of its command", "[e2e][usage]") {
  check_usage(modelctl({"get", "--output-tensr-type", "Q8_0", "a/b"}),
              "modelctl get: there is no option '--output-tensr-type'", "'--output-tensor-type'");
  check_usage(modelctl({"check", "--porfile=compat", "x"}), "there is no option '--porfile'",
              "'--profile'");
  check_usage(modelctl({"ls", "--jsno"}), "modelctl ls: there is no option '--jsno'", "'--json'");
  check_usage(modelctl({"get", "--detahc"}), "there is no option '--detahc'", "'--detach'");
  check_usage(modelctl({"--sokcet", "x", "ls"}), "there is no option '--sokcet'", "'--socket'");
}

TEST_CASE("a missing and a needless word are named, with the usage", "[e2e][usage]") {
  check_usage(modelctl({"get"}), "modelctl get: ref is missing", "modelctl get [OPTIONS] ref;");
  check_usage(modelctl({"ls", "x"}), "modelctl ls: 'x' is one word too many",
              "modelctl ls [OPTIONS];");
  check_usage(modelctl({"check", "x", "-j"}), "modelctl check: --jobs: a value is missing",
              "modelctl check [OPTIONS] path...;");
  check_usage(modelctl({"check", "x", "-j", "0"}), "modelctl check: --jobs: ", "check --help");
  check_usage(modelctl({"quantize", "in.gguf", "out.gguf", "Q8_0", "4x"}), "threads '4x'",
              "TYPE [THREADS]");
  check_usage(modelctl({"quantize", "in.gguf", "out.gguf", "Q8_0", "-2"}), "threads '-2'",
              "TYPE [THREADS]");
}

TEST_CASE("wrong usage with --json is one error object, wherever --json stands",
          "[e2e][usage][json]") {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"--json", "chekc"}, {"check", "x", "-j", "--json"}, {"ls", "--frob", "--json"}}) {
    const Finished finished = modelctl(arguments);
    INFO(finished.out);
    CHECK(finished.status == 2);
    const auto error = boost::json::parse(finished.out).at("error").as_object();
    CHECK(error.at("code").as_string() == "invalid_argument");
    CHECK_FALSE(error.at("hint").as_string().empty());
    CHECK(error.contains("message"));
    CHECK(error.contains("details"));
  }
}

TEST_CASE("modeld names a wrong option too", "[e2e][usage]") {
  const Finished finished = run({MODELD_PROGRAM, "--rooot", "x"});
  check_usage(finished, "modeld: there is no option '--rooot'", "'--root'");
}

TEST_CASE("what is neither a file nor a snapshot is told in one sentence", "[e2e][usage]") {
  const Finished alone = modelctl({"check", "org/absent"});
  CHECK(alone.status == 3);
  CHECK_THAT(last_line(alone.err), Contains("no such file or folder, and no daemon answers"));
  CHECK_THAT(alone.err, Contains("start the daemon"));
  PrivateDaemon daemon("http://127.0.0.1:9");
  const Finished asked = daemon.ctl({"estimate", "org/absent"});
  CHECK(asked.status == 3);
  CHECK_THAT(last_line(asked.err), Contains("no such file or folder, and no such snapshot"));
  CHECK_THAT(asked.err, Contains("modelctl ls shows what is here"));
}

TEST_CASE("what was pulled is named by its repository", "[e2e][usage]") {
  TestHub hub;
  hub.add_folder("modeld/TinyVerse-4M", tiny_verse());
  PrivateDaemon daemon(hub.endpoint());
  REQUIRE(daemon.ctl({"pull", "modeld/TinyVerse-4M"}).status == 0);
  CHECK_THAT(daemon.ctl({"estimate", "modeld/TinyVerse-4M"}).out,
             StartsWith("TinyVerse 4M: llama"));
  CHECK_THAT(daemon.ctl({"audit", "modeld/TinyVerse-4M"}).out, Contains("38 tensors"));
  CHECK_THAT(daemon.ctl({"show", "modeld/TinyVerse-4M"}).out, Contains(" in 9 files"));

  const std::string to = (daemon.dir() / "view").string();
  REQUIRE(daemon.ctl({"link", "modeld/TinyVerse-4M", "--to", to}).status == 0);
  const Finished unlinked = daemon.ctl({"unlink", "modeld/TinyVerse-4M"});
  CHECK(unlinked.status == 0);
  CHECK_THAT(unlinked.err, Contains("unlinking"));

  const Finished both = daemon.ctl({"--json", "export", "modeld/TinyVerse-4M", "-o", "-"});
  CHECK(both.status == 2);
  CHECK(boost::json::parse(both.out).as_object().contains("error"));
}

TEST_CASE("results and messages that go to one place stay in order", "[e2e][usage]") {
  const std::string ctl = MODELCTL_PROGRAM;
  const Finished checked =
      run({"sh", "-c", "'" + ctl + "' check -a '" + tiny_verse().string() + "' 2>&1"});
  CHECK(checked.status == 0);
  CHECK_THAT(last_line(checked.out), Contains("files: 0 rejected, 0 with warnings"));
  const Finished full = run({"sh", "-c", "'" + ctl + "' --help >/dev/full"});
  CHECK(full.status == 1);
  CHECK_THAT(last_line(full.err), Contains("did not arrive") && EndsWith("[io]"));
}
