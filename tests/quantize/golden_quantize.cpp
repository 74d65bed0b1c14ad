// SPDX-License-Identifier: Apache-2.0
// Quantizes golden cases and compares the files with those of the reference, byte for byte. Inputs
// are earlier outputs of the same case: made by the converter or the quantizer, and read back as
// files.
//
//   golden_quantize [--threads N] [--only TEXT] [--no-vocabulary] CASE_FOLDER...
//
// --no-vocabulary leaves the tokenizer out, and compares all tensors and the other keys.
// Exit status 0 where everything is equal.

#include "quantize/convert/convert.hpp"
#include "quantize/gguf/gguf_source.hpp"
#include "quantize/gguf/pipeline.hpp"
#include "quantize/kernels/target.hpp"
#include "quantize/recipe/quantize_model.hpp"
#include "tests/quantize/golden_case.hpp"
#include "tests/quantize/golden_compare.hpp"
#include "tests/quantize/golden_snapshot.hpp"
#include "validate/sha256.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <map>

using namespace modeld;
using namespace modeld::quantize;
namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

class Bytes final : public ByteSink {
public:
  Result<void> write(std::span<const std::byte> more) override {
    text.append(reinterpret_cast<const char*>(more.data()), more.size());
    return {};
  }
  std::string text;
};

using Run = std::vector<const json::object*>;

std::string text_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

Result<std::vector<std::string>> write_all(const std::vector<GgufModel>& models, unsigned threads) {
  std::vector<std::string> files;
  for (const GgufModel& model : models) {
    Bytes sink;
    MODELD_TRY(write_gguf(model, sink, {threads, std::size_t{1} << 18, nullptr}));
    files.push_back(std::move(sink.text));
  }
  return files;
}

/// One case: its snapshot, and the files that were made of it so far.
class Case {
public:
  Case(const fs::path& folder, unsigned threads, test::Keys keys)
      : golden_(folder), threads_(threads), keys_(keys),
        snapshot_(test::golden_snapshot(folder, golden_.model_dir())), files_("outputs") {}

  /// Empty where every part has its digest, or the refusal is the expected one.
  std::string compare(const Run& run) {
    const json::object& first = *run.front();
    const bool refused = first.contains("error");
    bool dry_run = false;
    auto made = make(first, dry_run);
    if (!made) return refused ? "" : "refused: " + made.error().message;
    if (dry_run) return {};
    auto files = write_all(made->parts, threads_);
    if (!files) return refused ? "" : "refused: " + files.error().message;
    if (refused) return "written, but the reference refuses";
    if (files->size() != run.size()) {
      return fmt::format("{} parts, expected {}", files->size(), run.size());
    }
    for (std::size_t i = 0; i < run.size(); ++i) {
      const auto bytes = std::as_bytes(std::span((*files)[i]));
      if (validate::sha256_of(bytes).hex() == text_of(*run[i], "sha256")) continue;
      const std::vector<std::byte> copy(bytes.begin(), bytes.end());
      const std::string found = test::first_difference(made->parts[i], copy, *run[i], keys_);
      if (!found.empty()) return fmt::format("part {}: {}", i, found);
      if (keys_ == test::Keys::all) return fmt::format("part {}: no key and no tensor differs", i);
    }
    return {};
  }

  const test::GoldenCase& golden() const { return golden_; }

private:
  Result<QuantizedModel> make(const json::object& run, bool& dry_run) {
    MODELD_ASSIGN(auto request, test::request_of(golden_, run, dry_run));
    const std::string input = text_of(run, "input");
    MODELD_TRY(provide(input));
    MODELD_ASSIGN(GgufSource source, open_gguf_source(files_, input));
    if (request.recipe.keep_split) request.parts = source.parts;
    return quantize_model(source.model, request, dry_run ? PlanOnly::yes : PlanOnly::no);
  }

  /// Makes the input's file or files, once.
  Result<void> provide(const std::string& input) {
    if (files_.contains(input)) return {};
    const auto described = golden_.input_files(input);
    const json::object& first = *described.front();
    std::vector<std::string> made;
    if (text_of(first, "tool") == "quantize") {
      bool dry_run = false;
      MODELD_ASSIGN(const auto model, make(first, dry_run));
      MODELD_ASSIGN(made, write_all(model.parts, threads_));
    } else {
      MODELD_ASSIGN(made, converted(first));
    }
    for (std::size_t i = 0; i < described.size() && i < made.size(); ++i) {
      files_.put(text_of(*described[i], "file"), std::move(made[i]));
    }
    return {};
  }

  Result<std::vector<std::string>> converted(const json::object& output) {
    ConvertOptions options;
    options.pre = golden_.pre();
    options.no_vocabulary = keys_ == test::Keys::without_tokenizer;
    std::uint64_t split_tensors = 0;
    std::uint64_t split_bytes = 0;
    const json::array& argv = output.at("argv").as_array();
    for (std::size_t i = 0; i + 1 < argv.size(); ++i) {
      const std::string value(argv[i + 1].is_string() ? argv[i + 1].as_string() : "");
      if (argv[i] == "--outtype") options.outtype = value;
      if (argv[i] == "--split-max-tensors")
        split_tensors = std::strtoull(value.c_str(), nullptr, 10);
      if (argv[i] == "--split-max-size") split_bytes = *parse_split_size(value);
    }
    const bool empty_first =
        std::find(argv.begin(), argv.end(), "--no-tensor-first-split") != argv.end();
    options.dense_modules =
        std::find(argv.begin(), argv.end(), "--sentence-transformers-dense-modules") != argv.end();
    MODELD_ASSIGN(auto model, convert(snapshot_, options));
    return write_all(split_model(std::move(model.model), split_tensors, split_bytes, empty_first),
                     threads_);
  }

  test::GoldenCase golden_;
  unsigned threads_;
  test::Keys keys_;
  test::MemoryFiles snapshot_;
  test::MemoryFiles files_;
};

bool run_case(const fs::path& folder, unsigned threads, const std::string& only, test::Keys keys) {
  Case golden(folder, threads, keys);
  bool equal = true;
  for (const Run& run : golden.golden().quantize_runs()) {
    const std::string how =
        fmt::format("{} {} {}", text_of(*run.front(), "input"), text_of(*run.front(), "type"),
                    json::serialize(run.front()->at("argv")));
    if (how.find(only) == std::string::npos) continue;
    const std::string difference = golden.compare(run);
    if (difference.empty()) continue;
    fmt::print("{} | {} | DIFFERS: {}\n", golden.golden().name(), how, difference);
    equal = false;
  }
  return equal;
}

} // namespace

int main(int argc, char** argv) {
  if (const auto& kernel = kernel_in_use(); !kernel) {
    fmt::print("this machine has no kernel of that name: {}\n", kernel.error().message);
    return 2;
  }
  unsigned threads = 2;
  std::string only;
  test::Keys keys = test::Keys::all;
  bool equal = true;
  try {
    for (int i = 1; i < argc; ++i) {
      const std::string_view argument = argv[i];
      if (argument == "--threads" && i + 1 < argc) {
        threads = static_cast<unsigned>(std::atoi(argv[++i]));
      } else if (argument == "--only" && i + 1 < argc) {
        only = argv[++i];
      } else if (argument == "--no-vocabulary") {
        keys = test::Keys::without_tokenizer;
      } else {
        const fs::path folder = fs::path(argument).lexically_normal();
        const bool same =
            run_case(folder.has_filename() ? folder : folder.parent_path(), threads, only, keys);
        fmt::print("{} {}\n", folder.string(), same ? "equal" : "DIFFERS");
        equal = equal && same;
      }
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return equal ? 0 : 1;
}
