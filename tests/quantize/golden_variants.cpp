// SPDX-License-Identifier: Apache-2.0
// Converts variants of golden cases (variant.hpp) and compares the files' digests with those of
// the reference.
//
//   golden_variants [--families FOLDER] [--only TEXT] [--write FOLDER] VARIANTS.json GOLDEN_FOLDER
//
// --only takes the variants whose case or name holds the text; --write keeps our files, named by
// the variant's place in the list. Exit status 0 where everything is equal.

#include "quantize/architecture/architecture.hpp"
#include "quantize/convert/convert.hpp"
#include "quantize/gguf/pipeline.hpp"
#include "tests/quantize/byte_collector.hpp"
#include "tests/quantize/convert_argv.hpp"
#include "tests/quantize/families.hpp"
#include "tests/quantize/variant.hpp"
#include "validate/sha256.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace modeld;
using namespace modeld::quantize;
namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

struct Settings {
  std::string only;
  fs::path write;
  fs::path golden;
  const ArchitectureSet* families = nullptr;
};

std::string text_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

/// The file, or why there is none.
Result<std::vector<std::byte>> make(const json::object& variant, const Settings& settings) {
  const fs::path folder = settings.golden / text_of(variant, "case");
  const json::value golden = json::parse(test::read_file(folder / "expected.json"));
  const json::object& expected = golden.as_object();
  const test::MemoryFiles files =
      test::variant_snapshot(folder, text_of(expected, "model_dir"), variant);
  test::ConvertRun run = test::run_of(variant.at("argv").as_array(), folder);
  if (!run.unknown.empty()) throw std::runtime_error("unknown option " + run.unknown);
  run.options.pre = text_of(expected, "pre");
  run.options.force = variant.contains("may_refuse");
  test::ByteCollector sink;
  MODELD_ASSIGN(const ConvertResult made, convert(files, run.options, *settings.families));
  MODELD_TRY(write_gguf(made.model, sink, {}));
  return std::move(sink.bytes);
}

std::string verdict(const json::object& variant, const Result<std::vector<std::byte>>& made) {
  if (variant.contains("error")) {
    return made ? "DIFFERS: converted, but the reference refuses: " + text_of(variant, "error")
                : "equal: refused: " + made.error().message;
  }
  if (!made) return "DIFFERS: refused: " + made.error().message;
  const std::string digest = validate::sha256_of(*made).hex();
  return digest == text_of(variant, "sha256") ? "equal" : "DIFFERS: digest " + digest;
}

bool run_all(const json::array& variants, const Settings& settings) {
  bool equal = true;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const json::object& variant = variants[i].as_object();
    const std::string title = text_of(variant, "case") + ": " + text_of(variant, "name");
    if (title.find(settings.only) == std::string::npos) continue;
    const auto made = make(variant, settings);
    if (made && !settings.write.empty()) {
      std::ofstream file(settings.write / fmt::format("{}.gguf", i), std::ios::binary);
      file.write(reinterpret_cast<const char*>(made->data()),
                 static_cast<std::streamsize>(made->size()));
    }
    const std::string result = verdict(variant, made);
    fmt::print("{} | {} | {}\n", i, title, result);
    equal = equal && result.starts_with("equal");
  }
  return equal;
}

} // namespace

int main(int argc, char** argv) {
  Settings settings;
  std::string families;
  std::vector<fs::path> rest;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--only" && i + 1 < argc) {
      settings.only = argv[++i];
    } else if (argument == "--families" && i + 1 < argc) {
      families = argv[++i];
    } else if (argument == "--write" && i + 1 < argc) {
      settings.write = argv[++i];
    } else {
      rest.emplace_back(argument);
    }
  }
  try {
    Result<ArchitectureSet> loaded;
    if (rest.size() != 2) throw std::runtime_error("usage: golden_variants VARIANTS.json FOLDER");
    settings.golden = rest[1];
    if (families.empty()) {
      settings.families = ArchitectureSet::builtin().value();
    } else {
      loaded = test::load_families(families);
      if (!loaded) throw std::runtime_error(loaded.error().message);
      settings.families = &*loaded;
    }
    const json::value variants = json::parse(test::read_file(rest[0]));
    return run_all(variants.as_array(), settings) ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
