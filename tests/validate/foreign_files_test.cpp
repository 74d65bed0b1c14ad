// SPDX-License-Identifier: Apache-2.0
// Pickles, legacy formats and what else calls itself a model: PK, LM, GN rows of validation.md 6.5.
#include "validate/sniff.hpp"

#include "repository_rows.hpp"
#include "validate/pickle.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <string>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::validate;
using namespace std::string_literals;

namespace {

const std::string k_weights =
    st("{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}   ", zeros(8));
const std::string k_call = "cos\nsystem\n(S'x'\ntR.";
const std::string k_protocol_4 = "\x80\x04\x95\x1d\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94\x8c"
                                 "\x06system\x94\x93\x94\x8c\x01x\x94"
                                 "\x85\x94R\x94."s;

} // namespace

TEST_CASE("check_repository refuses pickles under any name (PK-T01 to PK-T06)",
          "[validate][pickle][PK-T01][PK-T02][PK-T03][PK-T04][PK-T05][PK-T06]") {
  const std::string zip =
      "PK\x03\x04"s + zeros(26) + "archive/data.pkl" + zeros(40) + "PK\x05\x06"s + zeros(18);
  expect_row("PK-T01", {{"pytorch_model.bin", zip}}, "REJECT PK-01");
  const std::string legacy = "\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19\x2E"s;
  expect_row("PK-T02", {{"weights.dat", legacy + "\x80\x02M\xE9\x03."}}, "REJECT PK-01");
  expect_row("PK-T03", {{"model.pkl", k_protocol_4}}, "REJECT PK-01");
  expect_row("PK-T04", {{"model.safetensors", k_call}}, "REJECT PK-01");
  expect_row("PK-T04", {{"model.safetensors", k_call}}, "REJECT GN-03");
  const std::string seven = "\x37\x7A\xBC\xAF\x27\x1C"s + zeros(30);
  expect_row("PK-T05", {{"pytorch_model.bin", seven}}, "REJECT PK-01");
  expect_row("PK-T05", {{"pytorch_model.bin", seven}}, "REJECT GN-06");
  const Files hidden{{"model.safetensors", k_weights}, {"notes.txt", k_protocol_4}};
  expect_row("PK-T06", hidden, "REJECT PK-01");
  CHECK(check_all(hidden).has("PK-02", Severity::warning));
  CHECK(check_all({{"notes.txt", k_protocol_4}}).has("PK-02", Severity::error));
}

TEST_CASE("pickle_opcode_that_acts walks every protocol and takes no text for a pickle",
          "[validate][pickle]") {
  const auto acts = [](const std::string& text) { return pickle_opcode_that_acts(bytes_of(text)); };
  CHECK(acts(k_call) == "GLOBAL");
  CHECK(acts(k_protocol_4) == "STACK_GLOBAL");
  CHECK(acts("(lp0\nI1\na.") == std::nullopt); // a list of numbers does nothing
  CHECK(acts("(ios\nsystem\np0\n.") == "INST");
  CHECK(acts("cos\nsystem\n") == std::nullopt); // no STOP
  for (const char* text : {"", "config file\nwith lines\n.", "Some text. And more.",
                           "# A heading\n\nText.", "import os\nprint(1)\n", "N.", "{\"a\": 1}"})
    CHECK(acts(text) == std::nullopt);
  for (std::size_t cut = 0; cut < k_protocol_4.size(); ++cut)
    CHECK(acts(k_protocol_4.substr(0, cut)) == std::nullopt);
}

TEST_CASE("check_repository reports a safetensors file that is a pickle in another reading",
          "[validate][pickle][PK-01]") {
  // N = 0x2E63 reads "c." first; a length whose bytes are a whole pickle needs padding to it.
  const std::string header = "{}";
  std::string file = st(header, "");
  CHECK(check_all({{"model.safetensors", file}}).accepted());
  // "Q." is BINPERSID, STOP: N = 0x2E51 = 11857 bytes of header.
  file = st("{}" + std::string(0x2E51 - 2, ' '), "");
  const Report report = check_all({{"model.safetensors", file}});
  CHECK(report.accepted());
  CHECK(report.has("PK-01", Severity::warning));
}

TEST_CASE("check_repository names each legacy format by itself (LM-T01)",
          "[validate][legacy][LM-01][LM-T01]") {
  std::set<std::string> messages;
  for (const std::string& magic : {"lmgg"s, "fmgg" + le(1U), "tjgg" + le(3U), "algg"s, "nsgg"s}) {
    const Report report = check_all({{"ggml-model-q4_0.bin", magic + zeros(64)}});
    INFO(magic);
    CHECK(report.has("LM-01", Severity::error));
    for (const Finding& finding : report.findings())
      if (finding.rule == "LM-01") messages.insert(finding.message);
    CHECK(check_all({{"model.gguf", magic + zeros(64)}}).has("LM-01", Severity::error));
  }
  CHECK(messages.size() == 5);
}

TEST_CASE("check_repository says what a file really is (GN-02 to GN-06, GN-09)",
          "[validate][general][GN-02][GN-03][GN-04][GN-05][GN-06][GN-09]") {
  expect_row("GN-02", {{"model.gguf", ""}}, "REJECT GN-02");
  expect_row("GN-03", {{"model.gguf", k_weights}}, "REJECT GN-03");
  expect_row("GN-03", {{"model.safetensors", "GGUF" + zeros(40)}}, "REJECT GN-03");
  expect_row("GN-03", {{"config.json", "GGUF" + zeros(40)}}, "REJECT GN-03");
  expect_row("GN-03", {{"extra.json", "{\"a\":}"}}, "REJECT GN-03");
  expect_row("GN-04", {{"tokenizer.json", "version https://git-lfs.github.com/spec/v1\noid x\n"}},
             "REJECT GN-04");
  for (const char* page : {"<!doctype html>", "  <HTML>", "Entry not found",
                           "Invalid username or password.", "{\"error\":\"x\"}"})
    expect_row(page, {{"model.safetensors", page}}, "REJECT GN-05");
  for (const std::string& magic :
       {"\x1F\x8B\x08"s, "\xFD"s + "7zXZ\0"s, "\x28\xB5\x2F\xFD"s, "BZh9"s, "\x04\x22\x4D\x18"s,
        "\x37\x7A\xBC\xAF\x27\x1C"s, "PK\x03\x04"s, zeros(257) + "ustar"})
    expect_row("GN-06", {{"model.gguf", magic + std::string(300, '\x55')}}, "REJECT GN-06");
  expect_row("GN-09", {{"model.gguf.incomplete", "x"}, {"config.json.part", "x"}}, "WARN GN-09");
}

TEST_CASE("check_repository takes ordinary files as they are", "[validate][general]") {
  expect_row("plain",
             {{"README.md", "# Model\n\ntext"},
              {"LICENSE", "Some license. With sentences."},
              {"__init__.txt", ""},
              {"tokenizer.model", "\x0A\x0E\x0A\x05<unk>\x15\x00\x00\x00\x00\x18\x02"s},
              {"vocab.txt", "a\nb\n"},
              {"logo.png", "\x89PNG\r\n\x1a\n"s}},
             "ACCEPT");
}
