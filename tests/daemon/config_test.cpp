// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.hpp"

#include "tests/support/temp_dir.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>
#include <set>

using namespace modeld;
using namespace modeld::daemon;
using Catch::Contains;

namespace {

Error config_error(std::string_view text) {
  auto config = parse_config(text, "modeld.toml");
  REQUIRE_FALSE(config.has_value());
  CHECK(config.error().code == Errc::invalid_argument);
  return config.error();
}

} // namespace

TEST_CASE("parse_config reads sizes, durations, modes and counts", "[daemon][config]") {
  const auto config = parse_config("[server]\nmax_header = \"32KiB\"\nmax_body = 4096\n"
                                   "idle_timeout = \"2m\"\nheartbeat = \"250ms\"\n"
                                   "socket_mode = \"0660\"\nio_threads = 3\n"
                                   "[hub]\nendpoint = \"http://127.0.0.1:1\"\n",
                                   "modeld.toml");
  REQUIRE(config.has_value());
  CHECK(config->server.max_header == 32 * 1024);
  CHECK(config->server.max_body == 4096);
  CHECK(config->server.idle_timeout == std::chrono::minutes(2));
  CHECK(config->server.heartbeat == std::chrono::milliseconds(250));
  CHECK(config->server.socket_mode == 0660);
  CHECK(config->server.io_threads == 3);
  CHECK(config->hub.endpoint == "http://127.0.0.1:1");
}

TEST_CASE("parse_config names file, line and the nearest setting for an unknown one",
          "[daemon][config]") {
  const Error error = config_error("[jobs]\n\nmax_pull = 3\n");
  CHECK_THAT(error.message, Contains("'modeld.toml' line 3") && Contains("jobs.max_pull"));
  CHECK_THAT(error.hint, Contains("jobs.max_pulls"));
  CHECK_THAT(config_error("[frob]\nx = 1\n").message, Contains("no section 'frob'"));
  CHECK_THAT(config_error("x = 1\n").message, Contains("no section 'x'"));
}

TEST_CASE("parse_config gives the value found and the range allowed", "[daemon][config]") {
  CHECK_THAT(config_error("[server]\nio_threads = 0\n").message,
             Contains("'server.io_threads' is 0") && Contains("1 to 64"));
  CHECK_THAT(config_error("[server]\nmax_body = \"1GiB\"\n").message,
             Contains("1GiB") && Contains("1KiB to 64MiB"));
  CHECK_THAT(config_error("[server]\nidle_timeout = 5\n").message, Contains("as text in quotes"));
  CHECK_THAT(config_error("[server]\nidle_timeout = \"5\"\n").message, Contains("100ms to 24h"));
  CHECK_THAT(config_error("[server]\nsocket_mode = \"0999\"\n").message, Contains("0999"));
  CHECK_THAT(config_error("[server]\nio_threads = -1\n").message, Contains("-1"));
  CHECK_THAT(config_error("[server]\nio_threads = true\n").message, Contains("must be 1 to 64"));
  CHECK_THAT(config_error("[store]\nmin_free = \"99999999999999999999GiB\"\n").message,
             Contains("min_free"));
  CHECK_THAT(config_error("[log]\nlevel = \"loud\"\n").message,
             Contains("'loud'") && Contains("error, warning, info and debug"));
}

TEST_CASE("parse_config gives the line of broken TOML", "[daemon][config]") {
  CHECK_THAT(config_error("[server]\nsocket = \n").message, Contains("line 2"));
}

TEST_CASE("every setting is in range, has a meaning and survives being printed",
          "[daemon][config]") {
  std::set<std::string_view> names;
  for (const Setting& setting : all_settings()) {
    CHECK(names.insert(setting.name).second);
    CHECK_FALSE(setting.meaning.empty());
  }
  const auto first = parse_config("[store]\nroot = \"/a\\\"b\\\\c\"\n", "x");
  REQUIRE(first.has_value());
  const auto second = parse_config(print_config(*first), "printed");
  REQUIRE(second.has_value());
  CHECK(print_config(*second) == print_config(*first));
  CHECK(second->store.root == "/a\"b\\c");
}

TEST_CASE("load_config: the command line wins over the environment, that over the file",
          "[daemon][config]") {
  test::TempDir dir;
  const auto path = dir / "modeld.toml";
  std::ofstream(path) << "[hub]\nendpoint = \"http://file\"\n[store]\nroot = \"/file\"\n";
  ::setenv("HF_ENDPOINT", "http://environment", 1);
  ::unsetenv("MODELD_ROOT");
  ConfigSources sources;
  sources.file = path;
  auto config = load_config(sources);
  REQUIRE(config.has_value());
  CHECK(config->hub.endpoint == "http://environment");
  CHECK(config->store.root == "/file");
  sources.root = "/command";
  config = load_config(sources);
  REQUIRE(config.has_value());
  CHECK(config->store.root == "/command");
  ::unsetenv("HF_ENDPOINT");
  sources.file = dir / "absent.toml";
  const auto absent = load_config(sources);
  REQUIRE_FALSE(absent.has_value());
  CHECK_THAT(absent.error().message, Contains("absent.toml"));
}
