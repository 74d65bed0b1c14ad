// SPDX-License-Identifier: Apache-2.0
#include "schema/recipe.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace modeld;

TEST_CASE("Recipe::parse_target knows names in any case and resolves aliases", "[schema][recipe]") {
  CHECK(Recipe::parse_target("q4_k_m")->target == "Q4_K_M");
  CHECK(Recipe::parse_target("Q4_K")->target == "Q4_K_M");
  CHECK(Recipe::parse_target("Q4_K")->canonical() == Recipe::parse_target("q4_k_m")->canonical());
  CHECK(Recipe::parse_target("auto")->target == "AUTO");
  CHECK(Recipe::parse_target("bf16")->via.empty());
  CHECK(Recipe::parse_target("Q8_0")->via == "AUTO");
}

TEST_CASE("Recipe::parse_target lists what it knows", "[schema][recipe]") {
  const auto recipe = Recipe::parse_target("Q4_K_XL");
  REQUIRE_FALSE(recipe);
  CHECK(recipe.error().code == Errc::invalid_argument);
  CHECK(recipe.error().message.find("Q4_K_M") != std::string::npos);
}

TEST_CASE("Recipe::canonical tells apart all that can change a byte", "[schema][recipe]") {
  Recipe base = *Recipe::parse_target("Q4_K_M");
  std::vector<std::string> texts{base.canonical()};
  const auto add = [&](auto change) {
    Recipe recipe = base;
    change(recipe);
    texts.push_back(recipe.canonical());
  };
  add([](Recipe& r) { r.via = "F32"; });
  add([](Recipe& r) { r.output_type = TensorType::q8_0; });
  add([](Recipe& r) { r.embedding_type = TensorType::q8_0; });
  add([](Recipe& r) { r.tensor_types = {{"attn", TensorType::q8_0}}; });
  add([](Recipe& r) { r.tensor_types = {{"attn:Q8_0", TensorType::q8_0}}; });
  add([](Recipe& r) { r.pure = true; });
  add([](Recipe& r) { r.leave_output_tensor = true; });
  add([](Recipe& r) { r.keep_split = true; });
  add([](Recipe& r) { r.force = true; });
  add([](Recipe& r) { r.mmproj = true; });
  add([](Recipe& r) { r.pre = "llama-bpe"; });
  add([](Recipe& r) { r.model_name = "Other"; });
  std::sort(texts.begin(), texts.end());
  CHECK(std::adjacent_find(texts.begin(), texts.end()) == texts.end());
}

TEST_CASE("Recipe::canonical of a model is what it was before projectors", "[schema][recipe]") {
  // Keys of variants hash it; a store is full of them.
  Recipe recipe = *Recipe::parse_target("Q4_K_M");
  recipe.force = true;
  recipe.model_name = "Other";
  CHECK(recipe.canonical() == "Q4_K_M;via=AUTO;force=1;name=5:Other");
  recipe.mmproj = true;
  CHECK(recipe.canonical() == "Q4_K_M;via=AUTO;force=1;name=5:Other;mmproj=1");
}
