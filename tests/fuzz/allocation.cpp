// SPDX-License-Identifier: Apache-2.0
// Memory of every parser that has a fuzz target is at most a constant times the bytes it is given,
// whatever numbers they hold: each seed is run with its numbers made huge, one after the other. A
// program of its own, since it replaces the allocator. usage: fuzz_allocation SEEDS_FOLDER
#include "targets.hpp"
#include "tests/support/counting_memory.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

namespace fs = std::filesystem;
using modeld::fuzz::Target;

/// Buffers of fixed size, findings, caches: whatever the input.
constexpr std::size_t k_fixed = std::size_t{8} << 20;
/// A value of JSON or YAML is a node of some hundred bytes for two of text.
constexpr std::size_t k_factor = 400;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(fs::file_size(path)), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

bool bounded(std::string_view name, Target target, const std::string& text) {
  const std::size_t used = modeld::test::peak_memory(
      [&] { target(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()); });
  if (used <= k_fixed + k_factor * text.size()) return true;
  std::fprintf(stderr, "%.*s: %zu bytes of memory for an input of %zu\n",
               static_cast<int>(name.size()), name.data(), used, text.size());
  return false;
}

/// The seed, and copies of it in which a number is huge, in binary and in text.
bool run_seed(std::string_view name, Target target, const std::string& seed) {
  bool good = bounded(name, target, seed);
  constexpr std::size_t k_runs = 300;
  const std::size_t step = seed.size() / k_runs + 1;
  for (std::size_t at = 0; at < seed.size(); at += step) {
    for (const std::string_view huge :
         {std::string_view("\xff\xff\xff\x7f", 4), std::string_view("\0\0\0\x10", 4),
          std::string_view("\0\0\0\0\1\0\0\0", 8),
          std::string_view("\xff\xff\xff\xff\xff\xff\xff\x7f", 8)}) {
      std::string copy = seed;
      copy.replace(at, std::min(huge.size(), copy.size() - at), huge);
      good = bounded(name, target, copy) && good;
    }
    if (seed[at] < '0' || seed[at] > '9') continue;
    for (const char* huge : {"2147483647", "99999999", "281474976710655"}) {
      std::string copy = seed;
      copy.replace(at, 1, huge);
      good = bounded(name, target, copy) && good;
    }
  }
  return good;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  bool good = true;
  for (const auto& [name, target] : modeld::fuzz::k_targets) {
    std::size_t seeds = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(argv[1]) / name)) {
      const std::string seed = read(entry.path());
      if (seeds++ == 0) // what is made once and kept
        target(reinterpret_cast<const std::uint8_t*>(seed.data()), seed.size());
      good = run_seed(name, target, seed) && good;
    }
    if (seeds == 0) good = false;
  }
  return good ? 0 : 1;
}
