// SPDX-License-Identifier: Apache-2.0
#include "schema/digest.hpp"

#include <catch2/catch.hpp>

using namespace modeld;

TEST_CASE("Sha256Digest::parse reads what hex writes", "[schema][digest]") {
  const std::string text = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
  const auto digest = Sha256Digest::parse(text);
  REQUIRE(digest);
  CHECK(digest->hex() == text);
}

TEST_CASE("Sha256Digest::parse refuses every other text", "[schema][digest]") {
  const std::string good(64, 'a');
  for (std::size_t n = 0; n < 64; ++n) {
    CHECK_FALSE(Sha256Digest::parse(good.substr(0, n)));
  }
  CHECK_FALSE(Sha256Digest::parse(good + "a"));
  CHECK_FALSE(Sha256Digest::parse(std::string(64, 'A')));
  for (std::size_t n = 0; n < 64; ++n) {
    std::string bad = good;
    bad[n] = 'g';
    CHECK_FALSE(Sha256Digest::parse(bad));
  }
}
