// SPDX-License-Identifier: Apache-2.0
#include "checkpoint.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <stdexcept>

namespace modeld::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t k_hidden = 2048, k_kv = 512, k_ffn = 5632, k_vocab = 2048;
constexpr long k_peak_limit_kib = 256L << 10;

struct Tensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes() const {
    std::uint64_t n = 2;
    for (const std::uint64_t d : shape)
      n *= d;
    return n;
  }
};

std::vector<Tensor> layer(unsigned index) {
  const std::string at = "model.layers." + std::to_string(index) + ".";
  return {{at + "input_layernorm.weight", {k_hidden}},
          {at + "post_attention_layernorm.weight", {k_hidden}},
          {at + "self_attn.q_proj.weight", {k_hidden, k_hidden}},
          {at + "self_attn.k_proj.weight", {k_kv, k_hidden}},
          {at + "self_attn.v_proj.weight", {k_kv, k_hidden}},
          {at + "self_attn.o_proj.weight", {k_hidden, k_hidden}},
          {at + "mlp.gate_proj.weight", {k_ffn, k_hidden}},
          {at + "mlp.up_proj.weight", {k_ffn, k_hidden}},
          {at + "mlp.down_proj.weight", {k_hidden, k_ffn}}};
}

/// Eight mebibytes of normal values, as BF16.
std::vector<std::uint16_t> normal_bf16() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0F, 0.02F);
  std::vector<std::uint16_t> values(std::size_t{1} << 22);
  for (std::uint16_t& value : values) {
    const float f = normal(random);
    std::uint32_t bits = 0;
    static_assert(sizeof bits == sizeof f);
    std::memcpy(&bits, &f, sizeof f);
    value = static_cast<std::uint16_t>(bits >> 16);
  }
  return values;
}

void write_shard(const fs::path& path, const std::vector<Tensor>& tensors) {
  std::string header = "{";
  std::uint64_t at = 0;
  for (const Tensor& tensor : tensors) {
    std::string shape;
    for (const std::uint64_t d : tensor.shape)
      shape += (shape.empty() ? "" : ",") + std::to_string(d);
    header += (at == 0 ? "\"" : ",\"") + tensor.name + R"(":{"dtype":"BF16","shape":[)" + shape +
              R"(],"data_offsets":[)" + std::to_string(at) + "," +
              std::to_string(at + tensor.bytes()) + "]}";
    at += tensor.bytes();
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::ofstream out(path, std::ios::binary);
  const std::uint64_t length = header.size();
  out.write(reinterpret_cast<const char*>(&length), sizeof length);
  out << header;
  static const std::vector<std::uint16_t> values = normal_bf16();
  const auto* bytes = reinterpret_cast<const char*>(values.data());
  for (const Tensor& tensor : tensors) {
    for (std::uint64_t left = tensor.bytes(); left > 0;) {
      const std::uint64_t some = std::min<std::uint64_t>(left, values.size() * 2);
      out.write(bytes, static_cast<std::streamsize>(some));
      left -= some;
    }
  }
  if (!out.flush()) throw std::runtime_error("writing '" + path.string() + "' failed");
}

/// Waits for a child that began at `begun`.
Cost cost_of(pid_t child, std::chrono::steady_clock::time_point begun, const std::string& what) {
  int status = 0;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0)
    throw std::runtime_error(what + " failed");
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun;
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return {passed.count(), seconds(usage.ru_utime) + seconds(usage.ru_stime),
          static_cast<double>(usage.ru_maxrss) / 1024};
}

} // namespace

unsigned make_checkpoint(const fs::path& folder, std::uint64_t mebibytes) {
  fs::create_directories(folder);
  const fs::path source = fs::path(MODELD_TEST_DATA) / "data" / "TinyVerse-4M";
  for (const char* file : {"tokenizer.model", "tokenizer_config.json"})
    fs::copy_file(source / file, folder / file);
  std::uint64_t a_layer = 0;
  for (const Tensor& tensor : layer(0))
    a_layer += tensor.bytes();
  const auto layers = static_cast<unsigned>((mebibytes << 20) / a_layer + 1);
  std::vector<Tensor> shards[2];
  shards[0].push_back({"model.embed_tokens.weight", {k_vocab, k_hidden}});
  for (unsigned i = 0; i < layers; ++i) {
    for (Tensor& tensor : layer(i))
      shards[i < layers / 2 ? 0 : 1].push_back(std::move(tensor));
  }
  shards[1].push_back({"model.norm.weight", {k_hidden}});
  write_shard(folder / "model-00001-of-00002.safetensors", shards[0]);
  write_shard(folder / "model-00002-of-00002.safetensors", shards[1]);
  std::ofstream(folder / "config.json")
      << R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":)" << k_hidden
      << R"(,"intermediate_size":)" << k_ffn << R"(,"num_hidden_layers":)" << layers
      << R"(,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":)" << k_vocab
      << R"(,"max_position_embeddings":4096,"rms_norm_eps":1e-5,"rope_theta":10000.0,)"
      << R"("tie_word_embeddings":true,"torch_dtype":"bfloat16"})";
  return layers;
}

Cost run(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::fflush(stdout);
  const auto begun = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(126); // its result is a path
    execv(argv[0], argv.data());
    _exit(127);
  }
  return cost_of(child, begun, words.size() > 1 ? words[1] : words[0]);
}

Cost run(const std::function<int()>& work) {
  std::fflush(stdout);
  const auto begun = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) _exit(work());
  return cost_of(child, begun, "the function");
}

BenchFolder::BenchFolder() {
  std::string pattern = (fs::temp_directory_path() / "modeld-bench-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder for the bench");
  path_ = pattern;
}

BenchFolder::~BenchFolder() {
  std::error_code ec;
  fs::remove_all(path_, ec);
}

} // namespace modeld::bench
