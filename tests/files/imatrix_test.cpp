// SPDX-License-Identifier: Apache-2.0
#include "tests/files/command.hpp"
#include "tests/files/model_inputs.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <fstream>

using namespace modeld;
using namespace modeld::test;
using Catch::Contains;

TEST_CASE("modelctl imatrix show tells what a matrix holds, in both forms", "[files][imatrix]") {
  const Workplace place;
  const auto model = small_llama(256, 1, 4);
  write_matrix(model, {.unused_expert = true}, place / "m.gguf");
  const auto shown = place.ctl_json({"imatrix", "show", "m.gguf"});
  CHECK(shown.at("form").as_string() == "gguf");
  CHECK(shown.at("chunks").to_number<int>() == 12);
  CHECK(shown.at("datasets").as_array().at(0).as_string() == "calibration.txt");
  const auto& entries = shown.at("entries").as_array();
  REQUIRE(entries.size() == 8);
  for (const auto& entry : entries) {
    if (entry.at("name").as_string() != "blk.0.ffn_up_exps.weight") continue;
    CHECK(entry.at("columns").to_number<int>() == 256);
    CHECK(entry.at("experts").to_number<int>() == 4);
    CHECK(entry.at("unused_experts").to_number<int>() == 1);
    CHECK(entry.at("tokens").to_number<int>() == 512);
  }
  const auto table = place.ctl({"imatrix", "show", "m.gguf"});
  CHECK(table.status == 0);
  CHECK_THAT(table.out, Contains("blk.0.ffn_up_exps.weight"));
  CHECK_THAT(table.err, Contains("1 of 4 experts of 'blk.0.ffn_up_exps.weight'"));

  write_matrix(model, {}, place / "m.dat");
  const auto old = place.ctl_json({"imatrix", "show", "m.dat"});
  CHECK(old.at("form").as_string() == "dat");
  CHECK(old.at("entries").as_array().size() == 8);
}

TEST_CASE("modelctl imatrix show names values that are no weights (B04)", "[files][imatrix][B04]") {
  const Workplace place;
  for (const std::string bad : {"nan", "inf", "negative"}) {
    write_matrix(small_llama(), {.bad = bad}, place / "m.gguf");
    const auto refused = place.ctl({"imatrix", "show", "m.gguf"});
    INFO(refused.err);
    CHECK(refused.status == 4);
    CHECK_THAT(refused.err, Contains("blk.0.ffn_down.weight"));
  }
}

TEST_CASE("modelctl imatrix show refuses what is no matrix", "[files][imatrix]") {
  const Workplace place;
  write_model(small_llama(), place / "model.gguf");
  const auto model = place.ctl({"imatrix", "show", "model.gguf"});
  CHECK(model.status == 4);
  CHECK_THAT(model.err, Contains("no importance matrix"));
  std::ofstream(place / "empty.dat") << "";
  CHECK(place.ctl({"imatrix", "show", "empty.dat"}).status == 4);
  std::ofstream(place / "text.dat") << "this is a text and nothing else";
  CHECK(place.ctl({"imatrix", "show", "text.dat"}).status == 4);
  CHECK(place.ctl({"imatrix", "show", "missing.dat"}).status == 3);
  CHECK(place.ctl({"imatrix"}).status == 2);
}
