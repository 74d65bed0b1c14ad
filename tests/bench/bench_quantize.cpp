// SPDX-License-Identifier: Apache-2.0
// Whole files: modelctl quantize against llama_model_quantize of the reference's library, in turns
// on the same machine, page cache warm, files compared byte by byte. And from safetensors straight
// to Q4_K_M against converter plus quantizer, where MODELD_BENCH_CONVERTER names a program that is
// called as CONVERTER FOLDER --outfile FILE --outtype bf16.
//   usage: bench_quantize [MIB_OF_WEIGHTS [THREADS]]      default 1392 (0.73 G weights), 2
#include "checkpoint.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace {

namespace fs = std::filesystem;
using namespace modeld::bench;

/// The parameters of llama.cpp v0.4.0, as laid out in memory.
struct ReferenceParams {
  std::int32_t threads;
  std::int32_t file_type;
  std::int32_t output_type;
  std::int32_t embedding_type;
  bool flags[6];
  const void* lists[4];
  std::size_t buffer;
};

struct Target {
  const char* name;
  std::int32_t file_type; ///< of the reference
  double goal;            ///< how many times faster than it
};

/// libllama beside the library that MODELD_REFERENCE_LIB or the build names.
fs::path reference_library() {
  const char* given = std::getenv("MODELD_REFERENCE_LIB");
  const fs::path base = given != nullptr && *given != 0 ? given : MODELD_GGML_LIBRARY_PATH;
  return base.parent_path() / "libllama.v0.4.0.so";
}

int reference_quantize(const fs::path& in, const fs::path& out, std::int32_t file_type,
                       int threads) {
  if (std::freopen("/dev/null", "w", stderr) == nullptr) return 126;
  void* library = dlopen(reference_library().c_str(), RTLD_NOW);
  if (library == nullptr) return 125;
  using Defaults = ReferenceParams (*)();
  using Quantize = std::uint32_t (*)(const char*, const char*, const ReferenceParams*);
  using Start = void (*)();
  reinterpret_cast<Start>(dlsym(library, "llama_backend_init"))();
  ReferenceParams params =
      reinterpret_cast<Defaults>(dlsym(library, "llama_model_quantize_default_params"))();
  params.threads = threads;
  params.file_type = file_type;
  const auto quantize = reinterpret_cast<Quantize>(dlsym(library, "llama_model_quantize"));
  return quantize(in.c_str(), out.c_str(), &params) == 0 ? 0 : 1;
}

bool same_bytes(const fs::path& a, const fs::path& b) {
  if (fs::file_size(a) != fs::file_size(b)) return false;
  std::ifstream first(a, std::ios::binary);
  std::ifstream second(b, std::ios::binary);
  std::vector<char> x(std::size_t{1} << 20);
  std::vector<char> y(x.size());
  while (first.read(x.data(), static_cast<std::streamsize>(x.size())), first.gcount() > 0) {
    second.read(y.data(), static_cast<std::streamsize>(y.size()));
    if (!std::equal(x.begin(), x.begin() + first.gcount(), y.begin())) return false;
  }
  return true;
}

/// The run with the middle wall time.
Cost median(std::vector<Cost> costs) {
  std::sort(costs.begin(), costs.end(),
            [](const Cost& a, const Cost& b) { return a.seconds < b.seconds; });
  return costs[costs.size() / 2];
}

void show(const char* what, const Cost& cost) {
  std::printf("%-26s %8.2f %10.2f %9.0f\n", what, cost.seconds, cost.processor, cost.peak_mib);
}

void show_ratio(const Cost& reference, const Cost& ours, double goal) {
  std::printf("%-26s %7.1fx %9.1fx            goal %.0fx\n", "  faster",
              reference.seconds / ours.seconds, reference.processor / ours.processor, goal);
}

Cost quantize_ours(const fs::path& in, const fs::path& out, const char* type, int threads) {
  return run({MODELCTL_PROGRAM, "-q", "quantize", in, out, type, std::to_string(threads)});
}

/// Three turns of both; the last files stay.
bool compare(const BenchFolder& folder, const Target& target, int threads) {
  std::vector<Cost> theirs;
  std::vector<Cost> ours;
  for (int turn = 0; turn < 3; ++turn) {
    ours.push_back(quantize_ours(folder / "in.gguf", folder / "ours.gguf", target.name, threads));
    theirs.push_back(run([&] {
      return reference_quantize(folder / "in.gguf", folder / "theirs.gguf", target.file_type,
                                threads);
    }));
  }
  const Cost reference = median(theirs);
  show((std::string(target.name) + ", reference").c_str(), reference);
  show((std::string(target.name) + ", modelctl").c_str(), median(ours));
  show_ratio(reference, median(ours), target.goal);
  const bool same = same_bytes(folder / "ours.gguf", folder / "theirs.gguf");
  std::printf("  files %s\n", same ? "equal" : "DIFFER");
  return same;
}

/// Both ways from safetensors to Q4_K_M, in turns: straight, and converter plus quantizer.
bool convert_and_compare(const BenchFolder& folder, int threads, bool with_reference) {
  const char* converter = std::getenv("MODELD_BENCH_CONVERTER");
  const bool race = with_reference && converter != nullptr && *converter != 0;
  std::vector<Cost> ours;
  std::vector<Cost> converted;
  std::vector<Cost> theirs;
  for (int turn = 0; turn < (race ? 3 : 1); ++turn) {
    ours.push_back(run({MODELCTL_PROGRAM, "-q", "convert", folder / "Bench-Llama", "--outtype",
                        "Q4_K_M", "-j", std::to_string(threads), "-o", folder / "straight.gguf"}));
    if (!race) break;
    converted.push_back(run({converter, folder / "Bench-Llama", "--outfile",
                             folder / "converted.gguf", "--outtype", "bf16"}));
    const Cost quantized = run([&] {
      return reference_quantize(folder / "converted.gguf", folder / "theirs.gguf", 15, threads);
    });
    theirs.push_back({converted.back().seconds + quantized.seconds,
                      converted.back().processor + quantized.processor,
                      std::max(converted.back().peak_mib, quantized.peak_mib)});
  }
  show("safetensors to Q4_K_M", median(ours));
  if (!race) return true;
  show("converter alone, to BF16", median(converted));
  show("converter and quantizer", median(theirs));
  show_ratio(median(theirs), median(ours), 10);
  const bool same = same_bytes(folder / "straight.gguf", folder / "theirs.gguf");
  std::printf("  files %s\n", same ? "equal" : "DIFFER");
  return same;
}

int measure(std::uint64_t mebibytes, int threads) {
  const BenchFolder folder;
  const unsigned layers = make_checkpoint(folder / "Bench-Llama", mebibytes);
  run({MODELCTL_PROGRAM, "-q", "convert", folder / "Bench-Llama", "--outtype", "bf16", "-o",
       folder / "in.gguf"});
  std::printf("Llama of %u layers, %.2f GB of BF16, %d threads; medians of 3\n", layers,
              static_cast<double>(fs::file_size(folder / "in.gguf")) / 1e9, threads);
  std::printf("%-26s %8s %10s %9s\n", "", "seconds", "processor", "peak MiB");
  bool good = true;
  const bool with_reference = fs::exists(reference_library());
  for (const Target& target : {Target{"Q8_0", 7, 3}, Target{"Q4_K_M", 15, 8}}) {
    if (with_reference) {
      good = compare(folder, target, threads) && good;
    } else {
      show(target.name,
           quantize_ours(folder / "in.gguf", folder / "ours.gguf", target.name, threads));
    }
  }
  good = convert_and_compare(folder, threads, with_reference) && good;
  return good ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  try {
    return measure(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1392,
                   argc > 2 ? std::atoi(argv[2]) : 2);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
