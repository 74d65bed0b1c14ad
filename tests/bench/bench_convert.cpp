// SPDX-License-Identifier: Apache-2.0
// Whole conversions of a generated Llama checkpoint in BF16 by the real program: time, rate and
// peak memory for each type. The peak must stay under 256 MiB whatever the size of the model.
//   usage: bench_convert [MIB_OF_WEIGHTS]      default 1024
#include "checkpoint.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>

namespace {

namespace fs = std::filesystem;
using namespace modeld::bench;

constexpr double k_peak_limit_mib = 256;

int measure(std::uint64_t mebibytes) {
  const BenchFolder folder;
  const fs::path model = folder / "Bench-Llama";
  const unsigned layers = make_checkpoint(model, mebibytes);
  std::uint64_t source = 0;
  for (const auto& entry : fs::directory_iterator(model))
    source += entry.file_size();
  std::printf("Llama of %u layers, %.0f MiB of BF16, page cache warm\n", layers,
              static_cast<double>(source) / (1 << 20));
  std::printf("%-8s %9s %11s %9s\n", "type", "seconds", "source MB/s", "peak MiB");
  bool good = true;
  for (const char* type : {"bf16", "f16", "q8_0", "Q8_0", "Q6_K", "Q4_K_M"}) {
    const Cost cost = run(
        {MODELCTL_PROGRAM, "convert", model, "--outtype", type, "-o", folder / "out.gguf", "-q"});
    std::printf("%-8s %9.2f %11.0f %9.0f%s\n", type, cost.seconds,
                static_cast<double>(source) / 1e6 / cost.seconds, cost.peak_mib,
                cost.peak_mib > k_peak_limit_mib ? "  OVER THE LIMIT" : "");
    good = good && cost.peak_mib <= k_peak_limit_mib;
    fs::remove(folder / "out.gguf");
  }
  return good ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  try {
    return measure(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1024);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
