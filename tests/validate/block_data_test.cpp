// SPDX-License-Identifier: Apache-2.0
#include "validate/block_data.hpp"

#include "validate/block_scales.hpp"

#include "gguf_builder.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::validate;
using namespace std::string_literals;

namespace {

Report scan(TensorType type, std::string_view bytes, bool big_endian = false, bool matrix = false) {
  Report report("m.gguf");
  scan_gguf_tensor({"w", bytes_of(bytes), 1000, matrix, 0}, type, big_endian, report);
  return report;
}

Report scan(SafetensorsDtype dtype, std::string_view bytes) {
  Report report("m.safetensors");
  scan_safetensors_tensor({"w", bytes_of(bytes), 1000, false, 0}, dtype, report);
  return report;
}

/// Three blocks of zeros, with text put at an offset of the middle one.
std::string blocks(TensorType type, std::size_t offset, std::string_view text) {
  const std::size_t size = info(type).bytes;
  std::string out = zeros(3 * size);
  return out.replace(size + offset, text.size(), text);
}

std::optional<std::uint64_t> first_bad(TensorType type, std::string_view bytes) {
  return first_bad_block(type, bytes_of(bytes));
}

const std::string k_inf = "\x00\x7C"s;
const std::string k_nan = "\x01\xFE"s;

} // namespace

TEST_CASE("scan_gguf_tensor finds an infinite or NaN scale wherever a type has one (BD-01)",
          "[validate][data][BD-01][BD-04][BD-T02][BD-T04][BD-T05]") {
  using T = TensorType;
  struct Field {
    T type;
    std::size_t offset;
  };
  for (const Field& field : std::vector<Field>{
           {T::q1_0, 0},   {T::q2_0, 0},  {T::q4_0, 0},    {T::q5_0, 0},  {T::q8_0, 0},
           {T::iq4_nl, 0}, {T::q4_1, 0},  {T::q4_1, 2},    {T::q5_1, 0},  {T::q5_1, 2},
           {T::q2_k, 80},  {T::q2_k, 82}, {T::q3_k, 108},  {T::q4_k, 0},  {T::q4_k, 2},
           {T::q5_k, 0},   {T::q5_k, 2},  {T::q6_k, 208},  {T::iq1_s, 0}, {T::iq2_xxs, 0},
           {T::iq2_xs, 0}, {T::iq2_s, 0}, {T::iq3_xxs, 0}, {T::iq3_s, 0}, {T::iq4_xs, 0},
           {T::tq1_0, 52}, {T::tq2_0, 64}}) {
    INFO(info(field.type).name << " at " << field.offset);
    for (const std::string& bits : {k_inf, k_nan}) {
      const Report report = scan(field.type, blocks(field.type, field.offset, bits));
      REQUIRE(report.findings().size() == 1);
      CHECK(report.has("BD-01", Severity::error));
      CHECK(report.findings()[0].offset == 1000 + info(field.type).bytes + field.offset);
      CHECK(report.findings()[0].message.find("block 1") != std::string::npos);
      CHECK(first_bad(field.type, blocks(field.type, field.offset, bits)) == 1);
    }
    const std::string largest = blocks(field.type, field.offset, "\xFF\x7B"s);
    CHECK(scan(field.type, largest).accepted());
    CHECK_FALSE(first_bad(field.type, largest));
  }
}

TEST_CASE("scan_gguf_tensor looks at scales only, quants may be anything",
          "[validate][data][BD-10]") {
  for (const TensorTypeInfo& type : all_tensor_types()) {
    if (!type.quantized) continue;
    std::string data(type.bytes * 3, '\x11');
    INFO(type.name);
    CHECK(scan(type.type, data).accepted());
  }
  std::string q6 = blocks(TensorType::q6_k, 208, k_inf);
  q6.replace(0, 208, std::string(208, '\xFF'));
  CHECK(scan(TensorType::q6_k, q6).errors() == 1);
}

TEST_CASE("scan_gguf_tensor reads the scattered scale of IQ1_M", "[validate][data][BD-01]") {
  // 0x7C00: its nibbles in the tops of the four words, lowest first.
  const std::string words = "\x00\x00\x00\x00\x00\xC0\x00\x70"s;
  CHECK(scan(TensorType::iq1_m, blocks(TensorType::iq1_m, 48, words)).has("BD-01"));
  CHECK(scan(TensorType::iq1_m, blocks(TensorType::iq1_m, 48, "\xFF\x0F\xFF\x0F\xFF\xBF\xFF\x7F"s))
            .accepted());
}

TEST_CASE("scan_gguf_tensor knows the special bytes of MXFP4 and NVFP4",
          "[validate][data][BD-01][BD-06][BD-T03][BD-T06]") {
  CHECK(
      scan(TensorType::mxfp4, blocks(TensorType::mxfp4, 0, "\xFF")).has("BD-01", Severity::error));
  CHECK(scan(TensorType::mxfp4, zeros(17)).findings().empty());
  const Report nvfp4 = scan(TensorType::nvfp4, std::string(36, '\xFF'));
  CHECK(nvfp4.accepted());
  CHECK(nvfp4.has("BD-06", Severity::warning));
  CHECK(scan(TensorType::nvfp4, blocks(TensorType::nvfp4, 3, "\x7F")).has("BD-06"));
  CHECK(scan(TensorType::nvfp4, blocks(TensorType::nvfp4, 3, "\x7E")).findings().empty());
}

TEST_CASE("scan_gguf_tensor finds values that are no numbers (BD-02)",
          "[validate][data][BD-02][BD-03][BD-T01]") {
  CHECK(scan(TensorType::f32, zeros(400) + "\x00\x00\xC0\x7F"s).has("BD-02", Severity::error));
  CHECK(scan(TensorType::f32, zeros(400) + "\xFF\xFF\x7F\x7F"s).accepted());
  CHECK(scan(TensorType::f16, zeros(600) + k_inf + zeros(600)).has("BD-02", Severity::error));
  CHECK(scan(TensorType::bf16, zeros(600) + "\x80\xFF"s).has("BD-02", Severity::error));
  CHECK(scan(TensorType::bf16, zeros(600) + "\x00\x7C"s).accepted());
  CHECK(scan(TensorType::f64, zeros(64) + "\x00\x00\x00\x00\x00\x00\xF0\x7F"s)
            .has("BD-02", Severity::error));
  const Report large =
      scan(TensorType::f64, zeros(64) + "\x00\x00\x00\x00\x00\x00\xE0\x48"s); // 1e39
  CHECK(large.accepted());
  CHECK(large.has("BD-03", Severity::warning));
  CHECK(scan(TensorType::i32, std::string(64, '\xFF')).accepted());
}

TEST_CASE("first_bad_block finds what the scan of a file finds", "[validate][data][BD-01][BD-02]") {
  using T = TensorType;
  CHECK(first_bad(T::f32, zeros(400) + "\x00\x00\xC0\x7F"s) == 100);
  CHECK_FALSE(first_bad(T::f32, zeros(400) + "\xFF\xFF\x7F\x7F"s));
  CHECK(first_bad(T::f16, zeros(600) + k_inf + zeros(600)) == 300);
  CHECK(first_bad(T::bf16, zeros(600) + "\x80\xFF"s) == 300);
  CHECK(first_bad(T::f64, zeros(64) + "\x00\x00\x00\x00\x00\x00\xF0\x7F"s) == 8);
  CHECK(first_bad(T::q8_k, blocks(T::q8_k, 0, "\x00\x00\x80\x7F"s)) == 1);
  CHECK(first_bad(T::iq1_m, blocks(T::iq1_m, 48, "\x00\x00\x00\x00\x00\xC0\x00\x70"s)) == 1);
  CHECK(first_bad(T::mxfp4, blocks(T::mxfp4, 0, "\xFF")) == 1);
  CHECK_FALSE(first_bad(T::nvfp4, std::string(36, '\xFF')));
  CHECK_FALSE(first_bad(T::i32, std::string(64, '\xFF')));
  CHECK_FALSE(first_bad(T::q8_0, ""));
}

TEST_CASE("scan_gguf_tensor swaps what is swapped in big-endian files",
          "[validate][data][BD-05][BD-T07]") {
  CHECK(scan(TensorType::f16, "\x7C\x00"s, true).has("BD-02", Severity::error));
  CHECK(scan(TensorType::f16, "\x00\x7C"s, true).accepted());
  CHECK(scan(TensorType::q4_0, blocks(TensorType::q4_0, 0, "\x7C\x00"s), true).has("BD-01"));
  CHECK(scan(TensorType::f64, "\x7F\xF0\x00\x00\x00\x00\x00\x00"s, true).has("BD-02"));
  const Report other = scan(TensorType::iq3_s, zeros(110), true);
  CHECK(other.accepted());
  CHECK(other.has("BD-05", Severity::warning));
}

TEST_CASE("scan_gguf_tensor counts all faults and lists sixteen (BD-11, D13)",
          "[validate][data][BD-11][D13]") {
  std::string data;
  for (int i = 0; i < 1000; ++i)
    data += k_nan + zeros(142);
  Report report("m.gguf");
  scan_gguf_tensor({"blk.0.ffn_up_exps.weight", bytes_of(data), 0, true, 144 * 250},
                   TensorType::q4_k, false, report);
  CHECK(report.errors() == k_max_data_findings);
  CHECK(report.findings().back().message.find("1000 faults") != std::string::npos);

  // One NaN in the last block of the last expert.
  std::string one(144 * 1000, '\x11');
  one.replace(144 * 999, 2, k_nan);
  Report single("m.gguf");
  scan_gguf_tensor({"blk.0.ffn_up_exps.weight", bytes_of(one), 0, true, 144 * 250},
                   TensorType::q4_k, false, single);
  REQUIRE(single.findings().size() == 1);
  CHECK(single.findings()[0].message.find("block 999 (expert 3)") != std::string::npos);
}

TEST_CASE("scan_gguf_tensor warns of matrices that hold nothing (BD-09)",
          "[validate][data][BD-09]") {
  CHECK(scan(TensorType::f32, zeros(64), false, true).has("BD-09", Severity::warning));
  CHECK(scan(TensorType::f32, zeros(64), false, false).findings().empty()); // a bias
  CHECK(scan(TensorType::q4_0, std::string("\x00\x00\x12"s + zeros(15)), false, true).has("BD-09"));
}

TEST_CASE("scan_gguf_tensor notes codes that no encoder writes (BD-07)",
          "[validate][data][BD-07]") {
  CHECK(scan(TensorType::tq2_0, blocks(TensorType::tq2_0, 5, "\x30")).has("BD-07", Severity::info));
  CHECK(scan(TensorType::q2_0, blocks(TensorType::q2_0, 17, "\xC0")).has("BD-07", Severity::info));
  CHECK_FALSE(scan(TensorType::tq2_0, blocks(TensorType::tq2_0, 5, "\x24")).has("BD-07"));
}

TEST_CASE("scan_safetensors_tensor warns only: the format allows every pattern",
          "[validate][data][BD-02][BD-08][ST-T60]") {
  using D = SafetensorsDtype;
  const auto warns = [](D dtype, const std::string& bytes, std::string_view rule) {
    const Report report = scan(dtype, bytes);
    return report.accepted() && report.has(rule, Severity::warning);
  };
  CHECK(warns(D::boolean, "\x02", "BD-08"));
  CHECK(warns(D::f32, "\x00\x00\xC0\x7F"s, "BD-02"));
  CHECK(warns(D::f16, k_inf, "BD-02"));
  CHECK(warns(D::bf16, "\x80\x7F"s, "BD-02"));
  CHECK(warns(D::f64, "\x00\x00\x00\x00\x00\x00\xF8\xFF"s, "BD-02"));
  CHECK(warns(D::f64, "\x00\x00\x00\x00\x00\x00\xE0\x48"s, "BD-03"));
  CHECK(warns(D::f8_e8m0, "\xFF", "BD-08"));
  CHECK(warns(D::f8_e4m3, "\x7F", "BD-08"));
  CHECK(warns(D::f8_e4m3, "\xFF", "BD-08"));
  CHECK(warns(D::f8_e5m2, "\x7C", "BD-08"));
  CHECK(warns(D::f8_e4m3fnuz, "\x80", "BD-08"));
  CHECK(warns(D::f8_e5m2fnuz, "\x80", "BD-08"));
  CHECK(scan(D::u8, "\xFF").findings().empty());
  CHECK(scan(D::boolean, "\x01").findings().empty());
}

TEST_CASE("scan_gguf_tensor stops when it is told to", "[validate][data]") {
  Progress progress;
  progress.cancel = true;
  Report report("m.gguf");
  scan_gguf_tensor({"w", bytes_of("\x00\x00\xC0\x7F"s), 0, false, 0}, TensorType::f32, false,
                   report, &progress);
  CHECK(report.findings().empty());
}
