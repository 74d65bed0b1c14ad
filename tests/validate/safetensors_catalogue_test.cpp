// SPDX-License-Identifier: Apache-2.0
// The rows of validation.md 6.1.
#include "validate/check.hpp"

#include "builders.hpp"
#include "validate/safetensors.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::validate;
using namespace std::string_literals;

namespace {

struct Row {
  std::string id;
  std::string file;
  std::string verdict; ///< strict: "ACCEPT", "WARN rule", "REJECT rule"
  std::string compat;  ///< where it differs
};

/// Short headers rarely end on a multiple of four; ST-35 has a row of its own.
std::string verdict_of(const Report& report) {
  if (!report.accepted()) return "REJECT";
  return std::any_of(report.findings().begin(), report.findings().end(),
                     [](const Finding& finding) {
                       return finding.severity == Severity::warning && finding.rule != "ST-35";
                     })
             ? "WARN"
             : "ACCEPT";
}

void expect(const Row& row, const std::string& expected, Profile profile) {
  const Report report = check_safetensors_file(bytes_of(row.file), "model.safetensors", profile);
  INFO(row.id << (profile == Profile::strict ? " strict" : " compat") << "\n" << list(report));
  const std::string verdict = expected.substr(0, expected.find(' '));
  const std::string rule =
      expected.size() > verdict.size() ? expected.substr(verdict.size() + 1) : "";
  CHECK(verdict_of(report) == verdict);
  if (!rule.empty())
    CHECK(report.has(rule, verdict == "REJECT" ? Severity::error : Severity::warning));
}

void expect_all(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    expect(row, row.verdict, Profile::strict);
    expect(row, row.compat.empty() ? row.verdict : row.compat, Profile::compat);
  }
}

/// One F32 tensor of two elements.
std::string valid() {
  return st(object({entry("a", "F32", "[2]", "0", "8")}), zeros(8));
}

} // namespace

TEST_CASE("check_safetensors_file gives the verdicts of ST-T01 to ST-T17 (framing)",
          "[validate][safetensors][ST-T01][ST-T02][ST-T03][ST-T04][ST-T05][ST-T06][ST-T08][ST-T09]"
          "[ST-T10][ST-T11][ST-T12][ST-T13][ST-T14][ST-T15][ST-T16][ST-T17]") {
  const auto replace_length = [](std::uint64_t n) { return valid().replace(0, 8, le(n)); };
  expect_all({
      {"ST-T01", "", "REJECT GN-02", ""},
      {"ST-T02", zeros(7), "REJECT ST-01", ""},
      {"ST-T03", le(std::uint64_t{60}), "REJECT ST-02", ""},
      {"ST-T04", replace_length(1000), "REJECT ST-02", ""},
      {"ST-T05", le(~std::uint64_t{0}) + "{}", "REJECT ST-03", ""},
      {"ST-T08", le(std::uint64_t{0}), "REJECT ST-07", ""},
      {"ST-T09", st("{", ""), "REJECT ST-07", ""},
      {"ST-T10", st("\xFF", ""), "REJECT ST-04", ""},
      {"ST-T11", st("[]", ""), "REJECT ST-07", ""},
      {"ST-T12", st("{}      ", ""), "ACCEPT", ""},
      {"ST-T13", st("{}\r \t\n", ""), "WARN ST-06", ""},
      {"ST-T14", st("\t\n{}\r ", ""), "REJECT ST-05", "WARN ST-05"},
      {"ST-T15", st("{}" + zeros(6), ""), "REJECT ST-07", ""},
      {"ST-T16", st("{} x", ""), "REJECT ST-07", ""},
      {"ST-T17", st("\xEF\xBB\xBF{}", ""), "REJECT ST-04", ""},
  });
}

TEST_CASE("check_safetensors takes a header of exactly 100,000,000 bytes and not one more",
          "[validate][safetensors][ST-03][ST-T06][ST-T07]") {
  std::string file = le(std::uint64_t{100'000'000}) + "{}" + std::string(100'000'000 - 2, ' ');
  CHECK(check_safetensors_file(bytes_of(file), "model.safetensors").accepted());
  file.replace(0, 8, le(std::uint64_t{100'000'001}));
  file += ' ';
  CHECK(check_safetensors_file(bytes_of(file), "model.safetensors").has("ST-03"));
}

TEST_CASE("check_safetensors_file gives the verdicts of ST-T18 to ST-T30 (members)",
          "[validate][safetensors][D10][ST-T18][ST-T19][ST-T20][ST-T21][ST-T22][ST-T23][ST-T24]"
          "[ST-T25][ST-T26][ST-T27][ST-T28][ST-T29][ST-T30]") {
  const auto one = [](const std::string& member) { return st("{" + member + "}", zeros(8)); };
  expect_all({
      {"ST-T18",
       st(object({entry("a", "F32", "[2]", "0", "8"), entry("a", "I32", "[2]", "0", "8")}),
          zeros(8)),
       "REJECT ST-10", ""},
      {"ST-T18 escaped",
       st(object({entry("a", "F32", "[2]", "0", "8"), entry("\\u0061", "I32", "[2]", "0", "8")}),
          zeros(8)),
       "REJECT ST-10", ""},
      {"ST-T19",
       st(object({entry("a", "F32", "[2]", "0", "8"), entry("a", "F32", "[2]", "8", "16")}),
          zeros(16)),
       "REJECT ST-10", ""},
      {"ST-T20", one(R"("a":{"dtype":"F32","dtype":"I8","shape":[2],"data_offsets":[0,8]})"),
       "REJECT ST-10", ""},
      {"ST-T21",
       one(R"("__metadata__":{},"__metadata__":{},)" + entry("a", "F32", "[2]", "0", "8")),
       "REJECT ST-10", ""},
      {"ST-10 metadata",
       one(R"("__metadata__":{"k":"1","k":"2"},)" + entry("a", "F32", "[2]", "0", "8")),
       "REJECT ST-10", ""},
      {"ST-T22", one(R"("__metadata__":{"k":1},)" + entry("a", "F32", "[2]", "0", "8")),
       "REJECT ST-12", ""},
      {"ST-T23", one(R"("__metadata__":{"k":{"x":"y"}},)" + entry("a", "F32", "[2]", "0", "8")),
       "REJECT ST-12", ""},
      {"ST-T24", one(R"("__metadata__":null,)" + entry("a", "F32", "[2]", "0", "8")),
       "REJECT ST-11", "WARN ST-11"},
      {"ST-T25", one(entry("a", "I4", "[2]", "0", "1099511627776")), "REJECT ST-20", ""},
      {"ST-T26", one(entry("a", "f32", "[2]", "0", "8")), "REJECT ST-20", ""},
      {"ST-20 object", one(R"("a":{"dtype":{"F32":null},"shape":[2],"data_offsets":[0,8]})"),
       "REJECT ST-20", ""},
      {"ST-T27", one(R"("a":{"dtype":"F32","shape":[2]})"), "REJECT ST-15", ""},
      {"ST-14 array", one(R"("a":["F32",[2],[0,8]])"), "REJECT ST-14", ""},
      {"ST-T28 one", one(R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0]})"), "REJECT ST-30",
       ""},
      {"ST-T28 three", one(R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,16]})"),
       "REJECT ST-30", ""},
      {"ST-T29", one(entry("a", "F32", "[2]", "8", "0")), "REJECT ST-31", ""},
      {"ST-T30", one(entry("a", "F32", "[2]", "-8", "0")), "REJECT ST-22", ""},
  });
}

TEST_CASE("check_safetensors_file refuses 100,000 tensors over the same bytes",
          "[validate][safetensors][ST-33][ST-T31]") {
  std::string header = "{";
  for (int i = 0; i < 100'000; ++i) {
    if (i > 0) header += ",";
    header += entry("t" + std::to_string(i), "F32", "[200,200]", "0", "160000");
  }
  const std::string file = st(header + "}", zeros(160'000));
  const Report report = check_safetensors_file(bytes_of(file), "model.safetensors");
  CHECK(report.has("ST-33", Severity::error));
  CHECK(report.findings().size() <= Report::k_cap);
}

TEST_CASE(
    "check_safetensors_file gives the verdicts of ST-T32 to ST-T46 (ranges and shapes)",
    "[validate][safetensors][D10][D11][ST-T32][ST-T33][ST-T34][ST-T35][ST-T36][ST-T37][ST-T38]"
    "[ST-T39][ST-T40][ST-T41][ST-T42][ST-T43][ST-T44][ST-T45][ST-T46]") {
  const auto a = [](const char* dtype, const char* shape, const char* begin, const char* end,
                    std::size_t data) {
    return st(object({entry("a", dtype, shape, begin, end)}), zeros(data));
  };
  const std::string first = entry("a", "F32", "[2]", "0", "8");
  expect_all({
      {"ST-T32", st(object({first, entry("b", "F32", "[2]", "4", "12")}), zeros(12)),
       "REJECT ST-33", ""},
      {"ST-T33", st(object({first, entry("b", "F32", "[2]", "16", "24")}), zeros(24)),
       "REJECT ST-33", ""},
      {"ST-T34", a("F32", "[2]", "8", "16", 16), "REJECT ST-33", ""},
      {"ST-T35", a("F32", "[1000,1000]", "0", "4000000", 4), "REJECT ST-34a", ""},
      {"ST-T36", valid() + "extra_bogus", "REJECT ST-34b", ""},
      {"ST-T37", valid().substr(0, valid().size() - 2), "REJECT ST-34a", ""},
      {"ST-T38", a("I32", "[2,2]", "0", "4", 4), "REJECT ST-32", ""},
      {"ST-T39", a("F32", "[2,18446744073709551614]", "0", "8", 8), "REJECT ST-22", ""},
      {"ST-T40", a("I32", "[2,9223372036854775807]", "0", "8", 8), "REJECT ST-22", ""},
      {"ST-T41", a("F32", "[4294967296,4294967296]", "0", "0", 0), "REJECT ST-24", ""},
      {"ST-24 hidden by a zero", a("F32", "[0,281474976710655,281474976710655]", "0", "0", 0),
       "REJECT ST-24", ""},
      {"ST-T42", a("F32", "[2,0]", "0", "0", 0), "ACCEPT", ""},
      {"ST-T43", a("F32", "[]", "0", "4", 4), "ACCEPT", ""},
      {"ST-T44", a("F4", "[1,3]", "0", "2", 2), "REJECT ST-25", ""},
      {"ST-T45", a("F4", "[1,2]", "0", "1", 1), "ACCEPT", ""},
      {"ST-26", a("F4", "[2,3]", "0", "3", 3), "WARN ST-26", ""},
      {"ST-T46 good", a("F6_E2M3", "[4]", "0", "3", 3), "ACCEPT", ""},
      {"ST-T46 bad", a("F6_E3M2", "[3]", "0", "3", 3), "REJECT ST-25", ""},
  });
}

TEST_CASE("check_safetensors_file takes one tensor of each of the 22 dtypes",
          "[validate][safetensors][ST-20][ST-T47]") {
  REQUIRE(all_safetensors_dtypes().size() == 22);
  for (const SafetensorsDtypeInfo& row : all_safetensors_dtypes()) {
    const std::size_t size = row.bits; // of eight elements
    const std::string file =
        st(object({entry("a", row.name, "[8]", "0", std::to_string(size))}), zeros(size));
    const Report report = check_safetensors_file(bytes_of(file), "model.safetensors");
    INFO(row.name << "\n" << list(report));
    CHECK(report.accepted());
    CHECK(report.has("ST-20", Severity::info) == !row.since.empty());
  }
}

TEST_CASE("check_safetensors_file gives the verdicts of ST-T48 to ST-T59 (JSON and names)",
          "[validate][safetensors][ST-T48][ST-T49][ST-T50][ST-T51][ST-T52][ST-T53][ST-T54]"
          "[ST-T56][ST-T57][ST-T58][ST-T59]") {
  const auto shape = [](const std::string& text) {
    return st(object({entry("a", "F32", text, "0", "8")}), zeros(8));
  };
  const auto named = [](const std::string& name) {
    return st(object({entry(name, "F32", "[2]", "0", "8")}), zeros(8));
  };
  std::string ones = "[1";
  for (int i = 1; i < 10'000; ++i)
    ones += ",1";
  const std::string body = entry("a", "F32", "[2]", "0", "8");
  expect_all({
      {"ST-T48", shape("[2.0]"), "REJECT ST-22", ""},
      {"ST-22 exponent", shape("[2e0]"), "REJECT ST-22", ""},
      {"ST-22 minus zero", shape("[2,-0]"), "REJECT ST-22", ""},
      {"ST-22 leading zero", shape("[02]"), "REJECT ST-07", ""},
      {"ST-T49 string", shape("\"2\""), "REJECT ST-21", ""},
      {"ST-T49 null", shape("null"), "REJECT ST-21", ""},
      {"ST-T50", st(object({entry("a", "U8", ones + "]", "0", "1")}), zeros(1)), "REJECT ST-23",
       ""},
      {"ST-T51", st("{\"__metadata__\":" + std::string(200'000, '['), ""), "REJECT ST-08", ""},
      {"ST-T52", named("a\nb"), "REJECT ST-07", ""},
      {"ST-T53", named(""), "WARN ST-13", ""},
      {"ST-13 NUL", named("a\\u0000b"), "REJECT ST-13", "WARN ST-13"},
      {"ST-13 bidi", named("a\\u202Eb"), "WARN ST-13", ""},
      {"ST-13 long", named(std::string(4097, 'n')), "WARN ST-13", ""},
      {"ST-07 surrogate", named("a\\ud800b"), "REJECT ST-07", ""},
      {"ST-T54 comma", st("{" + body + ",}", zeros(8)), "REJECT ST-07", ""},
      {"ST-T54 comment", st("{" + body + "//c\n}", zeros(8)), "REJECT ST-07", ""},
      {"ST-T54 NaN", shape("[NaN]"), "REJECT ST-07", ""},

      {"ST-T56", st(object({entry("b", "F32", "[2]", "8", "16"), body}), zeros(16)), "ACCEPT", ""},
      {"ST-T57",
       st(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"stride":[1]}})", zeros(8)),
       "REJECT ST-16", "WARN ST-16"},
      {"ST-T58",
       "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') +
           "\nsize 4096\n",
       "REJECT GN-04", ""},
      {"ST-T59", "<!DOCTYPE html><html><body>Not found</body></html>", "REJECT GN-05", ""},
  });
}

TEST_CASE("check_safetensors_file accepts values that are not numbers, structure alone counts",
          "[validate][safetensors][ST-T60]") {
  expect_all({
      {"ST-T60 BOOL", st(object({entry("a", "BOOL", "[1]", "0", "1")}), "\x02"), "ACCEPT", ""},
      {"ST-T60 NaN", st(object({entry("a", "F32", "[1]", "0", "4")}), "\x00\x00\xC0\x7F"s),
       "ACCEPT", ""},
  });
}

TEST_CASE(
    "check_safetensors warns of tensors that do not lie on a multiple of their element's size",
    "[validate][safetensors][ST-35][ST-T55]") {
  std::string header = object({entry("a", "F64", "[1]", "0", "8")});
  while (header.size() % 8 != 0)
    header += ' ';
  CHECK(check_safetensors_file(bytes_of(st(header, zeros(8))), "m").warnings() == 0);
  header += ' ';
  const Report report = check_safetensors_file(bytes_of(st(header, zeros(8))), "m");
  CHECK(report.accepted());
  CHECK(report.has("ST-35", Severity::warning));
}
