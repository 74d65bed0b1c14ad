// SPDX-License-Identifier: Apache-2.0
#include "quantize/encoder/encoder.hpp"

#include "tests/quantize/tokenizer/golden_kv.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

// What random_strings.py wrote: texts, and their ids by the package `tokenizers`.

using namespace modeld;
using namespace modeld::quantize;
using Ids = std::vector<std::uint32_t>;
namespace fs = std::filesystem;

namespace {

Ids ids_of(const boost::json::value& value) {
  Ids out;
  for (const auto& each : value.as_array()) {
    out.push_back(each.to_number<std::uint32_t>());
  }
  return out;
}

std::vector<fs::path> definitions() {
  std::vector<fs::path> out;
  if (!fs::exists(MODELD_RANDOM_STRINGS_DIR)) return out;
  for (const auto& entry : fs::directory_iterator(MODELD_RANDOM_STRINGS_DIR)) {
    if (entry.path().extension() == ".json") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// Where the two lists part, with a few ids of each.
std::string difference(const Ids& ours, const Ids& expected) {
  const auto [a, b] = std::mismatch(ours.begin(), ours.end(), expected.begin(), expected.end());
  const auto some = [](auto from, auto end) {
    std::string out;
    for (int i = 0; i < 8 && from != end; ++i, ++from) {
      out += ' ' + std::to_string(*from);
    }
    return out;
  };
  return "id " + std::to_string(a - ours.begin()) + ":" + some(a, ours.end()) + " where" +
         some(b, expected.end()) + " is right";
}

/// The number of texts that differ; the first few are reported.
std::size_t check(const Encoder& encoder, const fs::path& strings, std::size_t& texts) {
  std::ifstream file(strings);
  std::size_t differ = 0;
  for (std::string line; std::getline(file, line); ++texts) {
    const auto row = boost::json::parse(line).as_array();
    const std::string_view text = row[0].as_string();
    const auto compare = [&](Encoder::Special special, const boost::json::value& expected) {
      if (expected.is_null()) return;
      const auto ours = encoder.encode(text, special);
      if (ours && *ours == ids_of(expected)) return;
      if (++differ > 3) return;
      UNSCOPED_INFO(boost::json::serialize(row[0]).substr(0, 400));
      UNSCOPED_INFO((ours ? difference(*ours, ids_of(expected)) : ours.error().message));
    };
    compare(Encoder::Special::leave_out, row[1]);
    compare(Encoder::Special::add, row[2]);
  }
  return differ;
}

} // namespace

TEST_CASE("Encoder::encode equals the tokenizers library for 10,000 random strings each",
          "[quantize][tokenizer][encoder][interop]") {
  std::size_t texts = 0;
  std::size_t tokenizers = 0;
  for (const auto& path : definitions()) {
    const auto definition = test::read_json_file(path).as_object();
    const auto tokenizer = HfTokenizer::load_plain(definition);
    if (!tokenizer) {
      FAIL_CHECK(path.stem() << ": " << tokenizer.error().message);
      continue;
    }
    const auto encoder = Encoder::make(*tokenizer);
    if (!encoder) {
      FAIL_CHECK(path.stem() << ": " << encoder.error().message);
      continue;
    }
    INFO(path.stem());
    CHECK(check(*encoder, fs::path(path).replace_extension(".jsonl"), texts) == 0);
    ++tokenizers;
  }
  // The tiny ones and their variants are always there.
  CHECK(tokenizers >= 70);
  CHECK(texts >= tokenizers * 10000);
}
