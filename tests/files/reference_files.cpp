// SPDX-License-Identifier: Apache-2.0
// Runs modelctl on files as a user does, and compares every file that it makes with the digest of
// what the reference's tool made of the same input with the same words.
//
//   reference_files CASES.json [GROUP]
//   reference_files --record FOLDER CASES.json      FOLDER holds llama-quantize, llama-gguf-split
//
// A case: name, group, "golden" (a golden case to convert, or "llama WIDTH": the small one of
// model_inputs.hpp) with "convert" (words for modelctl convert), "matrix" (see MatrixTraits; "file"
// names it), "steps" (lists of words: quantize, split or merge, then what the reference's tool
// takes, to the word). "files" holds name and SHA-256 of each file that the steps leave, or is
// absent where the reference refuses; "ours" has words that only modelctl gets, such as --force.
// --record runs the reference's tools (llama.cpp v0.4.0) and writes "files".

#include "schema/json.hpp"
#include "tests/files/model_inputs.hpp"
#include "tests/quantize/golden_case.hpp"
#include "tests/quantize/golden_snapshot.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"
#include "validate/sha256.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>

using namespace modeld;
namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

using Words = std::vector<std::string>;
using Digests = std::map<std::string, std::string>;

Words words_of(const json::object& object, std::string_view key) {
  Words words;
  if (const json::value* list = object.if_contains(key)) {
    for (const json::value& word : list->as_array()) {
      words.emplace_back(word.as_string());
    }
  }
  return words;
}

std::string text_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr ? std::string(value->as_string()) : std::string();
}

bool flag(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->as_bool();
}

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

test::Finished run_in(const fs::path& folder, const Words& command) {
  // A slow machine and the reference's grids: minutes.
  test::Process process(Words{"env", "-C", folder.string()} + command);
  auto finished = process.wait(std::chrono::minutes(5));
  if (!finished) throw std::runtime_error("does not end: " + command.front());
  return *std::move(finished);
}

/// Models made of golden cases, once for each way of making them.
class Inputs {
public:
  fs::path model(const json::object& wanted) {
    const std::string golden = text_of(wanted, "golden");
    const Words convert = words_of(wanted, "convert");
    const std::string key = fmt::format("{} {}", golden, fmt::join(convert, " "));
    auto& path = made_[key];
    if (path.empty()) path = make(golden, convert, dir_ / fmt::format("{}.gguf", made_.size()));
    return path;
  }

private:
  fs::path make(const std::string& golden, const Words& convert, fs::path path) const {
    constexpr std::string_view k_generated = "llama ";
    if (golden.starts_with(k_generated)) {
      test::write_model(test::small_llama(std::stoul(golden.substr(k_generated.size()))), path);
      return path;
    }
    const test::GoldenCase described(fs::path(MODELD_GOLDEN) / golden);
    const fs::path folder = path.string() + ".d";
    const fs::path snapshot = folder / described.model_dir();
    const auto files = test::golden_snapshot(described.folder(), described.model_dir());
    for (const FileSet::Entry& entry : files.entries()) {
      fs::create_directories((snapshot / entry.path).parent_path());
      const auto bytes = files.bytes(entry.path);
      std::ofstream(snapshot / entry.path, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes->data()),
                 static_cast<std::streamsize>(bytes->size()));
    }
    Words command{MODELCTL_PROGRAM, "convert", snapshot.string(), "-o", path.string()};
    if (!described.pre().empty()) command = command + Words{"--pre", described.pre()};
    const auto done = run_in(folder, command + convert);
    if (done.status != 0) throw std::runtime_error("converting " + golden + ": " + done.err);
    fs::remove_all(folder);
    return path;
  }

  test::TempDir dir_;
  std::map<std::string, fs::path> made_;
};

void put_matrix(const json::object& wanted, const fs::path& folder) {
  const json::value* given = wanted.if_contains("matrix");
  if (given == nullptr) return;
  const json::object& matrix = given->as_object();
  const test::MatrixTraits traits{flag(matrix, "unused_expert"), flag(matrix, "zeros"),
                                  text_of(matrix, "leave_out"), text_of(matrix, "bad")};
  test::write_matrix(test::read_model(folder / "m.gguf"), traits, folder / text_of(matrix, "file"));
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

/// Who does the steps: modelctl, or the reference's tools in a folder.
class Tools {
public:
  explicit Tools(fs::path reference) : reference_(std::move(reference)) {}

  bool recording() const { return !reference_.empty(); }

  Words command(Words step, const Words& ours) const {
    if (!recording()) return Words{MODELCTL_PROGRAM, step.front()} + ours + tail(step);
    if (step.front() == "quantize")
      return Words{(reference_ / "llama-quantize").string()} + tail(step);
    const Words tool{(reference_ / "llama-gguf-split").string()};
    return tool + (step.front() == "merge" ? Words{"--merge"} : Words{}) + tail(step);
  }

private:
  static Words tail(const Words& step) { return {step.begin() + 1, step.end()}; }
  fs::path reference_;
};

/// The files that the steps leave; nothing where a step is refused, whose last words are in `why`.
std::optional<Digests> make(const json::object& wanted, Inputs& inputs, const Tools& tools,
                            std::string& why) {
  const test::TempDir dir;
  fs::create_symlink(inputs.model(wanted), dir / "m.gguf");
  put_matrix(wanted, dir.path());
  for (const json::value& step : wanted.at("steps").as_array()) {
    json::object holder{{"words", step}};
    const auto before = names_in(dir.path());
    const auto done =
        run_in(dir.path(), tools.command(words_of(holder, "words"), words_of(wanted, "ours")));
    if (done.status == 0) continue;
    why = done.err.substr(done.err.size() > 300 ? done.err.size() - 300 : 0);
    if (!tools.recording() && names_in(dir.path()) != before) {
      throw std::runtime_error("a refusal leaves files behind");
    }
    return std::nullopt;
  }
  Digests digests;
  for (const std::string& name : names_in(dir.path())) {
    if (name == "m.gguf" || name.starts_with("matrix.")) continue;
    const std::string text = test::read_file(dir / name);
    digests[name] = validate::sha256_of(std::as_bytes(std::span(text))).hex();
  }
  return digests;
}

std::string compare(const json::object& wanted, Inputs& inputs, const Tools& tools) {
  std::string why;
  const auto made = make(wanted, inputs, tools, why);
  const json::value* expected = wanted.if_contains("files");
  if (!made) return expected == nullptr ? "" : "refused: " + why;
  if (expected == nullptr) return "written, but the reference refuses";
  Digests digests;
  for (const auto& file : expected->as_object()) {
    digests[std::string(file.key())] = std::string(file.value().as_string());
  }
  for (const auto& [name, digest] : digests) {
    if (!made->contains(name)) return "no file " + name;
    if (made->at(name) != digest) return "another file " + name;
  }
  return made->size() == digests.size() ? "" : "more files than the reference makes";
}

void record(json::object& wanted, Inputs& inputs, const Tools& tools) {
  std::string why;
  wanted.erase("files");
  const auto made = make(wanted, inputs, tools, why);
  if (!made) return;
  json::object files;
  for (const auto& [name, digest] : *made) {
    files[name] = digest;
  }
  wanted["files"] = std::move(files);
}

/// One case a line, so that changes can be read.
void write_cases(const json::array& cases, const fs::path& path) {
  std::ofstream out(path);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    out << (i == 0 ? "[\n" : ",\n") << json::serialize(cases[i]);
  }
  out << "\n]\n";
}

int run(const Words& given) {
  const bool recording = given.at(0) == "--record";
  const Tools tools(recording ? fs::canonical(given.at(1)) : fs::path());
  const fs::path path = given.at(recording ? 2 : 0);
  const std::string group = !recording && given.size() > 1 ? given[1] : "";
  json::value all = json::parse(test::read_file(path));
  Inputs inputs;
  int failed = 0;
  int count = 0;
  for (json::value& value : all.as_array()) {
    json::object& wanted = value.as_object();
    if (!group.empty() && text_of(wanted, "group") != group) continue;
    ++count;
    if (recording) {
      record(wanted, inputs, tools);
      continue;
    }
    const std::string difference = compare(wanted, inputs, tools);
    if (difference.empty()) continue;
    ++failed;
    std::puts(fmt::format("{}: {}", text_of(wanted, "name"), difference).c_str());
  }
  if (recording) write_cases(all.as_array(), path);
  std::puts(fmt::format("{} cases, {} not equal", count, failed).c_str());
  return failed == 0 && count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace

int main(int argc, char** argv) {
  const Words given(argv + 1, argv + argc);
  if (given.empty() || (given[0] == "--record" && given.size() != 3)) {
    std::puts("usage: reference_files [--record FOLDER] CASES.json [GROUP]");
    return 2;
  }
  try {
    return run(given);
  } catch (const std::exception& error) {
    std::puts(error.what());
    return EXIT_FAILURE;
  }
}
