// SPDX-License-Identifier: Apache-2.0
// What stands before the first weight: a tokenizer.json of 10 MB is parsed in less than 60 ms, and
// the plan of a model with 1,000 tensors in 8 shards and a vocabulary of 150,000 tokens is there in
// less than 150 ms, program start included.
//   usage: bench_plan
#include "quantize/tokenizer/files.hpp"
#include "tests/support/memory_files.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

constexpr int k_layers = 111; // with 9 tensors each, and 2 more: 1,001
constexpr int k_shards = 8;
constexpr int k_tokens = 150000;
constexpr int k_hidden = 64;
constexpr double k_parse_goal = 60;
constexpr double k_plan_goal = 150;

/// Byte-level BPE whose tokens are the words over a to z by length, each merged out of the one
/// before and a letter; laid out as the usual library does.
std::string tokenizer_json() {
  std::string vocab;
  std::string merges;
  int number = 0;
  const auto add = [&](const std::string& token) {
    vocab += (number == 0 ? "\n      \"" : ",\n      \"") + token + "\": " + std::to_string(number);
    ++number;
  };
  std::vector<std::string> words;
  for (char c = 'a'; c <= 'z'; ++c) {
    words.emplace_back(1, c);
    add(words.back());
  }
  add("\u0120");
  add("\u010a");
  for (std::size_t from = 0; number < k_tokens; ++from) {
    for (char c = 'a'; c <= 'z' && number < k_tokens; ++c) {
      const std::string start = words[from];
      merges += std::string(merges.empty() ? "\n" : ",\n") + "      [\n        \"" + start +
                "\",\n        \"" + c + "\"\n      ]";
      words.push_back(start + c);
      add(words.back());
    }
  }
  return R"({
  "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
  "post_processor": null, "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
    "fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": {)" +
         vocab + "\n    },\n    \"merges\": [" + merges + "\n    ]\n  }\n}\n";
}

struct Tensor {
  std::string name;
  std::vector<int> shape;
};

std::vector<Tensor> tensors() {
  std::vector<Tensor> out{{"model.embed_tokens.weight", {k_tokens, k_hidden}}};
  for (int i = 0; i < k_layers; ++i) {
    const std::string at = "model.layers." + std::to_string(i) + ".";
    for (const char* square : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                               "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
      out.push_back({at + square + ".weight", {k_hidden, k_hidden}});
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
      out.push_back({at + norm + ".weight", {k_hidden}});
  }
  out.push_back({"model.norm.weight", {k_hidden}});
  return out;
}

void write_shard(const fs::path& path, const std::vector<Tensor>& part) {
  std::string header;
  std::size_t end = 0;
  for (const Tensor& tensor : part) {
    std::string shape;
    std::size_t bytes = 2;
    for (const int d : tensor.shape) {
      shape += (shape.empty() ? "" : ",") + std::to_string(d);
      bytes *= static_cast<std::size_t>(d);
    }
    header += (header.empty() ? "{\"" : ",\"") + tensor.name + R"(":{"dtype":"BF16","shape":[)" +
              shape + R"(],"data_offsets":[)" + std::to_string(end) + "," +
              std::to_string(end + bytes) + "]}";
    end += bytes;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::ofstream out(path, std::ios::binary);
  const std::uint64_t length = header.size();
  out.write(reinterpret_cast<const char*>(&length), sizeof length);
  out << header << std::string(end, '\0');
  if (!out.flush()) throw std::runtime_error("writing '" + path.string() + "' failed");
}

void make_checkpoint(const fs::path& folder, const std::string& tokenizer) {
  fs::create_directories(folder);
  const std::vector<Tensor> all = tensors();
  std::string map;
  for (int s = 0; s < k_shards; ++s) {
    const auto at = [&](int n) {
      return all.begin() +
             static_cast<std::ptrdiff_t>(all.size() * static_cast<std::size_t>(n) / k_shards);
    };
    const std::vector<Tensor> part(at(s), at(s + 1));
    const std::string file = "model-0000" + std::to_string(s + 1) + "-of-00008.safetensors";
    write_shard(folder / file, part);
    for (const Tensor& tensor : part)
      map += (map.empty() ? "\"" : ",\"") + tensor.name + "\":\"" + file + "\"";
  }
  std::ofstream(folder / "model.safetensors.index.json")
      << "{\"metadata\":{},\"weight_map\":{" << map << "}}";
  std::ofstream(folder / "tokenizer.json") << tokenizer;
  std::ofstream(folder / "tokenizer_config.json")
      << R"({"tokenizer_class":"PreTrainedTokenizerFast"})";
  std::ofstream(folder / "config.json")
      << R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":64,"intermediate_size":64,)"
      << R"("num_attention_heads":4,"num_key_value_heads":4,"max_position_embeddings":4096,"rms_norm_eps":1e-5,)"
      << R"("rope_theta":10000.0,"torch_dtype":"bfloat16","num_hidden_layers":)" << k_layers
      << R"(,"vocab_size":)" << k_tokens << "}";
}

struct Times {
  double clock;     ///< milliseconds
  double processor; ///< of this process and its children, likewise
};

double processor_milliseconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      sum += static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  }
  return sum;
}

/// The best of ten runs.
Times best_of(const std::function<void()>& work) {
  Times best{1e9, 1e9};
  for (int i = 0; i < 10; ++i) {
    const double before = processor_milliseconds();
    const auto begun = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begun;
    best.clock = std::min(best.clock, time.count());
    best.processor = std::min(best.processor, processor_milliseconds() - before);
  }
  return best;
}

void print(const std::string& what, Times times, double goal) {
  std::printf("%-66s %7.1f ms, %7.1f ms of processor time (goal %.0f)\n", what.c_str(), times.clock,
              times.processor, goal);
}

void plan(const fs::path& model) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(126);
    execl(MODELCTL_PROGRAM, MODELCTL_PROGRAM, "convert", model.c_str(), "--dry-run", "--pre",
          "gpt-2", "-q", nullptr);
    _exit(127);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0)
    throw std::runtime_error("modelctl convert failed");
}

int measure() {
  const std::string tokenizer = tokenizer_json();
  const modeld::test::MemoryFiles files("Bench", {{"tokenizer.json", tokenizer}});
  const Times parse = best_of([&] {
    modeld::quantize::TokenizerFiles parsed(files);
    if (!parsed.object("tokenizer.json")) throw std::runtime_error("the text does not parse");
  });
  std::string pattern = (fs::temp_directory_path() / "modeld-bench-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder for the bench");
  const fs::path folder = pattern;
  make_checkpoint(folder / "Bench-Plan", tokenizer);
  const Times planned = best_of([&] { plan(folder / "Bench-Plan"); });
  fs::remove_all(folder);
  print("tokenizer.json of " + std::to_string(tokenizer.size()) + " bytes parsed", parse,
        k_parse_goal);
  print("plan: 1,001 tensors, 8 shards, 150,000 tokens; the whole program", planned, k_plan_goal);
  // Single-threaded both: on a quiet machine the two times are one.
  return parse.processor < k_parse_goal && planned.processor < k_plan_goal ? 0 : 1;
}

} // namespace

int main() {
  try {
    return measure();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
