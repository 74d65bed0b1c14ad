// SPDX-License-Identifier: Apache-2.0
// The rows of validation.md 6.3.
#include "validate/check.hpp"

#include "gguf_builder.hpp"
#include "schema/tensor_type.hpp"
#include "validate/gguf.hpp"

#include <catch2/catch.hpp>

#include <limits>
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

void expect(const Row& row, const std::string& expected, Profile profile) {
  const Report report = check_gguf_file(bytes_of(row.file), "m.gguf", profile);
  INFO(row.id << (profile == Profile::strict ? " strict" : " compat") << "\n" << list(report));
  const std::string verdict = !report.accepted()      ? "REJECT"
                              : report.warnings() > 0 ? "WARN"
                                                      : "ACCEPT";
  const std::string wanted = expected.substr(0, expected.find(' '));
  const std::string rule =
      expected.size() > wanted.size() ? expected.substr(wanted.size() + 1) : "";
  CHECK(verdict == wanted);
  if (!rule.empty())
    CHECK(report.has(rule, wanted == "REJECT" ? Severity::error : Severity::warning));
}

void expect_all(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    expect(row, row.verdict, Profile::strict);
    expect(row, row.compat.empty() ? row.verdict : row.compat, Profile::compat);
  }
}

const GgufWriter w;

/// GOOD with one more key.
std::string with_kv(const std::string& kv) {
  Gguf file = good();
  file.kvs.push_back(kv);
  return file.str();
}

/// GG(A; ti; data)
std::string with_ti(const std::vector<std::string>& tis, std::size_t data = 32) {
  Gguf file = good();
  file.tis = tis;
  file.data = zeros(data);
  return file.str();
}

} // namespace

TEST_CASE("check_gguf_file gives the verdicts of GG-T01 to GG-T13 (header and counts)",
          "[validate][gguf][D04][D12][GG-T01][GG-T02][GG-T03][GG-T04][GG-T05][GG-T06][GG-T07]"
          "[GG-T08][GG-T09][GG-T10][GG-T11][GG-T12][GG-T13]") {
  const auto version = [](std::uint32_t v) {
    Gguf file = good();
    file.ver = v;
    return file.str();
  };
  const auto counts = [](std::optional<std::uint64_t> nt, std::optional<std::uint64_t> nk) {
    Gguf file;
    file.nt = nt;
    file.nk = nk;
    return file.str();
  };
  const auto key_length = [](std::uint64_t n) {
    return with_kv(w.u64(n) + "k" + w.i32(4) + w.u32(1));
  };
  GgufWriter old;
  old.short_lengths = true;
  Gguf v1 = good(old);
  v1.ver = 1;
  v1.kvs = {old.kv("general.architecture\0"s, 8, old.str("llama\0"s))};
  v1.tis = {old.ti("a\0"s, {8}, 0, 0)};
  GgufWriter swapped;
  swapped.big_endian = true;
  expect_all({
      {"GG-T01", good().str(), "ACCEPT", ""},
      {"GG-T02", Gguf{}.str(), "ACCEPT", ""},
      {"GG-T03", "GGUF", "REJECT GG-02", ""},
      {"GG-T04", good().str().substr(0, 16), "REJECT GG-02", ""},
      {"GG-T05", "FUGG" + good().str().substr(4), "REJECT GG-01", ""},
      {"GG-T06 0", version(0), "REJECT GG-03", ""},
      {"GG-T06 4", version(4), "REJECT GG-03", ""},
      {"GG-T06 0x10003", version(0x10003), "REJECT GG-03", ""},
      {"GG-T07", v1.str(), "WARN GG-03", ""},
      {"GG-T08", version(2), "ACCEPT", ""},
      {"GG-T09", good(swapped).str(), "ACCEPT", ""},
      {"GG-T10 tensors", counts(~std::uint64_t{0}, {}), "REJECT GG-05", ""},
      {"GG-T10 keys", counts({}, ~std::uint64_t{0}), "REJECT GG-05", ""},
      {"GG-T11", counts({}, 500'000'000), "REJECT GG-05", ""},
      {"GG-T12", counts(std::uint64_t{1} << 55, {}), "REJECT GG-05", ""},
      {"GG-T13 all", key_length(~std::uint64_t{0}), "REJECT GG-15", ""},
      {"GG-T13 2^30+1", key_length((1U << 30) + 1), "REJECT GG-15", ""},
      {"GG-T13 past the end", key_length(1000), "REJECT GG-15", ""},
      {"D04 key length", key_length((std::uint64_t{1} << 48) - 1), "REJECT GG-15", ""},
  });
  CHECK(check_gguf_file(bytes_of(good(swapped).str()), "m").has("GG-04", Severity::info));
}

TEST_CASE(
    "check_gguf_file gives the verdicts of GG-T14 to GG-T31 (keys)",
    "[validate][gguf][D03][D04][GG-T14][GG-T15][GG-T16][GG-T17][GG-T18][GG-T19][GG-T20][GG-T21]"
    "[GG-T22][GG-T23][GG-T24][GG-T25][GG-T26][GG-T27][GG-T28][GG-T29][GG-T30][GG-T31]") {
  const auto array = [](std::int64_t type, std::uint64_t count, const std::string& items) {
    return with_kv(w.kv("a.b", 9, w.arr(type, count, items)));
  };
  const auto alignment = [](std::uint64_t v) { return with_kv(w.kv_u32("general.alignment", v)); };
  std::string nested;
  for (int i = 0; i < 100'000; ++i)
    nested += w.i32(9) + w.u64(1);
  Gguf one = good();
  one.kvs.push_back(w.kv_u32("general.alignment", 1));
  one.align = 1;
  Gguf wide = good();
  wide.kvs.push_back(w.kv_u32("general.alignment", 64));
  wide.align = 64;
  wide.tis = {w.ti("a", {8}, 0, 0), w.ti("b", {8}, 0, 32)};
  wide.data = zeros(64);
  expect_all({
      {"GG-T14", with_kv(w.kv_u32("", 1)), "REJECT GG-10", ""},
      {"GG-T15", with_kv(w.arch()), "REJECT GG-13", ""},
      {"GG-T16", with_kv(w.kv_u32(std::string(66'000, 'k'), 1)), "REJECT GG-11", ""},
      {"GG-T17 Cyrillic", with_kv(w.kv_u32("\u043A\u043B\u044E\u0447", 1)), "REJECT GG-12",
       "WARN GG-12"},
      {"GG-T17 bytes", with_kv(w.kv_u32("\xFF\xFE", 1)), "REJECT GG-12", "WARN GG-12"},
      {"GG-12 NUL", with_kv(w.kv_u32("a\0b"s, 1)), "REJECT GG-12", ""},
      {"GG-12 upper case", with_kv(w.kv_u32("A.b", 1)), "WARN GG-12", ""},
      {"GG-13 cut at NUL", with_kv(w.kv_u32("general.architecture\0x"s, 1)), "REJECT GG-13", ""},
      {"GG-T18 13", with_kv(w.kv("a.b", 13, w.u32(1))), "REJECT GG-14", ""},
      {"GG-T18 -1", with_kv(w.kv("a.b", -1, w.u32(1))), "REJECT GG-14", ""},
      {"GG-T19", array(9, 1, w.arr(4, 1, w.u32(7))), "REJECT GG-17", ""},
      {"GG-T20", with_kv(w.kv("a.b", 9, nested)), "REJECT GG-17", ""},
      {"GG-T21 2^63", array(0, std::uint64_t{1} << 63, ""), "REJECT GG-17", ""},
      {"GG-T21 2^30+1", array(0, (1U << 30) + 1, ""), "REJECT GG-17", ""},
      {"GG-T22", array(10, std::uint64_t{1} << 61, zeros(16)), "REJECT GG-17", ""},
      {"GG-T23", array(8, 1'000'000'000, zeros(64)), "REJECT GG-17", ""},
      {"GG-T24 scalar", with_kv(w.kv("a.b", 7, "\x02")), "REJECT GG-18", "WARN GG-18"},
      {"GG-T24 array", array(7, 3, "\x00\xFF\x01"s), "REJECT GG-18", "WARN GG-18"},
      {"GG-T25", with_kv(w.kv_str("general.name", "\xC3\x28")), "WARN GG-16", ""},
      {"GG-16 NUL", with_kv(w.kv_str("general.name", "a\0b"s)), "WARN GG-16", ""},
      {"GG-T26", alignment(0), "REJECT GG-20", ""},
      {"GG-T27 13", alignment(13), "REJECT GG-20", ""},
      {"GG-T27 24", alignment(24), "REJECT GG-20", ""},
      {"GG-T28 i32", with_kv(w.kv("general.alignment", 5, w.i32(32))), "REJECT GG-20", ""},
      {"GG-T28 u64", with_kv(w.kv("general.alignment", 10, w.u64(32))), "REJECT GG-20", ""},
      {"GG-T28 array", with_kv(w.kv("general.alignment", 9, w.arr(4, 1, w.u32(32)))),
       "REJECT GG-20", ""},
      {"GG-T29", one.str(), "WARN GG-20", ""},
      {"GG-T30", alignment(std::uint64_t{1} << 31), "REJECT GG-20", ""},
      {"GG-T31", wide.str(), "REJECT GG-40", ""},
  });
}

TEST_CASE("check_gguf_file gives the verdicts of GG-T32 to GG-T47 (tensors)",
          "[validate][gguf][D06][D08][GG-T32][GG-T33][GG-T34][GG-T35][GG-T36][GG-T37][GG-T38]"
          "[GG-T39][GG-T40][GG-T41][GG-T42][GG-T43][GG-T44][GG-T45][GG-T46]") {
  const auto named = [](const std::string& name) { return with_ti({w.ti(name, {8}, 0, 0)}); };
  const auto dims = [](const std::vector<std::uint64_t>& d, std::int64_t type = 0,
                       std::size_t data = 32) { return with_ti({w.ti("a", d, type, 0)}, data); };
  const std::uint64_t big = std::uint64_t{1} << 62;
  const std::uint64_t half = (std::uint64_t{1} << 63) - 64;
  std::vector<Row> rows{
      {"GG-T32 64", named(std::string(64, 'n')), "REJECT GG-30", ""},
      {"GG-T32 63", named(std::string(63, 'n')), "ACCEPT", ""},
      {"D06 80", named(std::string(80, 'n')), "REJECT GG-30", ""},
      {"D06 across the limit", named(std::string(62, 'n') + "\u00e9"), "REJECT GG-30", ""},
      {"GG-30 control", named("a\x1b[0m"), "REJECT GG-30", ""},
      {"GG-30 NUL", named("a\0"s), "REJECT GG-30", ""},
      {"GG-30 bytes", named("a\xFF"), "REJECT GG-30", ""},
      {"GG-T33", named(""), "WARN GG-30", ""},
      {"GG-T34 D05", with_ti({w.ti("a", {8}, 0, 0), w.ti("a", {8}, 0, 32)}, 64), "REJECT GG-31",
       ""},
      {"GG-T35 5", dims({1, 1, 1, 1, 1}), "REJECT GG-32", ""},
      {"GG-T35 2^32-1", with_ti({w.str("a") + w.u32(0xFFFFFFFF) + w.i32(0) + w.u64(0)}),
       "REJECT GG-32", ""},
      {"GG-T36 F32", dims({}), "WARN GG-32", ""},
      {"GG-T36 Q4_0", dims({}, 2), "REJECT GG-37", ""},
      {"GG-T37", dims({~std::uint64_t{0}}), "REJECT GG-33", ""},
      {"GG-T38", dims({4, 0}, 0, 0), "WARN GG-34", ""},
      {"GG-T39", dims({std::uint64_t{1} << 32, std::uint64_t{1} << 32}), "REJECT GG-35", ""},
      {"GG-T40", dims({(std::uint64_t{1} << 63) - 1, 2}, 24), "REJECT GG-35", ""},
      {"GG-35 hidden by a zero", dims({0, big, 4}), "REJECT GG-35", ""},
      {"GG-T41", with_ti({w.ti("a", {big - 1}, 0, 0), w.ti("b", {8}, 0, 0)}), "REJECT GG-38", ""},
      {"GG-T42", with_ti({w.ti("a", {half}, 24, 0), w.ti("b", {half}, 24, half)}), "REJECT GG-42",
       ""},
      {"GG-T43", dims({std::uint64_t{1} << 31, std::uint64_t{1} << 31}, 27), "REJECT GG-38", ""},
      {"GG-T46 Q4_0", dims({33, 32}, 2, 1024), "REJECT GG-37", ""},
      {"GG-T46 Q6_K", dims({8, 64}, 14, 1024), "REJECT GG-37", ""},
  };
  for (const std::int64_t type : {4, 5, 31, 33, 36, 38, 43, 156, -1, 0x7FFFFFFF, 200})
    rows.push_back({"GG-T44/45 " + std::to_string(type), dims({8}, type), "REJECT GG-36", ""});
  expect_all(rows);
}

TEST_CASE("check_gguf knows the size of every block type", "[validate][gguf][GG-36][GG-T47]") {
  std::size_t types = 0;
  for (const TensorTypeInfo& type : all_tensor_types()) {
    const std::size_t size = std::size_t{256} / type.block * type.bytes;
    Gguf file = good();
    file.kvs.push_back(w.kv_u32("general.quantization_version", 2));
    file.tis = {w.ti("a", {256}, static_cast<std::int64_t>(type.type), 0)};
    file.data = zeros((size + 31) / 32 * 32);
    const std::string text = file.str();
    const auto checked = check_gguf(bytes_of(text), text.size(), "m.gguf");
    INFO(type.name << "\n" << list(checked.report));
    REQUIRE(checked.accepted());
    CHECK(checked.value->tensors[0].bytes == size);
    const bool intermediate = type.type == TensorType::q8_1 || type.type == TensorType::q8_k;
    CHECK(checked.report.has("GG-39", Severity::warning) == intermediate);
    CHECK((checked.report.warnings() > 0) == intermediate);
    ++types;
  }
  CHECK(types == 35);
}

TEST_CASE("check_gguf_file gives the verdicts of GG-T48 to GG-T60 (data)",
          "[validate][gguf][D01][D02][GG-T48][GG-T49][GG-T50][GG-T51][GG-T52][GG-T53][GG-T54]"
          "[GG-T55][GG-T56][GG-T57][GG-T58][GG-T59][GG-T60]") {
  const auto second = [](std::uint64_t offset) {
    return with_ti({w.ti("a", {8}, 0, 0), w.ti("b", {8}, 0, offset)}, 128);
  };
  Gguf dirty = good();
  dirty.pad = 'A';
  Gguf lost = good();
  lost.nk = 0;
  Gguf keys;
  keys.kvs = {w.arch(), w.kv_str("a.b", "xyz")};
  std::string short_pad = with_ti({w.ti("a", {3}, 0, 0)}, 12);
  const std::string plain = good().str();
  const std::string zip_end = "PK\x05\x06"s + zeros(18);
  expect_all({
      {"GG-T48 gap", second(64), "REJECT GG-40", ""},
      {"GG-T48 overlap", second(0), "REJECT GG-40", ""},
      {"GG-T48 swapped", with_ti({w.ti("a", {8}, 0, 32), w.ti("b", {8}, 0, 0)}, 64), "REJECT GG-40",
       ""},
      {"GG-T48 first", with_ti({w.ti("a", {8}, 0, 32)}, 64), "REJECT GG-40", ""},
      {"GG-T48 unaligned", second(4), "REJECT GG-40", ""},
      {"GG-T48 all", second(~std::uint64_t{0}), "REJECT GG-40", ""},
      {"D02 2^63", second(std::uint64_t{1} << 63), "REJECT GG-42", ""},
      {"GG-T49", plain.substr(0, plain.size() - 1), "REJECT GG-42", ""},
      {"GG-T50", short_pad, "WARN GG-43", ""},
      {"GG-T51", plain.substr(0, plain.size() - 32 - 1), "REJECT GG-41", ""},
      {"GG-T52", plain + "X", "REJECT GG-44", "WARN GG-44"},
      {"GG-T53", plain + zip_end, "REJECT GG-44", "WARN GG-44"},
      {"GG-T54", plain + plain, "REJECT GG-46", ""},
      {"GG-T55", dirty.str(), "WARN GG-45", ""},
      {"GG-T56", lost.str(), "REJECT", ""},
      {"GG-T57", keys.str(), "ACCEPT", ""},
      {"GG-T58", with_ti({w.ti("a", {32}, 9, 0)}, 64), "WARN GG-39", ""},
      {"GG-T59",
       with_kv(w.kv_f32("llama.attention.layer_norm_rms_epsilon",
                        std::numeric_limits<float>::quiet_NaN())),
       "REJECT GG-19", ""},
      {"GG-T60", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
       "REJECT GN-04", ""},
  });
  const Report zip = check_gguf_file(bytes_of(plain + zip_end), "m");
  CHECK(zip.findings().front().message.find("zip") != std::string::npos);
}

TEST_CASE("check_gguf_file warns of keys and architectures that runtimes refuse",
          "[validate][gguf][GG-21][GG-22][GG-23][GX-T09][GX-T17]") {
  Gguf none = good();
  none.kvs.clear();
  Gguf number = good();
  number.kvs = {w.kv_u32("general.architecture", 1)};
  Gguf other = good();
  other.kvs = {w.arch("zzz")};
  Gguf wide = good();
  wide.kvs.push_back(w.kv("llama.block_count", 10, w.u64(1)));
  Gguf quantized = good();
  quantized.tis = {w.ti("a", {32}, 2, 0)};
  expect_all({
      {"GX-T17 missing", none.str(), "REJECT GG-21", ""},
      {"GX-T17 u32", number.str(), "REJECT GG-21", ""},
      {"GX-T17 zzz", other.str(), "WARN GG-21", ""},
      {"GX-T09", wide.str(), "WARN GG-23", ""},
      {"GG-22", quantized.str(), "WARN GG-22", ""},
  });
}
