// SPDX-License-Identifier: Apache-2.0
// Whole conversions of a generated Llama checkpoint in BF16 by the real program: time, rate and
// peak memory for each type. The peak must stay under 256 MiB whatever the size of the model, and
// for BF16 under 100 MiB. Where MODELD_BENCH_CONVERTER names a program that is called as CONVERTER
// FOLDER
// --outfile FILE --outtype bf16, its file is compared and the cost of both is shown (goal: 5
// times).
//   usage: bench_convert [MIB_OF_WEIGHTS]      default 1024
#include "checkpoint.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <string_view>

namespace {

namespace fs = std::filesystem;
using namespace modeld::bench;

constexpr double k_peak_limit_mib = 256;
constexpr double k_bf16_limit_mib = 100;

bool same_bytes(const fs::path& a, const fs::path& b) {
  std::ifstream left(a, std::ios::binary);
  std::ifstream right(b, std::ios::binary);
  return std::equal(std::istreambuf_iterator<char>(left), {}, std::istreambuf_iterator<char>(right),
                    {});
}

void compare_with_converter(const BenchFolder& folder, const Cost& ours) {
  const char* converter = std::getenv("MODELD_BENCH_CONVERTER");
  if (converter == nullptr || *converter == 0) return;
  const fs::path file = folder / "converter.gguf";
  const Cost theirs =
      run({converter, folder / "Bench-Llama", "--outfile", file, "--outtype", "bf16"});
  std::printf(
      "the converter to bf16: %.2f s, %.2f s of processor time, %.0f MiB; modelctl: %.2f s, "
      "%.2f s, %.0f MiB\n  %.1f times by the clock, %.1f times by processor time, files %s\n",
      theirs.seconds, theirs.processor, theirs.peak_mib, ours.seconds, ours.processor,
      ours.peak_mib, theirs.seconds / ours.seconds, theirs.processor / ours.processor,
      same_bytes(file, folder / "out.gguf") ? "equal" : "DIFFER");
  fs::remove(file);
}

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
    const bool bf16 = std::string_view(type) == "bf16";
    const double limit = bf16 ? k_bf16_limit_mib : k_peak_limit_mib;
    const Cost cost = run(
        {MODELCTL_PROGRAM, "convert", model, "--outtype", type, "-o", folder / "out.gguf", "-q"});
    std::printf("%-8s %9.2f %11.0f %9.0f%s\n", type, cost.seconds,
                static_cast<double>(source) / 1e6 / cost.seconds, cost.peak_mib,
                cost.peak_mib > limit ? "  OVER THE LIMIT" : "");
    good = good && cost.peak_mib <= limit;
    if (bf16) compare_with_converter(folder, cost);
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
