// SPDX-License-Identifier: Apache-2.0
#include "schema/nearest_name.hpp"

#include <catch2/catch.hpp>

#include <array>

using namespace modeld;

TEST_CASE("edit_distance counts inserted, deleted, replaced and swapped characters", "[schema]") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "pull") == 4);
  CHECK(edit_distance("pull", "") == 4);
  CHECK(edit_distance("check", "check") == 0);
  CHECK(edit_distance("chek", "check") == 1);
  CHECK(edit_distance("checks", "check") == 1);
  CHECK(edit_distance("shecK", "check") == 2);
  CHECK(edit_distance("chekc", "check") == 1);
  CHECK(edit_distance("hceck", "check") == 1);
  CHECK(edit_distance("ca", "abc") == 3); // a swap is not edited again
}

TEST_CASE("nearest_name gives the first of the nearest names", "[schema]") {
  constexpr std::array<std::string_view, 4> k_names{"pin", "pull", "pool", "unpin"};
  CHECK(nearest_name("pul", k_names) == "pull");
  CHECK(nearest_name("pnu", k_names) == "pin");
  CHECK(nearest_name("pll", k_names) == "pull");
  CHECK(nearest_name("x", {}).empty());
}
