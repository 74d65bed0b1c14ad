// SPDX-License-Identifier: Apache-2.0
#include "tests/files/command.hpp"

#include "schema/digest.hpp"
#include "tests/support/memory_files.hpp"
#include "validate/sha256.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <span>
#include <stdexcept>

namespace modeld::test {
namespace {

// Whatever the caller's shell has must not change a test.
const Process::Environment k_clean{{"MODELD_KERNEL", ""}, {"MODELD_SOCKET", ""}};

} // namespace

std::vector<std::string> Workplace::command(const std::vector<std::string>& words,
                                            const Wrapper& wrapper) const {
  std::vector<std::string> all{"env", "-C", dir_.path().string()};
  all.insert(all.end(), wrapper.begin(), wrapper.end());
  all.emplace_back(MODELCTL_PROGRAM);
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

Finished Workplace::ctl(const std::vector<std::string>& words, const Wrapper& wrapper) const {
  Process process(command(words, wrapper), k_clean);
  auto finished = process.wait(std::chrono::minutes(2));
  if (!finished) throw std::runtime_error("modelctl does not end: " + process.err());
  return *std::move(finished);
}

Process Workplace::start(const std::vector<std::string>& words,
                         const Process::Environment& environment) const {
  Process::Environment all = k_clean;
  for (const auto& [name, value] : environment) {
    all[name] = value;
  }
  return Process(command(words, {}), all);
}

boost::json::object Workplace::ctl_json(const std::vector<std::string>& words, int status) const {
  std::vector<std::string> all{"--json"};
  all.insert(all.end(), words.begin(), words.end());
  const Finished finished = ctl(all);
  INFO(finished.err);
  CHECK(finished.status == status);
  return boost::json::parse(finished.out).as_object();
}

std::set<std::string> Workplace::names() const {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

std::string Workplace::sha256(std::string_view name) const {
  const std::string text = read_file(dir_ / name);
  return validate::sha256_of(std::as_bytes(std::span(text))).hex();
}

std::string error_code(const Finished& finished) {
  const std::string& text = finished.err;
  const auto open = text.rfind('[');
  const auto close = text.rfind("]\n");
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  return text.substr(open + 1, close - open - 1);
}

void put_tiny_verse(const Workplace& place, const std::string& name) {
  const auto done = place.ctl(
      {"convert", MODELD_TEST_DATA "/data/TinyVerse-4M", "-o", name, "--outtype", "bf16"});
  INFO(done.err);
  REQUIRE(done.status == 0);
}

std::string tiny_verse_sha256(const std::string& type) {
  const auto expected =
      boost::json::parse(read_file(MODELD_TEST_DATA "/data/TinyVerse-4M.expected.json"));
  for (const auto& output : expected.at("outputs").as_array()) {
    if (output.at("file").as_string() == type + ".gguf") {
      return std::string(output.at("sha256").as_string());
    }
  }
  throw std::runtime_error("no expected output " + type);
}

} // namespace modeld::test
