// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/output_file.hpp"

#include "tests/support/temp_dir.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <fstream>
#include <iterator>
#include <sstream>

using namespace modeld;
using modeld::quantize::OutputFile;
namespace fs = std::filesystem;

namespace {

constexpr std::array k_bytes{std::byte{'a'}, std::byte{'b'}};

std::string content(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

} // namespace

TEST_CASE("OutputFile appears under its name only when committed", "[quantize][output_file][B07]") {
  const test::TempDir dir;
  {
    auto file = OutputFile::create(dir / "out.gguf", {});
    REQUIRE(file);
    REQUIRE((*file)->write(k_bytes));
    CHECK_FALSE(fs::exists(dir / "out.gguf"));
    REQUIRE((*file)->commit());
  }
  CHECK(content(dir / "out.gguf") == "ab");
  CHECK(std::distance(fs::directory_iterator(dir.path()), {}) == 1);
}

TEST_CASE("OutputFile leaves nothing where it is not committed", "[quantize][output_file][B07]") {
  const test::TempDir dir;
  {
    auto file = OutputFile::create(dir / "out.gguf", {});
    REQUIRE(file);
    REQUIRE((*file)->write(k_bytes));
  }
  CHECK(fs::is_empty(dir.path()));
}

TEST_CASE("OutputFile refuses an output that is an input by name, symlink or hard link",
          "[quantize][output_file][B06]") {
  const test::TempDir dir;
  const fs::path input = dir / "in.gguf";
  std::ofstream(input) << "source";
  fs::create_symlink(input, dir / "soft.gguf");
  fs::create_hard_link(input, dir / "hard.gguf");
  const std::array inputs{input};
  for (const char* name : {"in.gguf", "soft.gguf", "hard.gguf"}) {
    const auto refused = OutputFile::create(dir / name, inputs);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Errc::conflict);
  }
  CHECK(content(input) == "source");
}

TEST_CASE("OutputFile names a folder that is missing", "[quantize][output_file][B07]") {
  const test::TempDir dir;
  const auto refused = OutputFile::create(dir.path() / "no" / "out.gguf", {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::not_found);
}
