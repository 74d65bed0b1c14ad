// SPDX-License-Identifier: Apache-2.0

// kernels_differential [BLOCKS [SEED [TYPE...]]]: every kernel target of this machine against the
// scalar definition, BLOCKS blocks of each type (default 100000) there and back, half of them with
// importance where the type takes it; and, where MODELD_GGML_LIBRARY names it, the reference's
// library on the same rows. Besides the kinds of row_samples.hpp there are rows of random bit
// patterns. As many types at a time as there are processors. Prints the first difference of a type
// with the seed that shows it again, and exits 1.

#include "quantize/ggml_library.hpp"
#include "quantize/kernels/target.hpp"
#include "quantize/row_samples.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace modeld;
using namespace modeld::quantize;
using namespace modeld::test;

namespace {

struct Rows {
  std::string_view kind;
  std::uint64_t seed = 0;
  std::uint64_t count = 0;
  std::uint64_t elements = 0;
  std::vector<float> in;
  std::vector<float> importance; ///< empty: none
  bool finite = true;
};

/// Any float, or only finite ones.
void fill_with_patterns(Rows& rows, std::mt19937_64& random) {
  rows.kind = "bit patterns";
  rows.finite = random() % 2 == 0;
  for (float& v : rows.in) {
    const auto bits = static_cast<std::uint32_t>(random());
    std::memcpy(&v, &bits, sizeof v);
    if (rows.finite && !std::isfinite(v)) v = 1.0F;
  }
}

Rows make_rows(const TensorTypeInfo& type, std::uint64_t seed, bool weighted) {
  std::mt19937_64 random(seed);
  Rows rows;
  rows.seed = seed;
  rows.count = 1 + random() % 20;
  rows.elements = type.block * (1 + random() % 12);
  rows.in.resize(rows.count * rows.elements);
  const auto kinds = row_kinds();
  const std::size_t kind = random() % (kinds.size() + 1);
  if (kind == kinds.size()) {
    fill_with_patterns(rows, random);
  } else {
    rows.kind = kinds[kind].name;
    kinds[kind].fill(rows.in, seed);
  }
  if (weighted) rows.importance = importance_sample(rows.elements, seed);
  return rows;
}

bool equal(const TensorTypeInfo& type, const Rows& rows, std::string_view who,
           const std::vector<std::byte>& expected, const std::vector<std::byte>& got) {
  if (expected == got) return true;
  const auto at = static_cast<std::size_t>(
      std::mismatch(expected.begin(), expected.end(), got.begin()).first - expected.begin());
  std::printf(
      "%s, %s: differs from the definition at block %zu byte %zu; %s, %zu x %zu%s, seed %llu\n",
      std::string(type.name).c_str(), std::string(who).c_str(), at / type.bytes, at % type.bytes,
      std::string(rows.kind).c_str(), static_cast<std::size_t>(rows.count),
      static_cast<std::size_t>(rows.elements), rows.importance.empty() ? "" : " weighted",
      static_cast<unsigned long long>(rows.seed));
  return false;
}

/// Which NaN comes out of an invalid scale is not defined.
bool same_value(float a, float b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b));
}

bool check_back(const TensorTypeInfo& type, const Rows& rows,
                const std::vector<std::byte>& blocks) {
  const RowCodec& scalar = scalar_codec(type.type);
  std::vector<float> expected(rows.in.size());
  std::vector<float> got(rows.in.size());
  scalar.dequantize(blocks.data(), rows.count, rows.elements, expected.data());
  for (const KernelTarget target : available_kernels()) {
    const RowCodec& kernel = codec_for(target, type.type);
    if (kernel.dequantize == scalar.dequantize) continue;
    kernel.dequantize(blocks.data(), rows.count, rows.elements, got.data());
    if (std::equal(expected.begin(), expected.end(), got.begin(), same_value)) continue;
    std::printf("%s, %s: floats differ from the definition's; seed %llu\n",
                std::string(type.name).c_str(), std::string(kernel_name(target)).c_str(),
                static_cast<unsigned long long>(rows.seed));
    return false;
  }
  return true;
}

bool check(const TensorTypeInfo& type, const Rows& rows) {
  const float* importance = rows.importance.empty() ? nullptr : rows.importance.data();
  std::vector<std::byte> expected(*tensor_bytes(type.type, rows.in.size()));
  scalar_codec(type.type).quantize(rows.in.data(), rows.count, rows.elements, importance,
                                   expected.data());
  std::vector<std::byte> got(expected.size());
  bool good = true;
  for (const KernelTarget target : available_kernels()) {
    const RowCodec& kernel = codec_for(target, type.type);
    if (kernel.quantize == scalar_codec(type.type).quantize) continue;
    kernel.quantize(rows.in.data(), rows.count, rows.elements, importance, got.data());
    good = equal(type, rows, kernel_name(target), expected, got) && good;
  }
  // The reference may stop the program where sums are no numbers; finite rows of kinds are fine.
  const GgmlLibrary* ggml = GgmlLibrary::find();
  if (ggml != nullptr && type.quantized && rows.kind != "bit patterns") {
    ggml->quantize(type.type, rows.in.data(), rows.count, rows.elements, importance, got.data());
    good = equal(type, rows, "reference library", expected, got) && good;
  }
  good = check_back(type, rows, expected) && good;
  // Blocks that no quantizer makes.
  std::mt19937_64 random(rows.seed);
  for (std::byte& b : got)
    b = static_cast<std::byte>(random());
  return check_back(type, rows, got) && good;
}

bool check_type(const TensorTypeInfo& type, std::uint64_t blocks, std::uint64_t seed) {
  const RowCodec& scalar = scalar_codec(type.type);
  if (scalar.quantize == nullptr) return true;
  std::uint64_t done = 0;
  bool good = true;
  for (std::uint64_t round = 0; done < blocks && good; ++round) {
    bool weighted = scalar.importance_use == ImportanceUse::required;
    if (scalar.importance_use == ImportanceUse::optional) weighted = round % 2 == 1;
    const Rows rows = make_rows(type, seed + round, weighted);
    good = check(type, rows);
    done += rows.in.size() / type.block;
  }
  std::printf("%-8s %llu blocks%s\n", std::string(type.name).c_str(),
              static_cast<unsigned long long>(done), good ? "" : ": FAILED");
  std::fflush(stdout);
  return good;
}

} // namespace

int main(int argc, char** argv) {
  const std::uint64_t blocks = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  std::vector<const TensorTypeInfo*> types;
  for (const TensorTypeInfo& type : all_tensor_types()) {
    const bool wanted = argc < 4 || std::any_of(argv + 3, argv + argc, [&](const char* name) {
                          return tensor_type_from_name(name) == type.type;
                        });
    if (wanted) types.push_back(&type);
  }
  std::atomic<std::size_t> next{0};
  std::atomic<bool> good{true};
  const auto work = [&] {
    for (std::size_t i = next++; i < types.size(); i = next++) {
      if (!check_type(*types[i], blocks, seed)) good = false;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back(work);
  for (std::thread& thread : threads)
    thread.join();
  return good ? 0 : 1;
}
