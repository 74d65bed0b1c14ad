// SPDX-License-Identifier: Apache-2.0
// Every golden snapshot is a good repository, or is refused for what its note says.
#include "validate/repository.hpp"

#include "builders.hpp"
#include "tests/quantize/golden_snapshot.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <filesystem>
#include <map>
#include <string>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::validate;

namespace {

namespace fs = std::filesystem;

/// Cases that are not good, and the rule that says why.
const std::map<std::string, std::string> k_refused{
    {"Tiny-Cfg-broken-config", "RC-01"},
    {"Tiny-Foo-Broken-generation-config", "RC-01"},
    {"Tiny-Src-Bad-header", "ST-07"},
    {"Tiny-Src-Index-missing-file", "IX-06"},
    {"Tiny-Src-Index-missing-tensor", "IX-07"},
    {"Tiny-Src-Index-no-weight-map", "IX-02"},
    {"Tiny-Src-Pickle-and-safetensors", "PK-01"},
    {"Tiny-Src-Pickle-only", "PK-01"},
    {"Tiny-Src-Truncated", "ST-34a"},
    {"Tiny-Tok-BPE-too-small", "TK-02"},
    {"Tiny-Tok-SPM-ids-out-of-range", "RC-40"},
};

/// Cases that warnings may hold for reasons of their own; anything may be found in these.
bool may_be_refused(const boost::json::object& expected) {
  for (const auto& output : expected.at("outputs").as_array())
    if (output.as_object().contains("error") || output.as_object().contains("may_refuse"))
      return true;
  return false;
}

} // namespace

TEST_CASE("check_repository accepts every good golden snapshot and refuses the bad ones",
          "[validate][golden]") {
  std::size_t cases = 0;
  for (const auto& folder : fs::directory_iterator(MODELD_TEST_DATA "/golden")) {
    if (!fs::exists(folder.path() / "expected.json")) continue;
    const std::string name = folder.path().filename().string();
    const auto expected =
        boost::json::parse(read_file(folder.path() / "expected.json")).as_object();
    const auto* model_dir = expected.if_contains("model_dir");
    if (model_dir == nullptr || !fs::is_directory(folder.path() / "snapshot")) continue;
    const MemoryFiles files = golden_snapshot(folder.path(), std::string(model_dir->as_string()));
    Report all;
    for (CheckedFile& file : check_repository(files, CheckOptions{}))
      all.merge(std::move(file.report));
    INFO(name << "\n" << list(all));
    ++cases;
    if (const auto refused = k_refused.find(name); refused != k_refused.end()) {
      CHECK(all.has(refused->second, Severity::error));
    } else if (!may_be_refused(expected)) {
      CHECK(all.accepted());
    }
  }
  CHECK(cases > 200);
}
