// SPDX-License-Identifier: Apache-2.0
#include "tests/files/model_inputs.hpp"

#include "quantize/gguf/gguf_source.hpp"
#include "quantize/gguf/pipeline.hpp"
#include "tests/support/memory_files.hpp"
#include "tests/support/named_stream.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>

namespace modeld::test {
namespace {

using namespace modeld::quantize;

std::vector<float> stream(std::string_view name, std::uint64_t count) {
  const NamedStream numbers(name);
  std::vector<float> values(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(NamedStream::spread(numbers.bits(i + 1)));
  }
  return values;
}

class Kept final : public TensorSource {
public:
  Kept(std::vector<float> values, std::uint64_t row) : values_(std::move(values)), row_(row) {}
  Result<void> read_rows(std::uint64_t first, std::uint64_t,
                         std::span<std::byte> out) const override {
    std::memcpy(out.data(), values_.data() + first * row_, out.size());
    return {};
  }

private:
  std::vector<float> values_;
  std::uint64_t row_;
};

GgufTensor tensor_of(std::string name, std::vector<std::uint64_t> ne, std::vector<float> values) {
  auto source = std::make_shared<Kept>(std::move(values), ne.at(0));
  return {std::move(name), TensorType::f32, std::move(ne), std::move(source)};
}

class FileSink final : public ByteSink {
public:
  explicit FileSink(const std::filesystem::path& path) : file_(path, std::ios::binary) {}
  Result<void> write(std::span<const std::byte> bytes) override {
    file_.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
    if (!file_) throw std::runtime_error("cannot write a test's input");
    return {};
  }

private:
  std::ofstream file_;
};

struct Entry {
  std::string name;
  std::uint64_t columns = 0;
  std::vector<float> sums;
  std::vector<float> counts;
};

void spoil(Entry& entry, std::string_view how) {
  const float bad = how == "nan"   ? std::numeric_limits<float>::quiet_NaN()
                    : how == "inf" ? std::numeric_limits<float>::infinity()
                                   : -1.0F;
  if (how == "long") {
    entry.sums.resize(2 * entry.sums.size(), 1.0F);
    entry.columns *= 2;
  } else {
    entry.sums[entry.sums.size() / 2] = bad;
  }
}

Entry entry_of(const GgufTensor& tensor, const MatrixTraits& traits) {
  constexpr float k_tokens = 512;
  const std::uint64_t experts = tensor.ne.size() > 2 ? tensor.ne[2] : 1;
  Entry entry{tensor.name, tensor.ne[0], stream(tensor.name + ".in_sum2", tensor.ne[0] * experts),
              std::vector<float>(experts, k_tokens)};
  for (std::size_t i = 0; i < entry.sums.size(); ++i) {
    entry.sums[i] = traits.zeros && i % 3 == 0 ? 0 : std::abs(entry.sums[i]) * 4096 + 1;
  }
  if (traits.unused_expert && experts > 1) {
    entry.counts[1] = 0;
    std::fill_n(entry.sums.begin() + static_cast<std::ptrdiff_t>(entry.columns), entry.columns,
                0.0F);
  }
  return entry;
}

bool takes_weights(const GgufTensor& tensor) {
  return tensor.ne.size() > 1 && tensor.name.ends_with(".weight") &&
         tensor.name.find("_norm") == std::string::npos && tensor.name != "token_embd.weight";
}

std::vector<Entry> entries_for(const GgufModel& model, const MatrixTraits& traits) {
  std::vector<Entry> entries;
  for (const GgufTensor& tensor : model.tensors) {
    const bool left_out =
        !traits.leave_out.empty() && tensor.name.find(traits.leave_out) != std::string::npos;
    if (takes_weights(tensor) && !left_out) entries.push_back(entry_of(tensor, traits));
  }
  if (!traits.bad.empty()) spoil(entries.back(), traits.bad);
  return entries;
}

template <class T>
void put(std::ofstream& file, T value) {
  file.write(reinterpret_cast<const char*>(&value), sizeof value);
}

void put(std::ofstream& file, std::string_view text) {
  put(file, static_cast<std::int32_t>(text.size()));
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
}

void write_old_form(const std::vector<Entry>& entries, const std::filesystem::path& path) {
  constexpr std::int32_t k_calls = 7;
  std::ofstream file(path, std::ios::binary);
  put(file, static_cast<std::int32_t>(entries.size()));
  for (const Entry& entry : entries) {
    put(file, std::string_view(entry.name));
    put(file, k_calls);
    put(file, static_cast<std::int32_t>(entry.sums.size()));
    for (const float sum : entry.sums) {
      put(file, sum);
    }
  }
  put(file, k_calls);
  put(file, std::string_view("calibration.txt"));
}

} // namespace

GgufTensor named_tensor(std::string name, std::vector<std::uint64_t> ne) {
  std::uint64_t count = 1;
  for (const std::uint64_t n : ne) {
    count *= n;
  }
  auto values = stream(name, count);
  return tensor_of(std::move(name), std::move(ne), std::move(values));
}

GgufModel small_llama(std::uint64_t width, std::uint32_t layers, std::uint32_t experts) {
  GgufModel model;
  model.kv = {{"general.architecture", std::string("llama")},
              {"llama.block_count", layers},
              {"llama.context_length", std::uint32_t{512}},
              {"llama.embedding_length", static_cast<std::uint32_t>(width)},
              {"llama.feed_forward_length", static_cast<std::uint32_t>(width)},
              {"llama.attention.head_count", std::uint32_t{4}},
              {"llama.attention.layer_norm_rms_epsilon", 1e-5F},
              {"llama.vocab_size", std::uint32_t{8}}};
  if (experts > 0) {
    model.kv.push_back({"llama.expert_count", experts});
    model.kv.push_back({"llama.expert_used_count", std::uint32_t{2}});
  }
  model.tensors = {named_tensor("token_embd.weight", {width, 8}),
                   named_tensor("output.weight", {width, 8}),
                   named_tensor("output_norm.weight", {width})};
  for (std::uint32_t i = 0; i < layers; ++i) {
    const std::string at = "blk." + std::to_string(i) + ".";
    for (const char* part : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
      model.tensors.push_back(named_tensor(at + part + ".weight", {width, 8}));
    }
    for (const char* part : {"ffn_up", "ffn_gate", "ffn_down"}) {
      model.tensors.push_back(experts > 0
                                  ? named_tensor(at + part + "_exps.weight", {width, 8, experts})
                                  : named_tensor(at + part + ".weight", {width, 8}));
    }
  }
  return model;
}

void write_model(const GgufModel& model, const std::filesystem::path& path) {
  FileSink sink(path);
  if (auto done = write_gguf(model, sink, {}); !done) {
    throw std::runtime_error("cannot write a test's model: " + done.error().message);
  }
}

void write_matrix(const GgufModel& model, const MatrixTraits& traits,
                  const std::filesystem::path& path) {
  const std::vector<Entry> entries = entries_for(model, traits);
  if (path.extension() == ".dat") return write_old_form(entries, path);
  GgufModel matrix;
  matrix.kv = {{"general.type", std::string("imatrix")},
               {"imatrix.datasets", GgufArray(std::vector<std::string>{"calibration.txt"})},
               {"imatrix.chunk_count", std::uint32_t{12}},
               {"imatrix.chunk_size", std::uint32_t{512}}};
  for (const Entry& entry : entries) {
    const std::uint64_t experts = entry.counts.size();
    matrix.tensors.push_back(
        tensor_of(entry.name + ".in_sum2", {entry.columns, experts}, entry.sums));
    matrix.tensors.push_back(tensor_of(entry.name + ".counts", {1, experts}, entry.counts));
  }
  write_model(matrix, path);
}

GgufModel read_model(const std::filesystem::path& path) {
  static std::vector<std::unique_ptr<std::string>> kept; // models are views into their files
  kept.push_back(std::make_unique<std::string>(read_file(path)));
  auto model = read_gguf_model(std::as_bytes(std::span(*kept.back())), path.string());
  if (!model) throw std::runtime_error("cannot read a test's model: " + model.error().message);
  return *std::move(model);
}

} // namespace modeld::test
