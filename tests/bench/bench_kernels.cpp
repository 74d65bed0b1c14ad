// SPDX-License-Identifier: Apache-2.0

// bench_kernels [TYPE...]: millions of weights a second, one thread, for each type and kernel
// target; where MODELD_REFERENCE_LIB (or MODELD_GGML_LIBRARY) names the reference's libggml-base,
// also the ratio to it. Medians of interleaved runs in processor time, results compared. Exit
// status 1 where bytes differ.

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

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The shape of a trained matrix: normal rows of different spread, a few large weights.
std::vector<float> model_like(std::uint64_t rows) {
  std::mt19937_64 random(11);
  std::normal_distribution<float> normal;
  std::vector<float> x(rows * k_row);
  for (std::uint64_t r = 0; r < rows; ++r) {
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

struct Contender {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds;

  double median() {
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  }
};

/// One warm-up, then k_runs in turn.
void race(std::vector<Contender>& contenders) {
  for (int run = -1; run < k_runs; ++run) {
    for (Contender& c : contenders) {
      const double start = processor_seconds();
      c.run();
      if (run >= 0) c.seconds.push_back(processor_seconds() - start);
    }
  }
}

void print_row(const std::string& what, std::vector<Contender>& contenders, double weights,
               bool has_reference) {
  std::printf("%-22s", what.c_str());
  const double first = contenders.front().median();
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const double median = contenders[i].median();
    std::printf("  %s %7.1f", contenders[i].name.c_str(), weights / median / 1e6);
    if (i > 0 && has_reference) std::printf(" (%5.2fx)", first / median);
  }
  std::printf("\n");
  std::fflush(stdout);
}

class Bench {
public:
  /// Whether all results were equal.
  bool run(TensorType type, bool weighted) {
    const RowCodec& scalar = scalar_codec(type);
    const std::uint64_t rows = rows_for(type);
    const float* weights = weighted ? importance_.data() : nullptr;
    std::vector<Contender> contenders;
    std::vector<std::vector<std::byte>> results;
    results.reserve(8);
    const auto add = [&](std::string name, auto quantize) {
      auto& out = results.emplace_back(*tensor_bytes(type, rows * k_row));
      contenders.push_back({std::move(name), [=, &out] { quantize(out.data()); }, {}});
    };
    if (ggml_ != nullptr && info(type).quantized) {
      add("reference", [=, this](std::byte* out) {
        ggml_->quantize(type, x_.data(), rows, k_row, weights, out);
      });
    }
    for (const KernelTarget target : available_kernels()) {
      const RowCodec& kernel = codec_for(target, type);
      if (target != KernelTarget::scalar && kernel.quantize == scalar.quantize) continue;
      add(std::string(kernel_name(target)), [=, this, &kernel](std::byte* out) {
        kernel.quantize(x_.data(), rows, k_row, weights, out);
      });
    }
    return finish(std::string(info(type).name) + (weighted ? " importance" : ""), contenders,
                  results, rows);
  }

  bool run_back(TensorType type) {
    const RowCodec& scalar = scalar_codec(type);
    const std::uint64_t rows = 256;
    std::vector<std::byte> blocks(*tensor_bytes(type, rows * k_row));
    codec_for(available_kernels().front(), type)
        .quantize(x_.data(), rows, k_row, importance_.data(), blocks.data());
    std::vector<Contender> contenders;
    std::vector<std::vector<std::byte>> results;
    results.reserve(8);
    const auto add = [&](std::string name, auto dequantize) {
      auto& out = results.emplace_back(rows * k_row * sizeof(float));
      contenders.push_back(
          {std::move(name), [=, &out] { dequantize(reinterpret_cast<float*>(out.data())); }, {}});
    };
    std::vector<float> probe(rows * k_row);
    const bool has_reference =
        ggml_ != nullptr && ggml_->dequantize(type, blocks.data(), probe.data(), probe.size());
    if (has_reference) {
      add("reference",
          [&](float* out) { ggml_->dequantize(type, blocks.data(), out, rows * k_row); });
    }
    for (const KernelTarget target : available_kernels()) {
      const RowCodec& kernel = codec_for(target, type);
      if (target != KernelTarget::scalar && kernel.dequantize == scalar.dequantize) continue;
      add(std::string(kernel_name(target)),
          [&](float* out) { kernel.dequantize(blocks.data(), rows, k_row, out); });
    }
    return finish(std::string(info(type).name) + " to floats", contenders, results, rows);
  }

  /// Bytes a second that a copy of the same rows moves; the bound of the simple types.
  void run_copy() {
    std::vector<float> to(x_.size());
    std::vector<Contender> one{
        {"memcpy", [&] { std::memcpy(to.data(), x_.data(), 4 * x_.size()); }, {}}};
    race(one);
    print_row("copy of F32", one, static_cast<double>(x_.size()), false);
  }

private:
  static std::uint64_t rows_for(TensorType type) {
    using enum TensorType;
    constexpr std::array k_slow{iq2_xxs, iq2_xs, iq2_s,  iq3_xxs, iq3_s,
                                iq1_s,   iq1_m,  iq4_nl, iq4_xs};
    const bool slow = std::find(k_slow.begin(), k_slow.end(), type) != k_slow.end();
    return slow ? 32 : 256;
  }

  bool finish(const std::string& what, std::vector<Contender>& contenders,
              const std::vector<std::vector<std::byte>>& results, std::uint64_t rows) const {
    race(contenders);
    print_row(what, contenders, static_cast<double>(rows * k_row),
              contenders.front().name == "reference");
    bool equal = true;
    for (const auto& result : results) {
      if (result == results.front()) continue;
      std::printf("%s: bytes differ\n", what.c_str());
      equal = false;
    }
    return equal;
  }

  const test::GgmlLibrary* ggml_ = test::GgmlLibrary::find();
  std::vector<float> x_ = model_like(256);
  std::vector<float> importance_ = importance_like();
};

} // namespace

int main(int argc, char** argv) {
  if (const char* library = std::getenv("MODELD_REFERENCE_LIB")) {
    setenv("MODELD_GGML_LIBRARY", library, 0);
  }
  Bench bench;
  std::printf("millions of weights a second, one thread; ratio to the first column\n");
  bench.run_copy();
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
