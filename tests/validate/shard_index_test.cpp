// SPDX-License-Identifier: Apache-2.0
#include "validate/shard_index.hpp"

#include "builders.hpp"
#include "tests/support/memory_files.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <string>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::validate;

namespace {

using Files = std::map<std::string, std::string>;

constexpr const char* k_index = "model.safetensors.index.json";
constexpr const char* k_first = "model-00001-of-00002.safetensors";
constexpr const char* k_second = "model-00002-of-00002.safetensors";

/// Two shards of two tensors of 125 bytes each: 500 in all.
Files repository() {
  const auto shard = [](const char* x, const char* y) {
    return st(object({entry(x, "U8", "[125]", "0", "125"), entry(y, "U8", "[125]", "125", "250")}),
              zeros(250));
  };
  return {{k_first, shard("a", "b")},
          {k_second, shard("c", "d")},
          {k_index, R"({"metadata":{"total_size":500},"weight_map":{
              "a":"model-00001-of-00002.safetensors","b":"model-00001-of-00002.safetensors",
              "c":"model-00002-of-00002.safetensors","d":"model-00002-of-00002.safetensors"}})"}};
}

void replace(std::string& text, std::string_view what, std::string_view with) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  text.replace(at, what.size(), with);
}

/// The repository with one text of its index replaced.
Files with_index(std::string_view what, std::string_view with) {
  Files files = repository();
  replace(files[k_index], what, with);
  return files;
}

Report check(Files files, Profile profile = Profile::strict) {
  return check_weight_set(MemoryFiles("repo", std::move(files)), profile).report;
}

#define EXPECT_REJECT(files, rule)                                                                 \
  do {                                                                                             \
    const Report report = check(files);                                                            \
    INFO(list(report));                                                                            \
    CHECK_FALSE(report.accepted());                                                                \
    CHECK(report.has(rule, Severity::error));                                                      \
  } while (false)

#define EXPECT_WARN(files, rule)                                                                   \
  do {                                                                                             \
    const Report report = check(files);                                                            \
    INFO(list(report));                                                                            \
    CHECK(report.accepted());                                                                      \
    CHECK(report.has(rule, Severity::warning));                                                    \
  } while (false)

} // namespace

TEST_CASE("check_weight_set accepts a good sharded repository", "[validate][index]") {
  const auto set = check_weight_set(MemoryFiles("repo", repository()));
  INFO(list(set.report));
  REQUIRE(set.accepted());
  CHECK(set.report.warnings() == 0);
  CHECK(set.value->selection.files == std::vector<std::string>{k_first, k_second});
  CHECK(set.value->headers.size() == 2);
  REQUIRE(set.value->index);
  CHECK(set.value->index->files[set.value->index->find("d")->file] == k_second);
  CHECK(set.value->index->total_size == 500);
}

TEST_CASE("check_shard_index refuses an index without a map", "[validate][index][IX-02][IX-T01]") {
  Files files = repository();
  files[k_index] = "{}";
  EXPECT_REJECT(files, "IX-02");
  files[k_index] = R"({"weight_map":{}})";
  EXPECT_REJECT(files, "IX-02");
  files[k_index] = R"({"weight_map":[]})";
  EXPECT_REJECT(files, "IX-02");
}

TEST_CASE("check_shard_index refuses every name that leads elsewhere",
          "[validate][index][IX-04][IX-T02][IX-T03][IX-T04][IX-T05]") {
  for (const char* name :
       {"../x.safetensors", "/etc/passwd", "..\\\\x.safetensors", "sub/x.safetensors",
        "C:x.safetensors", "\\\\\\\\host\\\\x.safetensors", ".", "..", "", "-x.safetensors",
        ".x.safetensors", "x.safetensors.", "x.safetensors ", "nul.safetensors", "COM1.safetensors",
        "a\\u0000b.safetensors", "a\\nb.safetensors"}) {
    Files files = with_index("\"d\":\"model-00002-of-00002.safetensors\"",
                             "\"d\":\"" + std::string(name) + "\"");
    files["sub/x.safetensors"] = files[k_second];
    INFO(name);
    EXPECT_REJECT(files, "IX-04");
    CHECK_FALSE(select_weight_files(MemoryFiles("repo", files)));
  }
}

TEST_CASE("check_shard_index refuses a file that is no string",
          "[validate][index][IX-03][IX-T06]") {
  EXPECT_REJECT(with_index("\"d\":\"model-00002-of-00002.safetensors\"", "\"d\":7"), "IX-03");
}

TEST_CASE("check_weight_set refuses a set without one of its shards",
          "[validate][index][IX-06][IX-T07]") {
  Files files = repository();
  files.erase(k_second);
  EXPECT_REJECT(files, "IX-06");
  files["MODEL-00002-of-00002.safetensors"] = "";
  CHECK(check(files).has("IX-15", Severity::warning));
}

TEST_CASE("check_weight_set refuses an index that names the wrong shard",
          "[validate][index][IX-07][IX-T08]") {
  EXPECT_REJECT(with_index("\"d\":\"model-00002", "\"d\":\"model-00001"), "IX-07");
}

TEST_CASE("check_weight_set warns of a tensor that the index leaves out",
          "[validate][index][IX-08][IX-T09]") {
  EXPECT_WARN(with_index(",\"d\":\"model-00002-of-00002.safetensors\"", ""), "IX-08");
}

TEST_CASE("check_weight_set refuses a tensor that stands in two shards",
          "[validate][index][D05][IX-09][IX-T10]") {
  Files files = repository();
  replace(files[k_second], "\"c\"", "\"b\"");
  EXPECT_REJECT(files, "IX-09");
  files.erase(k_index); // and without an index too
  EXPECT_REJECT(files, "IX-09");
}

TEST_CASE("check_weight_set compares total_size with the tensors",
          "[validate][index][IX-10][IX-T11]") {
  EXPECT_WARN(with_index("500", "501"), "IX-10");
  EXPECT_WARN(with_index("500", "\"500\""), "IX-10");
  EXPECT_WARN(with_index("500", "-500"), "IX-10");
  const Report report = check(with_index("500", "5.0e2"));
  CHECK(report.accepted());
  CHECK(report.warnings() == 0);
}

TEST_CASE("check_shard_index refuses pickled shards", "[validate][index][IX-05][IX-T12]") {
  EXPECT_REJECT(with_index("\"d\":\"model-00002-of-00002.safetensors\"", "\"d\":\"x.bin\""),
                "IX-05");
}

TEST_CASE("check_weight_set warns of a single file beside an index",
          "[validate][index][IX-11][IX-T13]") {
  Files files = repository();
  files["model.safetensors"] = files[k_first];
  EXPECT_WARN(files, "IX-11");
}

TEST_CASE("check_shard_index refuses broken JSON and duplicates",
          "[validate][index][IX-01][IX-T14]") {
  EXPECT_REJECT(with_index("\"b\":", "\"a\":"), "IX-01");
  EXPECT_REJECT(with_index("}}", "},}"), "IX-01");
  EXPECT_REJECT(with_index("{\"metadata\"", "\xEF\xBB\xBF{\"metadata\""), "IX-01");
  EXPECT_REJECT(with_index("\"a\"", "\"\xFF\""), "IX-01");
}

TEST_CASE("check_weight_set warns of stray and misnumbered shards",
          "[validate][index][IX-12][IX-13][IX-T15]") {
  Files files = repository();
  files["model-00003-of-00003.safetensors"] = files[k_first];
  EXPECT_WARN(files, "IX-12");
  EXPECT_WARN(files, "IX-13");
}

TEST_CASE("check_weight_set refuses a set with a malformed shard", "[validate][index][IX-14]") {
  Files files = repository();
  files[k_second].pop_back();
  EXPECT_REJECT(files, "IX-14");
  EXPECT_REJECT(files, "ST-34a");
}

TEST_CASE("check_shard_index survives every cut and every flipped bit",
          "[validate][index][IX-01]") {
  const std::string index = repository()[k_index];
  for (std::size_t size = 0; size < index.size(); ++size)
    CHECK_FALSE(check_shard_index(bytes_of(index).first(size), "i").accepted());
  for (std::size_t bit = 0; bit < index.size() * 8; ++bit) {
    std::string flipped = index;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto checked = check_shard_index(bytes_of(flipped), "i");
    if (!checked.accepted()) continue;
    for (const auto& item : checked.value->entries)
      REQUIRE(item.file < checked.value->files.size());
    for (const std::string& file : checked.value->files)
      CHECK_FALSE(shard_name_fault(file));
  }
}

TEST_CASE("select_weight_files takes exactly the files of the index (A14)",
          "[validate][index][A14]") {
  const std::string weights = st(object({entry("a", "U8", "[1]", "0", "1")}), zeros(1));
  const std::string more = st(object({entry("b", "U8", "[1]", "0", "1")}), zeros(1));
  Files files{{"a.safetensors", weights},
              {"extra-1.safetensors", more},
              {"consolidated.safetensors", weights},
              {"model.safetensors", weights},
              {k_index, R"({"weight_map":{"a":"a.safetensors","b":"extra-1.safetensors"}})"}};
  const auto chosen = select_weight_files(MemoryFiles("repo", files));
  REQUIRE(chosen);
  CHECK(chosen->files == std::vector<std::string>{"a.safetensors", "extra-1.safetensors"});
  CHECK(chosen->unlisted ==
        std::vector<std::string>{"consolidated.safetensors", "model.safetensors"});
  EXPECT_WARN(files, "IX-13");

  files.erase(k_index);
  const auto refused = select_weight_files(MemoryFiles("repo", files));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::conflict);
}

TEST_CASE("select_weight_files knows the usual folders without an index (A14)",
          "[validate][index][A14]") {
  const std::string w = st("{}", "");
  const auto chosen = [&](std::initializer_list<const char*> names,
                          WeightLayout layout = WeightLayout::hugging_face) {
    Files files;
    for (const char* name : names)
      files[name] = w;
    const auto result = select_weight_files(MemoryFiles("repo", files), layout);
    return result ? result->files : std::vector<std::string>{};
  };
  using Names = std::vector<std::string>;
  CHECK(chosen({"model.safetensors"}) == Names{"model.safetensors"});
  CHECK(chosen({"consolidated.safetensors"}) == Names{"consolidated.safetensors"});
  CHECK(chosen({"model.safetensors", "consolidated.safetensors"}) == Names{"model.safetensors"});
  CHECK(chosen({"model.safetensors", "consolidated.safetensors"}, WeightLayout::mistral) ==
        Names{"consolidated.safetensors"});
  CHECK(chosen({"model.safetensors", "adapter_model.safetensors"}) == Names{"model.safetensors"});
  CHECK(chosen({k_first, k_second}) == Names{k_first, k_second});
  CHECK(chosen({k_second}) == Names{k_second}); // IX-12 warns
  CHECK(chosen({"a.safetensors", "b.safetensors"}).empty());
  CHECK(chosen({"model.safetensors", "model.fp16.safetensors"}).empty());
}

TEST_CASE("select_weight_files refuses pickles by name and says what else to do (PK-01)",
          "[validate][index][PK-01]") {
  const auto refused =
      select_weight_files(MemoryFiles("repo", Files{{"pytorch_model.bin", "PK\x03\x04"}}));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::unsupported);
  CHECK_FALSE(refused.error().hint.empty());
  const auto none = select_weight_files(MemoryFiles("repo", Files{{"config.json", "{}"}}));
  REQUIRE_FALSE(none);
  CHECK(none.error().code == Errc::not_found);
}
