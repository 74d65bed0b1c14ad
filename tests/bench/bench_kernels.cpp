// SPDX-License-Identifier: Apache-2.0

// bench_kernels [TYPE...]: millions of weights a second, one thread, for each type and kernel
// target; where MODELD_REFERENCE_LIB (or MODELD_GGML_LIBRARY) names the reference's libggml-base,
// also the ratio to it. Medians of interleaved runs in processor time, results compared. Exit
// status 1 where bytes differ.
//
// Types without a search and all ways back to floats are bounded by memory: these get rows that no
// cache holds and a ratio to memcpy in the same race. The copy reads and writes half of the bytes
// that the operation reads and writes together, so that both move the same amount.

#include "quantize/ggml_library.hpp"
#include "quantize/kernels/row_codec.hpp"
#include "quantize/kernels/target.hpp"
#include "schema/tensor_type.hpp"

#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

using namespace modeld;
using namespace modeld::quantize;

namespace {

constexpr std::uint64_t k_row = 4096; ///< weights
constexpr int k_runs = 5;
constexpr std::uint64_t k_rows = 4096;       ///< 64 MiB of floats, out of caches' reach
constexpr std::uint64_t k_cached_rows = 256; ///< where searches take the time
constexpr std::uint64_t k_few_rows = 32;     ///< and where they take long

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The shape of a trained matrix: normal rows of different spread, a few large weights. The first
/// k_cached_rows come again and again.
std::vector<float> model_like(std::uint64_t rows) {
  std::mt19937_64 random(11);
  std::normal_distribution<float> normal;
  std::vector<float> x(rows * k_row);
  for (std::uint64_t r = 0; r < rows; ++r) {
    if (r >= k_cached_rows) {
      std::memcpy(&x[r * k_row], &x[(r - k_cached_rows) * k_row], k_row * sizeof(float));
      continue;
    }
    const float spread = 0.02F * std::exp2(0.5F * normal(random));
    for (std::uint64_t i = 0; i < k_row; ++i) {
      const float large = random() % 1000 == 0 ? 6.0F : 1.0F;
      // As BF16 has it, since that is what checkpoints are made of.
      const float value = spread * large * normal(random);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, 4);
      bits &= 0xFFFF0000U;
      std::memcpy(&x[r * k_row + i], &bits, 4);
    }
  }
  return x;
}

std::vector<float> importance_like() {
  std::mt19937_64 random(12);
  std::gamma_distribution<float> gamma(0.5F, 2.0F);
  std::vector<float> w(k_row);
  for (float& v : w)
    v = gamma(random);
  return w;
}

/// One operation on the same rows, done by several, each into its own memory.
class Race {
public:
  Race(std::string what, std::uint64_t weights, std::size_t result_bytes)
      : what_(std::move(what)), weights_(weights), result_bytes_(result_bytes) {}

  void add(std::string name, std::function<void(std::byte*)> run) {
    contenders_.push_back(
        {std::move(name), std::move(run), std::vector<std::byte>(result_bytes_), {}});
  }

  /// A copy that reads and writes `bytes` together takes part.
  void add_copy(std::uint64_t bytes) {
    copied_bytes_ = bytes;
    from_.assign(bytes / 2, std::byte{1});
    copy_ = Contender{"memcpy",
                      [this](std::byte* to) { std::memcpy(to, from_.data(), from_.size()); },
                      std::vector<std::byte>(bytes / 2),
                      {}};
  }

  /// Whether all results were equal.
  bool run() {
    for (int i = -1; i < k_runs; ++i) { // the first is a warm-up
      for (Contender& c : contenders_)
        c.take_turn(i >= 0);
      if (copied_bytes_ != 0) copy_.take_turn(i >= 0);
    }
    print();
    bool equal = true;
    for (const Contender& c : contenders_) {
      if (c.result == contenders_.front().result) continue;
      std::printf("%s: the bytes of %s differ\n", what_.c_str(), c.name.c_str());
      equal = false;
    }
    return equal;
  }

private:
  struct Contender {
    std::string name;
    std::function<void(std::byte*)> work;
    std::vector<std::byte> result;
    std::vector<double> seconds;

    void take_turn(bool counts) {
      const double start = processor_seconds();
      work(result.data());
      if (counts) seconds.push_back(processor_seconds() - start);
    }
    double median() {
      std::sort(seconds.begin(), seconds.end());
      return seconds[seconds.size() / 2];
    }
  };

  void print() {
    std::printf("%-22s", what_.c_str());
    const double first = contenders_.front().median();
    const bool has_reference = contenders_.front().name == "reference";
    const double copy = copied_bytes_ != 0 ? copy_.median() : 0;
    for (Contender& c : contenders_) {
      const double median = c.median();
      std::printf("  %s %7.1f", c.name.c_str(), static_cast<double>(weights_) / median / 1e6);
      if (has_reference && &c != &contenders_.front()) std::printf(" (%5.2fx)", first / median);
      if (copy > 0) std::printf(" [%4.2f]", copy / median);
    }
    if (copy > 0)
      std::printf("  memcpy %.1f GB/s", static_cast<double>(copied_bytes_) / copy / 1e9);
    std::printf("\n");
    std::fflush(stdout);
  }

  std::string what_;
  std::uint64_t weights_;
  std::size_t result_bytes_;
  std::vector<Contender> contenders_;
  std::uint64_t copied_bytes_ = 0;
  std::vector<std::byte> from_;
  Contender copy_;
};

class Bench {
public:
  bool run(TensorType type, bool weighted) const {
    const RowCodec& scalar = scalar_codec(type);
    const std::uint64_t rows = weighted ? k_cached_rows : rows_for(type);
    const std::uint64_t bytes = *tensor_bytes(type, rows * k_row);
    const float* weights = weighted ? importance_.data() : nullptr;
    Race race(std::string(info(type).name) + (weighted ? " importance" : ""), rows * k_row, bytes);
    if (ggml_ != nullptr && info(type).quantized) {
      race.add("reference", [=, this](std::byte* out) {
        ggml_->quantize(type, x_.data(), rows, k_row, weights, out);
      });
    }
    for (const KernelTarget target : available_kernels()) {
      const RowCodec& kernel = codec_for(target, type);
      if (target != KernelTarget::scalar && kernel.quantize == scalar.quantize) continue;
      race.add(std::string(kernel_name(target)), [=, this, &kernel](std::byte* out) {
        kernel.quantize(x_.data(), rows, k_row, weights, out);
      });
    }
    if (rows == k_rows) race.add_copy(rows * k_row * sizeof(float) + bytes);
    return race.run();
  }

  bool run_back(TensorType type) const {
    const RowCodec& scalar = scalar_codec(type);
    const std::vector<std::byte> blocks = make_blocks(type);
    const std::uint64_t weights = k_rows * k_row;
    Race race(std::string(info(type).name) + " to floats", weights, weights * sizeof(float));
    std::vector<float> probe(k_row);
    if (ggml_ != nullptr && ggml_->dequantize(type, blocks.data(), probe.data(), k_row)) {
      race.add("reference", [&](std::byte* out) {
        ggml_->dequantize(type, blocks.data(), reinterpret_cast<float*>(out), weights);
      });
    }
    for (const KernelTarget target : available_kernels()) {
      const RowCodec& kernel = codec_for(target, type);
      if (target != KernelTarget::scalar && kernel.dequantize == scalar.dequantize) continue;
      race.add(std::string(kernel_name(target)), [&](std::byte* out) {
        kernel.dequantize(blocks.data(), k_rows, k_row, reinterpret_cast<float*>(out));
      });
    }
    race.add_copy(weights * sizeof(float) + blocks.size());
    return race.run();
  }

private:
  static std::uint64_t rows_for(TensorType type) {
    using enum TensorType;
    constexpr std::array k_slow{iq2_xxs, iq2_xs, iq2_s,  iq3_xxs, iq3_s,
                                iq1_s,   iq1_m,  iq4_nl, iq4_xs};
    constexpr std::array k_searched{q2_k, q3_k, q4_k, q5_k, q6_k};
    const auto is_in = [type](const auto& list) {
      return std::find(list.begin(), list.end(), type) != list.end();
    };
    if (is_in(k_slow)) return k_few_rows;
    return is_in(k_searched) ? k_cached_rows : k_rows;
  }

  /// Blocks of k_rows rows, those of the first few again and again.
  std::vector<std::byte> make_blocks(TensorType type) const {
    std::vector<std::byte> few(*tensor_bytes(type, k_few_rows * k_row));
    codec_for(available_kernels().front(), type)
        .quantize(x_.data(), k_few_rows, k_row, importance_.data(), few.data());
    std::vector<std::byte> all;
    all.reserve(few.size() * (k_rows / k_few_rows));
    for (std::uint64_t i = 0; i < k_rows / k_few_rows; ++i)
      all.insert(all.end(), few.begin(), few.end());
    return all;
  }

  const test::GgmlLibrary* ggml_ = test::GgmlLibrary::find();
  std::vector<float> x_ = model_like(k_rows);
  std::vector<float> importance_ = importance_like();
};

} // namespace

int main(int argc, char** argv) {
  if (const char* library = std::getenv("MODELD_REFERENCE_LIB")) {
    setenv("MODELD_GGML_LIBRARY", library, 0);
  }
  const Bench bench;
  std::printf("millions of weights a second, one thread; (ratio to the first column), "
              "[ratio to memcpy of the same bytes]\n");
  bool equal = true;
  for (const TensorTypeInfo& type : all_tensor_types()) {
    const RowCodec& scalar = scalar_codec(type.type);
    const bool wanted = argc < 2 || std::any_of(argv + 1, argv + argc, [&](const char* name) {
                          return tensor_type_from_name(name) == type.type;
                        });
    if (scalar.quantize == nullptr || !wanted) continue;
    if (scalar.importance_use != ImportanceUse::required) equal &= bench.run(type.type, false);
    if (scalar.importance_use != ImportanceUse::ignored) equal &= bench.run(type.type, true);
    if (scalar.dequantize != nullptr) equal &= bench.run_back(type.type);
  }
  return equal ? 0 : 1;
}
