// SPDX-License-Identifier: Apache-2.0
#include "store/variant.hpp"

#include "tests/store/fixture.hpp"

using namespace modeld;
using namespace modeld::test;
using namespace modeld::store;
namespace fs = std::filesystem;

namespace {

const Files k_files{{"config.json", "{}"}, {"model.safetensors", "wwww"}};

Snapshot model() {
  return snapshot_of("org/Name", '1', k_files);
}

} // namespace

TEST_CASE("variant_key_text has every input in a form that cannot be confused",
          "[store][variant]") {
  const auto text = variant_key_text(variant_inputs(model(), *Recipe::parse_target("Q4_K_M")));
  CHECK(text == "modeld.variant/1\nname 4:Name\nconverter 1\nrecipe 15:Q4_K_M;via=AUTO\n"
                "imatrix -\nsource " +
                    sha("{}").hex() + " 11:config.json\nsource " + sha("wwww").hex() +
                    " 17:model.safetensors\n");
}

TEST_CASE("variant_key changes with each input", "[store][variant]") {
  const auto inputs = variant_inputs(model(), *Recipe::parse_target("Q4_K_M"));
  const auto key = variant_key(inputs);
  CHECK(variant_key(inputs) == key);
  const auto differs = [&](auto change) {
    auto other = inputs;
    change(other);
    return variant_key(other) != key;
  };
  CHECK(differs([](VariantInputs& i) { i.name = "name"; }));
  CHECK(differs([](VariantInputs& i) { i.recipe = "Q8_0"; }));
  CHECK(differs([](VariantInputs& i) { i.converter = "2"; }));
  CHECK(differs([](VariantInputs& i) { i.imatrix = sha("imatrix"); }));
  CHECK(differs([](VariantInputs& i) { i.sources[0].sha256 = sha("other"); }));
  CHECK(differs([](VariantInputs& i) { i.sources[0].path = "other"; }));
  CHECK(differs([](VariantInputs& i) { i.sources.pop_back(); }));
}

TEST_CASE("variant_key does not depend on where the model came from", "[store][variant]") {
  const auto recipe = *Recipe::parse_target("Q8_0");
  CHECK(variant_key(variant_inputs(snapshot_of("a/Name", '1', k_files), recipe)) ==
        variant_key(variant_inputs(snapshot_of("b/Name", '2', k_files), recipe)));
}

TEST_CASE("variant_file_name tells different bytes apart", "[store][variant]") {
  const auto key = sha("key");
  auto recipe = *Recipe::parse_target("Q4_K_M");
  CHECK(variant_file_name(model(), recipe, key) == "Name-Q4_K_M.gguf");
  recipe.mmproj = true;
  CHECK(variant_file_name(model(), recipe, key) == "mmproj-Name-Q4_K_M.gguf");
  recipe.mmproj = false;
  recipe.pure = true;
  CHECK(variant_file_name(model(), recipe, key) ==
        "Name-Q4_K_M-" + key.hex().substr(0, 8) + ".gguf");
  const auto taken = snapshot_of("org/Name", '1', {{"Name-Q8_0.gguf", "x"}});
  CHECK(variant_file_name(taken, *Recipe::parse_target("Q8_0"), key) ==
        "Name-Q8_0-" + key.hex().substr(0, 8) + ".gguf");
}

TEST_CASE("Variant::from_json reads what to_json wrote", "[store][variant]") {
  auto variant = variant_of(model(), "Q4_K_M", "gguf");
  CHECK(*Variant::from_json(variant.to_json()) == variant);
  variant.imatrix = sha("imatrix");
  CHECK(*Variant::from_json(variant.to_json()) == variant);
}

TEST_CASE("Variant::from_json refuses a manifest cut at any byte", "[store][variant]") {
  const std::string text = variant_of(model(), "Q4_K_M", "gguf").to_json();
  for (std::size_t cut = 0; cut + 1 < text.size(); ++cut) {
    INFO(cut);
    CHECK_FALSE(Variant::from_json(text.substr(0, cut)));
  }
}

TEST_CASE("Store::publish_variant shows the file in the snapshot's folder", "[store][variant]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(pull(*store, model(), k_files));
  const auto variant = variant_of(model(), "Q4_K_M", "gguf");
  REQUIRE(ingest(*store, "gguf"));
  REQUIRE(store->publish_variant(variant));
  CHECK(**store->find_variant(variant.key) == variant);
  CHECK(**store->find_variant(variant.repo, variant.commit, variant.recipe) == variant);
  CHECK_FALSE(*store->find_variant(variant.repo, variant.commit, "Q8_0"));
  CHECK(store->variant_path(variant) ==
        store->snapshot_folder(variant.repo, variant.commit) / "Name-Q4_K_M.gguf");
  check_invariants(*store);
}

TEST_CASE("Store::publish_variant refuses a result that is not here", "[store][variant]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(pull(*store, model(), k_files));
  CHECK(store->publish_variant(variant_of(model(), "Q4_K_M", "gguf")).error().code ==
        Errc::not_found);
}

TEST_CASE("Store::publish_variant refuses other bytes under a known key", "[store][variant]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(pull(*store, model(), k_files));
  REQUIRE(ingest(*store, "gguf"));
  REQUIRE(ingest(*store, "GGUF"));
  REQUIRE(store->publish_variant(variant_of(model(), "Q4_K_M", "gguf")));
  CHECK(store->publish_variant(variant_of(model(), "Q4_K_M", "gguf")));
  CHECK(store->publish_variant(variant_of(model(), "Q4_K_M", "GGUF")).error().code ==
        Errc::conflict);
}

TEST_CASE("Store::publish_snapshot keeps the links of variants", "[store][variant]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const auto variant = variant_of(model(), "Q4_K_M", "gguf");
  REQUIRE(ingest(*store, "gguf"));
  REQUIRE(store->publish_variant(variant));
  REQUIRE(pull(*store, model(), k_files));
  check_invariants(*store);
  REQUIRE(store->remove_snapshot(variant.repo, variant.commit));
  check_invariants(*store);
  CHECK_FALSE(fs::exists(store->snapshot_folder(variant.repo, variant.commit) / "config.json"));
}

TEST_CASE("Store::remove_variant removes row, manifest and link", "[store][variant]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(pull(*store, model(), k_files));
  const auto variant = variant_of(model(), "Q4_K_M", "gguf");
  REQUIRE(ingest(*store, "gguf"));
  REQUIRE(store->publish_variant(variant));
  REQUIRE(store->remove_variant(variant.key));
  CHECK_FALSE(*store->find_variant(variant.key));
  CHECK_FALSE(fs::exists(store->variant_path(variant)));
  CHECK(fs::is_empty(dir / "root/variants"));
  CHECK(store->remove_variant(variant.key).error().code == Errc::not_found);
  check_invariants(*store);
}

TEST_CASE("Store keeps one file of a repository alone, before and after the whole snapshot",
          "[store][variant]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const Files files{{"config.json", "{}"}, {"Name-Q4_K_M.gguf", "gguf"}};
  const auto whole = snapshot_of("org/Name", '1', files);
  auto alone = variant_of(snapshot_of("org/Name", '1', {}), "Q4_K_M", "gguf");
  alone.sources = {{alone.file_name, alone.result}};
  REQUIRE(ingest(*store, "gguf"));
  REQUIRE(store->publish_variant(alone));
  REQUIRE(pull(*store, whole, files));
  REQUIRE(store->publish_variant(alone));
  check_invariants(*store);
  REQUIRE(store->remove_variant(alone.key));
  check_invariants(*store);
  CHECK(read_file(store->snapshot_folder(whole.repo, whole.commit) / alone.file_name) == "gguf");
}
