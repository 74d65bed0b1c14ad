// SPDX-License-Identifier: Apache-2.0
// Converts golden cases and compares the files with those of the reference, byte for byte.
//
//   golden_convert [--threads N] [--only TEXT] [--skip TEXT] [--families FOLDER] [--no-vocabulary]
//                  [--skip-unsupported] [--write FOLDER] CASE_FOLDER...
//
// --write keeps the files that are equal. --families takes the families from files instead of the
// program; --no-vocabulary compares all but the tokenizer's keys; --skip-unsupported passes over
// options that this driver cannot pass on.
// --write keeps the files that are equal.
// For an output that differs it prints the first metadata key, tensor or byte that does. Exit
// status 0 where everything is equal.

#include "quantize/architecture/architecture.hpp"
#include "quantize/convert/convert.hpp"
#include "quantize/gguf/pipeline.hpp"
#include "schema/json.hpp"
#include "tests/quantize/byte_collector.hpp"
#include "tests/quantize/convert_argv.hpp"
#include "tests/quantize/families.hpp"
#include "tests/quantize/golden_compare.hpp"
#include "tests/quantize/golden_snapshot.hpp"
#include "validate/sha256.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
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
  unsigned threads = 2;
  std::string only; ///< of an output's description
  std::string skip; ///< likewise
  bool no_vocabulary = false;
  bool skip_unsupported = false;
  fs::path write; ///< a folder for files that are equal; empty: they are not kept
  const ArchitectureSet* families = nullptr;
};

bool is_adapter(const json::object& output) {
  const json::value* file = output.if_contains("file");
  return file != nullptr && std::string_view(file->as_string()).starts_with("lora-");
}

std::string task_name(const json::object& adapter) {
  for (const json::value& entry : adapter.at("kv").as_array()) {
    const json::object& kv = entry.as_object();
    if (kv.at("key").as_string() == "adapter.lora.task_name") {
      return std::string(kv.at("value").as_string());
    }
  }
  return {};
}

std::string flag_text(const json::object& output, std::string_view key) {
  const json::value* value = output.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

/// Outputs with equal argv are the parts of one split, but for the adapters beside a model.
std::vector<std::vector<const json::object*>> conversions(const json::object& expected) {
  std::vector<std::vector<const json::object*>> runs;
  for (const json::value& value : expected.at("outputs").as_array()) {
    const json::object& output = value.as_object();
    if (output.at("tool").as_string() == "quantize") continue;
    if (!runs.empty() && runs.back()[0]->at("argv") == output.at("argv") && !is_adapter(output)) {
      runs.back().push_back(&output);
    } else {
      runs.push_back({&output});
    }
  }
  return runs;
}

bool right_digest(const json::object& output, const std::string& digest) {
  if (flag_text(output, "sha256") == digest) return true;
  const json::value* any = output.if_contains("sha256_any");
  if (any == nullptr) return false;
  for (const json::value& one : any->as_array()) {
    if (one.as_string() == digest) return true;
  }
  return false;
}

/// A file that is equal, under the case's name for it.
void write_file(const fs::path& folder, const json::object& output,
                std::span<const std::byte> bytes) {
  std::ofstream out(folder / flag_text(output, "file"), std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error("writing to '" + folder.string() + "' failed");
}

/// The first difference, or nothing.
std::string compare_part(const GgufModel& model, const json::object& output,
                         const Settings& settings) {
  test::ByteCollector sink;
  const WriteOptions write{settings.threads, std::size_t{1} << 20, nullptr};
  if (const auto done = write_gguf(model, sink, write); !done) {
    return "writing: " + done.error().message;
  }
  if (right_digest(output, validate::sha256_of(sink.bytes).hex())) {
    if (!settings.write.empty()) write_file(settings.write, output, sink.bytes);
    return {};
  }
  const auto keys = settings.no_vocabulary ? test::Keys::without_tokenizer : test::Keys::all;
  std::string difference = test::first_difference(model, sink.bytes, output, keys);
  if (settings.no_vocabulary) return difference;
  return difference.empty() ? "the file differs, no key and no tensor does" : difference;
}

/// An adapter over the model of the folder beside it.
Result<ConvertResult> adapted(const FileSet& files, const json::object& output, const FileSet& base,
                              const Settings& settings) {
  AdapterOptions options;
  const json::array& argv = output.at("argv").as_array();
  for (std::size_t i = 0; i + 1 < argv.size(); ++i) {
    if (argv[i] == "--outtype") options.outtype = std::string(argv[i + 1].as_string());
  }
  return convert_adapter(files, base, options, *settings.families);
}

std::string compare_run(const FileSet& files, const FileSet& base,
                        const std::vector<const json::object*>& parts, const fs::path& folder,
                        const std::string& pre, const Settings& settings) {
  test::ConvertRun run = test::run_of(parts[0]->at("argv").as_array(), folder);
  run.options.pre = pre;
  run.options.force = parts[0]->contains("may_refuse");
  if (is_adapter(*parts[0])) run.options.adapter = task_name(*parts[0]);
  run.options.no_vocabulary = settings.no_vocabulary;
  if (!run.unknown.empty()) return "option not supported: " + run.unknown;
  auto converted = parts[0]->at("tool") == "convert-lora"
                       ? adapted(files, *parts[0], base, settings)
                       : convert(files, run.options, *settings.families);
  if (parts[0]->contains("error")) {
    if (!converted) return {};
    test::ByteCollector sink;
    if (!write_gguf(converted->model, sink, {})) return {};
    return "converted, but the reference refuses: " + flag_text(*parts[0], "error");
  }
  if (!converted) return "refused: " + converted.error().message;
  const auto models =
      split_model(std::move(converted->model), run.split_tensors, run.split_bytes, run.empty_first);
  if (models.size() != parts.size()) {
    return fmt::format("{} parts, expected {}", models.size(), parts.size());
  }
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (auto difference = compare_part(models[i], *parts[i], settings); !difference.empty()) {
      return fmt::format("{}: {}", flag_text(*parts[i], "file"), difference);
    }
  }
  return {};
}

bool run_case(const fs::path& folder, const Settings& settings) {
  const json::value read =
      parse_json(test::read_file(folder / "expected.json"), "expected.json").value();
  const json::object& expected = read.as_object();
  const test::MemoryFiles files =
      test::golden_snapshot(folder, std::string(expected.at("model_dir").as_string()));
  const std::string base_dir = flag_text(expected, "base_dir");
  const test::MemoryFiles base =
      base_dir.empty() ? test::MemoryFiles("") : test::golden_snapshot(folder, base_dir);
  bool equal = true;
  for (const auto& parts : conversions(expected)) {
    const std::string how = flag_text(*parts[0], "how");
    if (how.find(settings.only) == std::string::npos) continue;
    if (!settings.skip.empty() && how.find(settings.skip) != std::string::npos) continue;
    const std::string difference =
        compare_run(files, base, parts, folder, flag_text(expected, "pre"), settings);
    if (settings.skip_unsupported && difference.starts_with("option not supported")) continue;
    const std::string verdict = difference.empty() ? "equal" : "DIFFERS: " + difference;
    fmt::print("{} | {} | {}\n", folder.filename().string(), how, verdict);
    equal = equal && difference.empty();
  }
  return equal;
}

} // namespace

int main(int argc, char** argv) {
  Settings settings;
  std::string families;
  std::vector<fs::path> cases;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--threads" && i + 1 < argc) {
      settings.threads = static_cast<unsigned>(std::atoi(argv[++i]));
    } else if (argument == "--only" && i + 1 < argc) {
      settings.only = argv[++i];
    } else if (argument == "--skip" && i + 1 < argc) {
      settings.skip = argv[++i];
    } else if (argument == "--write" && i + 1 < argc) {
      settings.write = argv[++i];
    } else if (argument == "--families" && i + 1 < argc) {
      families = argv[++i];
    } else if (argument == "--skip-unsupported") {
      settings.skip_unsupported = true;
    } else if (argument == "--no-vocabulary") {
      settings.no_vocabulary = true;
    } else {
      const fs::path folder = fs::path(argument).lexically_normal();
      cases.push_back(folder.has_filename() ? folder : folder.parent_path());
    }
  }
  bool equal = true;
  try {
    Result<ArchitectureSet> loaded;
    if (families.empty()) {
      settings.families = ArchitectureSet::builtin().value();
    } else {
      loaded = test::load_families(families);
      if (!loaded) throw std::runtime_error(loaded.error().message);
      settings.families = &*loaded;
    }
    for (const fs::path& one : cases) {
      equal = run_case(one, settings) && equal;
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return equal ? 0 : 1;
}
