// SPDX-License-Identifier: Apache-2.0
// How fast files are checked: a safetensors header with 10,000 tensors, the header of a GGUF file
// (MODELD_BENCH_GGUF, with the reference's reader beside it where its library is at hand), and
// tensor data of every kind.
#include "validate/block_data.hpp"
#include "validate/check.hpp"
#include "validate/gguf.hpp"
#include "validate/gguf_model.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace modeld;
using namespace modeld::validate;

namespace {

/// The best of several runs, in seconds of this thread's processor time: all work here is done by
/// one thread in memory, and so a busy machine does not change the result.
template <class Work>
double best_of(int runs, Work&& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  double best = 1e9;
  for (int i = 0; i < runs; ++i) {
    const double start = now();
    work();
    best = std::min(best, now() - start);
  }
  return best;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

void expect(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "bench_validate: %s\n", what);
  std::exit(1);
}

void safetensors_header() {
  constexpr int k_tensors = 10'000;
  std::string json = "{\"__metadata__\":{\"format\":\"pt\"}";
  std::uint64_t at = 0;
  for (int i = 0; i < k_tensors; ++i) {
    json += ",\"model.layers." + std::to_string(i / 100) + ".mlp.experts." +
            std::to_string(i % 100) +
            ".down_proj.weight\":{\"dtype\":\"BF16\",\"shape\":[128,64],\"data_offsets\":[" +
            std::to_string(at) + "," + std::to_string(at + 16384) + "]}";
    at += 16384;
  }
  json += "}";
  while (json.size() % 8 != 0)
    json += ' ';
  std::string head(8, '\0');
  for (std::size_t i = 0; i < 8; ++i)
    head[i] = static_cast<char>(json.size() >> (8 * i) & 0xFF);
  head += json;
  bool good = true;
  const double seconds = best_of(20, [&] {
    good &= check_safetensors(bytes_of(head), head.size() + at, "m.safetensors").accepted();
  });
  expect(good, "the header was refused");
  std::printf("safetensors header, %d tensors, %zu bytes: %.2f ms, %.0f MB/s\n", k_tensors,
              head.size(), seconds * 1e3, static_cast<double>(head.size()) / seconds / 1e6);
  if (const char* path = std::getenv("MODELD_BENCH_WRITE_SAFETENSORS")) {
    std::ofstream file(path, std::ios::binary); // for other readers to be timed with
    file << head << std::string(at, '\0');
  }
}

/// The reference's own reader, at run time.
struct Reference {
  struct Params {
    bool no_alloc;
    void** context;
  };
  void* (*init)(const char*, Params) = nullptr;
  void (*release)(void*) = nullptr;

  static Reference find() {
    Reference reference;
    const char* path = std::getenv("MODELD_REFERENCE_LIB");
    void* handle = dlopen(path != nullptr ? path : MODELD_GGML_LIBRARY_PATH, RTLD_NOW);
    if (handle == nullptr) return reference;
    reference.init =
        reinterpret_cast<void* (*)(const char*, Params)>(dlsym(handle, "gguf_init_from_file"));
    reference.release = reinterpret_cast<void (*)(void*)>(dlsym(handle, "gguf_free"));
    return reference;
  }
};

void gguf_header() {
  const char* path = std::getenv("MODELD_BENCH_GGUF");
  if (path == nullptr) {
    std::printf("GGUF header: not measured, MODELD_BENCH_GGUF names no file\n");
    return;
  }
  std::ifstream stream(path, std::ios::binary);
  std::string file(static_cast<std::size_t>(std::filesystem::file_size(path)), '\0');
  stream.read(file.data(), static_cast<std::streamsize>(file.size()));
  bool good = !file.empty();
  const double structure =
      best_of(10, [&] { good &= check_gguf(bytes_of(file), file.size(), path).accepted(); });
  const double all = best_of(10, [&] {
    auto checked = check_gguf(bytes_of(file), file.size(), path);
    Report report(path);
    check_gguf_model(GgufModelView(*checked.value), report);
    good &= report.accepted();
  });
  expect(good, "the GGUF file was refused");
  std::printf("GGUF header, %zu bytes: structure %.2f ms, with every rule %.2f ms", file.size(),
              structure * 1e3, all * 1e3);
  const Reference reference = Reference::find();
  if (reference.init != nullptr && reference.release != nullptr) {
    const double theirs = best_of(10, [&] {
      void* gguf = reference.init(path, {true, nullptr});
      expect(gguf != nullptr, "the reference refused the file");
      reference.release(gguf);
    });
    std::printf("; gguf_init_from_file %.2f ms, ratio %.1f", theirs * 1e3, theirs / all);
  }
  std::printf("\n");
}

void data_scan() {
  constexpr std::size_t k_bytes = std::size_t{64} << 20; // more than caches hold
  std::string data(k_bytes, '\x11');                     // sound as every type
  data[1] = '\x12';                                      // and not all the same
  for (const TensorTypeInfo& type : all_tensor_types()) {
    const std::size_t size = k_bytes / type.bytes * type.bytes;
    bool good = true;
    const double seconds = best_of(3, [&] {
      Report report("m.gguf");
      scan_gguf_tensor({"w", bytes_of(data).first(size), 0, true, 0}, type.type, false, report);
      good &= report.accepted();
    });
    expect(good, "sound data was refused");
    std::printf("data scan %-8.*s %6.1f GB/s\n", static_cast<int>(type.name.size()),
                type.name.data(), static_cast<double>(size) / seconds / 1e9);
  }
}

} // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  safetensors_header();
  gguf_header();
  data_scan();
  return 0;
}
