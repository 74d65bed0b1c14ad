// SPDX-License-Identifier: Apache-2.0
#include "validate/safetensors.hpp"

#include "builders.hpp"
#include "validate/check.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::validate;

namespace {

std::string sample() {
  return st("{\"__metadata__\":{\"format\":\"pt\"}," +
                entry("w.\\u00e9", "BF16", "[2,3]", "8", "20") + "," +
                entry("b", "F32", "[2]", "0", "8") + "}",
            zeros(20));
}

/// Whatever is accepted must keep its promises.
void check_invariants(std::string_view file, const Checked<SafetensorsHeader>& checked) {
  if (!checked.accepted()) {
    CHECK(checked.report.first_error().has_value());
    return;
  }
  const SafetensorsHeader& header = *checked.value;
  std::uint64_t total = 0;
  for (const SafetensorsTensor& tensor : header.tensors) {
    REQUIRE(header.data_start + tensor.end <= file.size());
    total += tensor.bytes();
    CHECK(header.find(tensor.name) == &tensor);
  }
  CHECK(header.data_start + total == file.size());
}

} // namespace

TEST_CASE("read_safetensors gives names, shapes, types and ranges", "[validate][safetensors]") {
  const std::string file = sample();
  const auto header = read_safetensors(bytes_of(file), "m.safetensors");
  REQUIRE(header);
  REQUIRE(header->tensors.size() == 2);
  const SafetensorsTensor* w = header->find("w.\u00e9");
  REQUIRE(w != nullptr);
  CHECK(w->dtype == SafetensorsDtype::bf16);
  CHECK(w->shape == std::vector<std::uint64_t>{2, 3});
  CHECK(w->elements() == 6);
  CHECK(w->bytes() == 12);
  CHECK(header->find("b")->begin == 0);
  CHECK(header->find("c") == nullptr);
  REQUIRE(header->metadata_value("format") != nullptr);
  CHECK(*header->metadata_value("format") == "pt");
  CHECK(header->data(bytes_of(file), *w).size() == 12);
}

TEST_CASE("read_safetensors names rule, path and offset in its error", "[validate][safetensors]") {
  std::string file = sample();
  file.pop_back();
  const auto header = read_safetensors(bytes_of(file), "m.safetensors");
  REQUIRE_FALSE(header);
  CHECK(header.error().code == Errc::malformed);
  const std::vector<std::pair<std::string, std::string>> expected{
      {"rule", "ST-34a"}, {"path", "m.safetensors"}, {"offset", std::to_string(file.size())}};
  CHECK(header.error().details == expected);
  CHECK(header.error().message.find("20 bytes") != std::string::npos);
}

TEST_CASE("check_safetensors needs no data, only the header and the size of the file",
          "[validate][safetensors]") {
  const std::string file = sample();
  const auto header_bytes = file.substr(0, file.size() - 20);
  const auto length = safetensors_header_length(bytes_of(file).first<8>());
  REQUIRE(length);
  CHECK(8 + *length == header_bytes.size());
  CHECK(check_safetensors(bytes_of(header_bytes), file.size(), "m").accepted());
  CHECK_FALSE(check_safetensors(bytes_of(header_bytes), file.size() + 1, "m").accepted());
}

TEST_CASE("check_safetensors points at the byte in question", "[validate][safetensors]") {
  const std::string file = st(
      object({entry("a", "F32", "[2]", "0", "8"), entry("a", "F32", "[2]", "0", "8")}), zeros(8));
  const auto checked = check_safetensors(bytes_of(file), file.size(), "m");
  const auto& finding = checked.report.findings().front();
  CHECK(finding.rule == "ST-10");
  REQUIRE(finding.offset);
  CHECK(file.substr(*finding.offset, 4) == "\"a\":");
  CHECK(*finding.offset > 12);
}

TEST_CASE("check_safetensors refuses every file that was cut short (D01)",
          "[validate][safetensors][D01]") {
  const std::string file = sample();
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::string cut = file.substr(0, size);
    const Report report = check_safetensors_file(bytes_of(cut), "m.safetensors");
    INFO(size);
    CHECK_FALSE(report.accepted());
    CHECK_FALSE(check_safetensors(bytes_of(cut), cut.size(), "m").accepted());
  }
}

TEST_CASE("check_safetensors keeps its promises whatever bit is flipped",
          "[validate][safetensors][D11]") {
  const std::string file = sample();
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto strict = check_safetensors(bytes_of(flipped), flipped.size(), "m");
    check_invariants(flipped, strict);
    const auto compat = check_safetensors(bytes_of(flipped), flipped.size(), "m", Profile::compat);
    check_invariants(flipped, compat);
    if (strict.accepted()) CHECK(compat.accepted());
  }
}

TEST_CASE("check_safetensors keeps control characters of names out of its messages",
          "[validate][safetensors][escape]") {
  const std::string file =
      st(object({entry("\\u001b[31m\\u202e", "F99", "[2]", "0", "8")}), zeros(8));
  const auto checked = check_safetensors(bytes_of(file), file.size(), "m");
  bool escaped = false;
  for (const Finding& finding : checked.report.findings()) {
    escaped |= finding.message.find("\\u{001B}[31m\\u{202E}") != std::string::npos;
    CHECK(finding.message.find('\x1b') == std::string::npos);
    CHECK(finding.message.find("\u202e") == std::string::npos);
  }
  CHECK(escaped);
}

TEST_CASE("check_safetensors notes what is lawful and unusual (ST-36, ST-37, ST-38)",
          "[validate][safetensors][ST-36][ST-37][ST-38]") {
  const std::string file =
      st(object({"\"__metadata__\":{\"format\":\"odd\"}", entry("none", "F32", "[0,4]", "0", "0"),
                 entry("scalar", "U8", "[]", "0", "1")}),
         zeros(1));
  const auto checked = check_safetensors(bytes_of(file), file.size(), "m");
  INFO(list(checked.report));
  CHECK(checked.accepted());
  CHECK(checked.report.has("ST-36", Severity::info));
  CHECK(checked.report.has("ST-38", Severity::info));
  CHECK(checked.value->find("scalar")->elements() == 1);
}
