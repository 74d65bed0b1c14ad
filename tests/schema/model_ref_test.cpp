// SPDX-License-Identifier: Apache-2.0
#include "schema/model_ref.hpp"

#include <catch2/catch.hpp>

using namespace modeld;

TEST_CASE("ModelRef::parse takes every documented form", "[schema][ref]") {
  struct Row {
    std::string_view text, repo, revision, selector;
  };
  const Row rows[] = {
      {"org/name", "org/name", "", ""},
      {"gpt2", "gpt2", "", ""},
      {"org/name@main", "org/name", "main", ""},
      {"org/name@refs/pr/12", "org/name", "refs/pr/12", ""},
      {"org/name:Q4_K_M", "org/name", "", "Q4_K_M"},
      {"org/name@v1.0:Q4_K_M", "org/name", "v1.0", "Q4_K_M"},
      {"Qwen/Qwen3-0.6B@c1899de2:sub/model.gguf", "Qwen/Qwen3-0.6B", "c1899de2", "sub/model.gguf"},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const auto ref = ModelRef::parse(row.text);
    REQUIRE(ref);
    CHECK(ref->repo.text == row.repo);
    CHECK(ref->revision == row.revision);
    CHECK(ref->selector == row.selector);
    CHECK(ref->str() == row.text);
  }
}

TEST_CASE("ModelRef::parse refuses names that no Hub has", "[schema][ref]") {
  for (const std::string_view text :
       {"",         "/",      "a/",      "/b",       "a/b/c",    "a b/c",      "a/b--c",
        "a/..",     "a/b..c", "a/b.git", "-a/b",     "a/b-",     "a/b@",       "a/b:",
        "a/b@x..y", "a/b@/x", "a/b@x y", "a/b:../c", "a/b:/etc", "a/b@m:a//b", "\xC3\xA4/b"}) {
    INFO(text);
    const auto ref = ModelRef::parse(text);
    REQUIRE_FALSE(ref);
    CHECK(ref.error().code == Errc::invalid_argument);
  }
  CHECK(RepoId::parse(std::string(96, 'a')));
  CHECK_FALSE(RepoId::parse(std::string(97, 'a')));
}

TEST_CASE("C13: check_repo_path refuses what would leave the folder", "[schema][ref][C13]") {
  for (const std::string_view path : {"a", "a/b.json", "a b", "..a", "a..", "#?%[]", "\xE2\x82\xAC",
                                      "ab:c", ":a", "1:x", "a/C:x"}) {
    INFO(path);
    CHECK(check_repo_path(path));
  }
  using namespace std::string_view_literals;
  for (const std::string_view path :
       {""sv, "/a"sv, "a/"sv, "a//b"sv, "."sv, ".."sv, "../a"sv, "a/../b"sv, "a\\b"sv, "a\0b"sv,
        "a\nb"sv, "a\x7F"sv, "C:x"sv, "c:"sv, "C:/x"sv, "Z:\\x"sv, "\\\\h\\s\\x"sv}) {
    INFO(path);
    CHECK_FALSE(check_repo_path(path));
  }
  CHECK(check_repo_path(std::string(255, 'a')));
  CHECK_FALSE(check_repo_path(std::string(256, 'a')));
}

TEST_CASE("is_commit knows a full commit only", "[schema][ref]") {
  CHECK(is_commit("0123456789abcdef0123456789abcdef01234567"));
  CHECK_FALSE(is_commit("0123456789ABCDEF0123456789abcdef01234567"));
  CHECK_FALSE(is_commit("0123456789abcdef0123456789abcdef0123456"));
  CHECK_FALSE(is_commit("main"));
}
