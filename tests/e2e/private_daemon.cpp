// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/private_daemon.hpp"

#include "schema/digest.hpp"
#include "validate/sha256.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <csignal>
#include <fstream>
#include <span>
#include <stdexcept>

namespace modeld::test {
namespace {

// Whatever the caller's shell has must not change a test.
Process::Environment clean(const std::filesystem::path& home) {
  return {{"HF_TOKEN", ""},        {"HUGGING_FACE_HUB_TOKEN", ""},
          {"HF_TOKEN_PATH", ""},   {"HF_HOME", ""},
          {"HF_ENDPOINT", ""},     {"MODELD_ROOT", ""},
          {"MODELD_SOCKET", ""},   {"MODELD_CONFIG", ""},
          {"MODELD_KERNEL", ""},   {"MODELD_LOG", ""},
          {"HOME", home.string()}, {"XDG_CONFIG_HOME", ""},
          {"XDG_CACHE_HOME", ""},  {"http_proxy", ""},
          {"HTTP_PROXY", ""},      {"no_proxy", "*"},
          {"JOURNAL_STREAM", ""},  {"NOTIFY_SOCKET", ""}};
}

} // namespace

PrivateDaemon::PrivateDaemon(std::string endpoint, std::string config)
    : endpoint_(std::move(endpoint)) {
  // Tests run where little space may be free.
  std::ofstream(dir_ / "modeld.toml")
      << (config.empty() ? "[store]\nmin_free = 0\nreserve_file = 0\n" : config);
  start();
}

void PrivateDaemon::start() {
  Process::Environment environment = clean(dir_.path());
  environment["HF_ENDPOINT"] = endpoint_;
  process_ = std::make_unique<Process>(
      std::vector<std::string>{MODELD_PROGRAM, "--root", root().string(), "--socket", socket(),
                               "--config", (dir_ / "modeld.toml").string(), "--foreground"},
      environment);
  const bool ready = wait_until([this] { return ctl({"health"}).status == 0; });
  if (!ready) throw std::runtime_error("modeld does not start: " + log());
}

void PrivateDaemon::kill() {
  process_->signal(SIGKILL);
  (void)process_->wait(std::chrono::seconds(20));
}

int PrivateDaemon::stop() {
  process_->signal(SIGTERM);
  const auto finished = process_->wait(std::chrono::seconds(30));
  return finished ? finished->status : -1;
}

Process PrivateDaemon::start_ctl(const std::vector<std::string>& arguments,
                                 const Process::Environment& environment) const {
  std::vector<std::string> command{MODELCTL_PROGRAM, "--socket", socket()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  Process::Environment all = clean(dir_.path());
  for (const auto& [name, value] : environment) {
    all[name] = value;
  }
  return Process(command, all);
}

Finished PrivateDaemon::ctl(const std::vector<std::string>& arguments,
                            const Process::Environment& environment) const {
  Process process = start_ctl(arguments, environment);
  auto finished = process.wait(std::chrono::seconds(60));
  if (!finished) throw std::runtime_error("modelctl does not end: " + process.err());
  return *std::move(finished);
}

Finished PrivateDaemon::shell_as(unsigned uid, const std::string& script) const {
  const std::string id = std::to_string(uid);
  Process::Environment all = clean(dir_.path() / ("home" + id));
  all["MODELD_SOCKET"] = socket();
  all["ctl"] = MODELCTL_PROGRAM;
  Process process({"setpriv", "--reuid", id, "--regid", id, "--clear-groups", "sh", "-c", script},
                  all);
  auto finished = process.wait(std::chrono::seconds(60));
  if (!finished) throw std::runtime_error("it does not end: " + process.err());
  return *std::move(finished);
}

boost::json::object PrivateDaemon::ctl_json(const std::vector<std::string>& arguments,
                                            int status) const {
  std::vector<std::string> all{"--json"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Finished finished = ctl(all);
  INFO(finished.err);
  CHECK(finished.status == status);
  return boost::json::parse(finished.out).as_object();
}

std::string file_sha256(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  return validate::sha256_of(std::as_bytes(std::span(text))).hex();
}

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  if (end == std::string::npos) return {};
  const auto start = text.find_last_of('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1, end - start);
}

std::string expected_sha256(const std::string& type) {
  const auto expected =
      boost::json::parse(read_file(MODELD_TEST_DATA "/data/TinyVerse-4M.expected.json"));
  for (const auto& output : expected.at("outputs").as_array()) {
    const std::string file(output.at("file").as_string());
    if (file == type + ".gguf") return std::string(output.at("sha256").as_string());
  }
  throw std::runtime_error("no expected output " + type);
}

std::filesystem::path tiny_verse() {
  return MODELD_TEST_DATA "/data/TinyVerse-4M";
}

} // namespace modeld::test
