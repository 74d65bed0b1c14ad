// SPDX-License-Identifier: Apache-2.0
#include "fetch/selection.hpp"

#include "fetch/shard_name.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace modeld;
using namespace modeld::fetch;

namespace {

std::vector<ListedFile> listing(std::vector<std::string> paths) {
  std::sort(paths.begin(), paths.end());
  std::vector<ListedFile> files;
  for (std::string& path : paths)
    files.push_back({std::move(path), 1, {}, {}});
  return files;
}

std::vector<std::string> paths(const std::vector<ListedFile>& files) {
  std::vector<std::string> names;
  for (const ListedFile& file : files)
    names.push_back(file.path);
  return names;
}

using Names = std::vector<std::string>;

} // namespace

TEST_CASE("matches_pattern compares as fnmatch does", "[fetch][selection]") {
  CHECK(matches_pattern("*.json", "a/b.json"));
  CHECK(matches_pattern("a/*", "a/b/c"));
  CHECK(matches_pattern("model-0000[1-3]-*", "model-00002-of-00005"));
  CHECK_FALSE(matches_pattern("model-0000[!1-3]-*", "model-00002-of-00005"));
  CHECK(matches_pattern("?.txt", "x.txt"));
  CHECK_FALSE(matches_pattern("?.txt", "xy.txt"));
  CHECK_FALSE(matches_pattern("*.json", "a.json5"));
  CHECK(matches_pattern("[x", "[x"));
  CHECK(matches_pattern("**", ""));
  CHECK_FALSE(matches_pattern("", "x"));
  std::string stars;
  for (int i = 0; i < 100; ++i)
    stars += "*a";
  CHECK_FALSE(matches_pattern(stars + "b", std::string(4000, 'a'))); // takes no long time
}

TEST_CASE("select_by_patterns takes includes without excludes, and refuses an empty choice",
          "[fetch][selection][C12]") {
  const auto files = listing({"a.json", "b.txt", "sub/c.json", "sub/d.bin"});
  const auto chosen = [&](Names include, Names exclude) {
    return paths(select_by_patterns(files, include, exclude).value());
  };
  CHECK(chosen({}, {}) == Names{"a.json", "b.txt", "sub/c.json", "sub/d.bin"});
  CHECK(chosen({"*.json"}, {}) == Names{"a.json", "sub/c.json"});
  CHECK(chosen({"sub/"}, {"*.bin"}) == Names{"sub/c.json"});
  const Names none{"*.gguf"};
  const auto empty = select_by_patterns(files, none, {});
  REQUIRE_FALSE(empty);
  CHECK(empty.error().code == Errc::not_found);
  CHECK(select_by_patterns({}, none, {}));
}

TEST_CASE("select_for_conversion takes what the conversion needs and no more",
          "[fetch][selection][A14]") {
  const auto files = listing({"model-00001-of-00002.safetensors",
                              "model-00002-of-00002.safetensors",
                              "model.safetensors.index.json",
                              "config.json",
                              "generation_config.json",
                              "tokenizer.json",
                              "tokenizer.model",
                              "tokenizer_config.json",
                              "merges.txt",
                              "vocab.json",
                              "special_tokens_map.json",
                              "chat_template.jinja",
                              "additional_chat_templates/tool.jinja",
                              "LICENSE",
                              "README.md",
                              "consolidated.safetensors",
                              "pytorch_model.bin",
                              "onnx/model.onnx",
                              "original/consolidated.00.pth",
                              "original/params.json",
                              "model.Q4_K_M.gguf",
                              "figures/plot.png",
                              "tf_model.h5"});
  const auto chosen = select_for_conversion(
      files,
      R"({"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}})");
  REQUIRE(chosen);
  CHECK(chosen->weights ==
        Names{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"});
  const Names names = paths(chosen->files);
  for (const char* wanted : {"config.json", "tokenizer.model", "merges.txt", "chat_template.jinja",
                             "additional_chat_templates/tool.jinja", "LICENSE", "README.md",
                             "model.safetensors.index.json"}) {
    INFO(wanted);
    CHECK(std::count(names.begin(), names.end(), wanted) == 1);
  }
  CHECK(names.size() == 15);
  CHECK(chosen->left.size() == 6);
}

TEST_CASE("select_for_conversion follows the index, whatever its files are called",
          "[fetch][selection][A14]") {
  const auto files = listing({"a.safetensors", "extra-1.safetensors", "consolidated.safetensors",
                              "model.safetensors", "model.safetensors.index.json", "config.json"});
  CHECK(weight_index_of(files) == "model.safetensors.index.json");
  const auto chosen = select_for_conversion(
      files, R"({"weight_map":{"x":"a.safetensors","y":"extra-1.safetensors"}})");
  REQUIRE(chosen);
  CHECK(chosen->weights == Names{"a.safetensors", "extra-1.safetensors"});
  CHECK(chosen->left == Names{"consolidated.safetensors", "model.safetensors"});
  for (const char* bad : {"", "[]", "{}", R"({"weight_map":{}})", R"({"weight_map":{"x":1}})",
                          R"({"weight_map":{"x":"../../etc/passwd"}})"}) {
    CHECK_FALSE(select_for_conversion(files, bad)); // C13: the rule for names holds in an index too
  }
  const auto missing = select_for_conversion(
      files, R"({"weight_map":{"x":"a.safetensors","y":"b.safetensors","z":"c.safetensors"}})");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == Errc::not_found);
  CHECK(missing.error().message.find("b.safetensors, c.safetensors") != std::string::npos);
}

TEST_CASE("select_for_conversion without an index wants one clear choice",
          "[fetch][selection][A14]") {
  const auto weights = [](Names names) {
    names.push_back("config.json");
    const auto chosen = select_for_conversion(listing(names), std::nullopt);
    return chosen ? chosen->weights : Names{std::string(info(chosen.error().code).slug)};
  };
  CHECK(weights({"model.safetensors", "consolidated.safetensors"}) == Names{"model.safetensors"});
  CHECK(weights({"weights.safetensors"}) == Names{"weights.safetensors"});
  CHECK(weights({"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}).size() ==
        2);
  CHECK(weights({"model-00001-of-00002.safetensors"}) == Names{"not_found"});
  CHECK(weights({"a.safetensors", "b.safetensors"}) == Names{"conflict"});
  CHECK(weights({"model.safetensors", "model-00001-of-00001.safetensors"}) == Names{"conflict"});
  CHECK(weights({"pytorch_model.bin"}) == Names{"unsupported"});
  CHECK(weights({"m.Q4_K_M.gguf"}) == Names{"unsupported"});
  CHECK(weights({}) == Names{"not_found"});
}

TEST_CASE("parse_shard_name takes only five digits of five", "[fetch][selection][C22]") {
  const auto shard = parse_shard_name("q/best-00002-of-00004.gguf");
  REQUIRE(shard);
  CHECK(shard->number == 2);
  CHECK(shard->count == 4);
  CHECK(shard->set == "q/best-*-of-00004.gguf");
  for (const char* bad : {"best-of-breed.gguf", "x-0001-of-0004.gguf", "x-00005-of-00004.gguf",
                          "x-00000-of-00004.gguf", "x-00001-of-00004", "00001-of-00004.gguf",
                          "x-0000a-of-00004.gguf", ""}) {
    INFO(bad);
    CHECK_FALSE(parse_shard_name(bad));
  }
}

TEST_CASE("select_gguf matches the whole label in any case", "[fetch][selection][C21]") {
  const auto files = listing({"m-BF16.gguf", "m-F16.gguf", "m-q4_k_m.gguf", "m-Q4_K_S.gguf",
                              "mmproj-F16.gguf", "m.imatrix.gguf"});
  const auto choice = [&](std::string_view tag) {
    const auto chosen = select_gguf(files, tag);
    return chosen ? chosen->parts[0].path : std::string(info(chosen.error().code).slug);
  };
  CHECK(choice("F16") == "m-F16.gguf");
  CHECK(choice("bf16") == "m-BF16.gguf");
  CHECK(choice("Q4_K_M") == "m-q4_k_m.gguf");
  CHECK(choice("Q4_K") == "not_found");
  CHECK(choice("") == "m-q4_k_m.gguf");
  CHECK(choice("m-Q4_K_S.gguf") == "m-Q4_K_S.gguf");
  CHECK(choice("mmproj-F16.gguf") == "not_found");
  CHECK(select_gguf(files, "Q5_0").error().message.find("m-q4_k_m.gguf") != std::string::npos);
  CHECK(select_gguf(files, "F16")->projector->path == "mmproj-F16.gguf");
}

TEST_CASE("select_gguf prefers the plain label and refuses several models",
          "[fetch][selection][C21]") {
  const auto choice = [](Names names, std::string_view tag) {
    const auto chosen = select_gguf(listing(std::move(names)), tag);
    return chosen ? chosen->parts[0].path : std::string(info(chosen.error().code).slug);
  };
  CHECK(choice({"m-UD-Q4_K_M.gguf", "m-Q4_K_M.gguf"}, "Q4_K_M") == "m-Q4_K_M.gguf");
  CHECK(choice({"m-UD-Q4_K_M.gguf", "m-Q4_K_M.gguf"}, "UD-Q4_K_M") == "m-UD-Q4_K_M.gguf");
  CHECK(choice({"Q8_0/m.gguf", "BF16/m.gguf"}, "bf16") == "BF16/m.gguf");
  CHECK(choice({"m.i1-IQ3_XS.gguf", "m.i1-IQ3_S.gguf"}, "IQ3_XS") == "m.i1-IQ3_XS.gguf");
  CHECK(choice({"a-Q4_K_M.gguf", "b-Q4_K_M.gguf"}, "Q4_K_M") == "conflict");
  CHECK(choice({"a-Q8_0.gguf", "a-Q2_K.gguf"}, "") == "a-Q8_0.gguf");
  CHECK(choice({"only-Q2_K.gguf"}, "") == "only-Q2_K.gguf");
  CHECK(choice({"a-Q2_K.gguf", "a-Q3_K.gguf"}, "") == "conflict");
  CHECK(choice({"model.safetensors"}, "Q4_K_M") == "not_found");
}

TEST_CASE("select_gguf takes a split whole or not at all", "[fetch][selection][C22][pitfall-32]") {
  const auto files = listing({"a-Q8_0-00001-of-00003.gguf", "a-Q8_0-00002-of-00003.gguf",
                              "a-Q8_0-00003-of-00003.gguf", "a-Q2_K-00001-of-00004.gguf",
                              "a-Q2_K-00002-of-00004.gguf", "a-Q2_K-00004-of-00004.gguf",
                              "a-Q4_0-00001-of-00001.gguf", "best-of-breed.gguf"});
  CHECK(select_gguf(files, "Q8_0")->parts.size() == 3);
  CHECK(select_gguf(files, "a-Q8_0-00002-of-00003.gguf")->parts.size() == 3);
  const auto missing = select_gguf(files, "Q2_K");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message.find("lacks parts 3 of 4") != std::string::npos);
  CHECK(select_gguf(files, "Q4_0")->parts.size() == 1);
}

TEST_CASE("select_gguf finds the projector nearest in folder and bits", "[fetch][selection]") {
  const auto files =
      listing({"Q8_0/m-Q8_0.gguf", "mmproj-F32.gguf", "mmproj-Q8_0.gguf", "BF16/m-BF16.gguf",
               "BF16/mmproj-F32.gguf", "other/mmproj-Q8_0.gguf"});
  CHECK(select_gguf(files, "Q8_0")->projector->path == "mmproj-Q8_0.gguf");
  CHECK(select_gguf(files, "BF16")->projector->path == "BF16/mmproj-F32.gguf");
  // The same label wins over one that is as near, or comes before.
  const auto labels = listing({"m-Q8_0.gguf", "mmproj-UD.Q8_0.gguf", "mmproj-m-Q8_0.gguf"});
  CHECK(select_gguf(labels, "q8_0")->projector->path == "mmproj-m-Q8_0.gguf");
  CHECK_FALSE(select_gguf(listing({"m-Q8_0.gguf", "other/mmproj-Q8_0.gguf"}), "Q8_0")->projector);
}

TEST_CASE("case_collisions names what a view cannot tell apart", "[fetch][selection][C20]") {
  const auto groups = case_collisions(listing({"README.md", "readme.md", "a/X", "a/x", "b"}));
  REQUIRE(groups.size() == 2);
  CHECK(groups[1] == Names{"README.md", "readme.md"});
}
