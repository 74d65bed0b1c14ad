// SPDX-License-Identifier: Apache-2.0
#include "quantize/kernels/target.hpp"

#include "quantize/kernels/table.hpp"
#include "quantize/row_samples.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

using namespace modeld;
using namespace modeld::quantize;
using namespace modeld::test;

// MODELD_KERNEL names the target of the whole run, as it does in use.

namespace {

std::string forced_name() {
  const char* name = std::getenv("MODELD_KERNEL");
  return name == nullptr ? std::string(kernel_name(available_kernels().front())) : name;
}

/// Nothing where this machine lacks the target that the run is about.
std::optional<KernelTarget> target_of_run() {
  const auto chosen = choose_kernel(forced_name());
  if (!chosen) WARN("not checked: this machine has no kernel '" << forced_name() << "'");
  return chosen ? std::optional(*chosen) : std::nullopt;
}

std::size_t rounds() {
  const char* wanted = std::getenv("MODELD_TEST_ROUNDS");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 10;
}

/// Floats or blocks that start `shift` bytes beyond a boundary of 64.
class Shifted {
public:
  Shifted(std::size_t bytes, std::size_t shift) : storage_(bytes + 128 + shift, std::byte{0x5A}) {
    const auto address = std::bit_cast<std::uintptr_t>(storage_.data());
    at_ = storage_.data() + (64 - address % 64) % 64 + shift;
    end_ = at_ + bytes;
  }
  std::byte* bytes() { return at_; }
  float* floats() { return reinterpret_cast<float*>(at_); }
  bool tail_untouched() const {
    return std::all_of<const std::byte*>(end_, storage_.data() + storage_.size(),
                                         [](std::byte b) { return b == std::byte{0x5A}; });
  }

private:
  std::vector<std::byte> storage_;
  std::byte* at_;
  std::byte* end_;
};

struct Case {
  TensorType type;
  std::string_view kind;
  std::uint64_t rows;
  std::uint64_t row_elements;
  std::size_t shift; ///< in floats of the input; in bytes of the output
  std::vector<float> in;
  std::vector<float> importance; ///< empty: none
};

void check_quantize(const RowCodec& kernel, const Case& c, std::vector<std::byte>& blocks) {
  const TensorTypeInfo& type = info(c.type);
  Shifted in(c.in.size() * sizeof(float), c.shift * sizeof(float));
  std::memcpy(in.bytes(), c.in.data(), c.in.size() * sizeof(float));
  Shifted out(blocks.size(), c.shift);
  const float* importance = c.importance.empty() ? nullptr : c.importance.data();
  scalar_codec(c.type).quantize(c.in.data(), c.rows, c.row_elements, importance, blocks.data());
  kernel.quantize(in.floats(), c.rows, c.row_elements, importance, out.bytes());
  const auto* at = std::mismatch(blocks.data(), blocks.data() + blocks.size(), out.bytes()).first;
  const auto offset = static_cast<std::size_t>(at - blocks.data());
  INFO(type.name << ", " << c.kind << ", " << c.rows << " x " << c.row_elements << " shifted by "
                 << c.shift << (importance != nullptr ? ", weighted" : "") << ": block "
                 << offset / type.bytes << " byte " << offset % type.bytes);
  REQUIRE(offset == blocks.size());
  REQUIRE(out.tail_untouched());
}

void check_dequantize(const RowCodec& kernel, const Case& c, const std::vector<std::byte>& blocks) {
  std::vector<float> expected(c.in.size());
  Shifted in(blocks.size(), c.shift);
  std::memcpy(in.bytes(), blocks.data(), blocks.size());
  Shifted out(c.in.size() * sizeof(float), c.shift * sizeof(float));
  scalar_codec(c.type).dequantize(blocks.data(), c.rows, c.row_elements, expected.data());
  kernel.dequantize(in.bytes(), c.rows, c.row_elements, out.floats());
  INFO(info(c.type).name << ", " << c.kind << ", " << c.rows << " x " << c.row_elements);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto want = std::bit_cast<std::uint32_t>(expected[i]);
    const auto have = std::bit_cast<std::uint32_t>(out.floats()[i]);
    // Which NaN comes out of an invalid scale is not defined.
    if (want != have && !(expected[i] != expected[i] && out.floats()[i] != out.floats()[i])) {
      INFO("element " << i << ": " << expected[i] << " and " << out.floats()[i]);
      REQUIRE(want == have);
    }
  }
  REQUIRE(out.tail_untouched());
}

void check(const RowCodec& kernel, const Case& c) {
  std::vector<std::byte> blocks(*tensor_bytes(c.type, c.in.size()));
  check_quantize(kernel, c, blocks);
  check_dequantize(kernel, c, blocks);
}

Case make_case(TensorType type, const RowKind& kind, std::uint64_t seed, bool weighted) {
  Case c{type, kind.name, 1 + seed % 4, info(type).block * (1 + seed * seed % 19), seed % 9,
         {},   {}};
  c.in.resize(c.rows * c.row_elements);
  kind.fill(c.in, seed);
  if (weighted) c.importance = importance_sample(c.row_elements, seed);
  return c;
}

/// Every type that both sides write, with and without importance where that is a difference.
template <class Check>
void for_each_type(KernelTarget target, Check&& check_type) {
  for (const TensorTypeInfo& type : all_tensor_types()) {
    const RowCodec& scalar = scalar_codec(type.type);
    if (scalar.quantize == nullptr) continue;
    const RowCodec& kernel = codec_for(target, type.type);
    if (scalar.importance_use != ImportanceUse::required) check_type(kernel, false);
    if (scalar.importance_use != ImportanceUse::ignored) check_type(kernel, true);
  }
}

} // namespace

TEST_CASE("kernel_in_use is the one that MODELD_KERNEL forces, and its code ran",
          "[quantize][kernel]") {
  const auto target = target_of_run();
  if (!target) return;
  REQUIRE(kernel_in_use());
  REQUIRE(kernel_name(*kernel_in_use()) == forced_name());
  const bool is_kernel =
      codec(TensorType::q4_k).quantize != scalar_codec(TensorType::q4_k).quantize;
  REQUIRE(is_kernel == (*target != KernelTarget::scalar));
  for (const FindFamily find : kernel_families()) {
    const std::int64_t bit = target_bit(*target);
    if (*target != KernelTarget::scalar) REQUIRE(find(bit).compiled_for == bit);
  }
}

#if defined(__x86_64__)
TEST_CASE("available_kernels has what the processor has", "[quantize][kernel]") {
  const auto available = available_kernels();
  const auto has = [&](KernelTarget t) {
    return std::find(available.begin(), available.end(), t) != available.end();
  };
  REQUIRE(has(KernelTarget::avx2) == (__builtin_cpu_supports("avx2") != 0));
  REQUIRE(has(KernelTarget::avx512) == (__builtin_cpu_supports("avx512bw") != 0));
  REQUIRE(available.back() == KernelTarget::scalar);
}
#endif

TEST_CASE("choose_kernel refuses a name that is not there and lists those that are",
          "[quantize][kernel]") {
  const auto chosen = choose_kernel("mmx");
  REQUIRE_FALSE(chosen);
  REQUIRE(chosen.error().code == Errc::invalid_argument);
  REQUIRE(chosen.error().message.find("'mmx'") != std::string::npos);
  REQUIRE(chosen.error().message.find("scalar") != std::string::npos);
  REQUIRE(*choose_kernel("") == available_kernels().front());
}

TEST_CASE("codec_for equals the scalar definition bit for bit", "[quantize][kernel]") {
  const auto target = target_of_run();
  if (!target) return;
  for_each_type(*target, [](const RowCodec& kernel, bool weighted) {
    for (std::uint64_t seed = 0; seed < rounds(); ++seed) {
      for (const RowKind& kind : row_kinds()) {
        check(kernel, make_case(kernel.type, kind, seed, weighted));
      }
    }
  });
}

TEST_CASE("codec_for equals the scalar definition for values that are not finite",
          "[quantize][kernel][B05]") {
  const auto target = target_of_run();
  if (!target) return;
  constexpr float k_inf = std::numeric_limits<float>::infinity();
  constexpr float k_nan = std::numeric_limits<float>::quiet_NaN();
  for_each_type(*target, [&](const RowCodec& kernel, bool weighted) {
    for (const float bad : {k_inf, -k_inf, k_nan, 3e38F, -3e38F, 1e18F, 70000.0F}) {
      Case c = make_case(kernel.type, row_kinds().front(), 3, weighted);
      c.kind = "not finite";
      c.in[c.in.size() / 2] = bad;
      c.in.back() = bad;
      check(kernel, c);
    }
  });
}

TEST_CASE("codec_for equals the scalar definition for importance of any size",
          "[quantize][kernel]") {
  const auto target = target_of_run();
  if (!target) return;
  for_each_type(*target, [](const RowCodec& kernel, bool weighted) {
    if (!weighted) return;
    for (const int exponent : {-140, -100, -60, -30, 30, 60, 100}) {
      for (const RowKind& kind : row_kinds()) {
        Case c = make_case(kernel.type, kind, 3, true);
        for (float& w : c.importance)
          w = std::ldexp(w, exponent);
        check(kernel, c);
      }
    }
  });
}

// Neighbours on a grid that are equally near, or nearly: values halfway between levels of a few
// scales, with equal importance, moved by some units in the last place.
TEST_CASE("codec_for equals the scalar definition where points of a grid are equally near",
          "[quantize][kernel]") {
  const auto target = target_of_run();
  if (!target) return;
  std::mt19937_64 random(17);
  for_each_type(*target, [&](const RowCodec& kernel, bool weighted) {
    for (std::uint64_t round = 0; round < rounds(); ++round) {
      Case c = make_case(kernel.type, row_kinds().front(), round, weighted);
      c.kind = "equally near";
      const float scale = 0.01F * static_cast<float>(1 + random() % 7);
      for (float& v : c.in) {
        const auto level = static_cast<float>(static_cast<int>(random() % 33) - 16);
        v = std::ldexp(std::round(std::ldexp(scale * level, 12)), -12);
        for (auto steps = random() % 3; steps > 0; --steps)
          v = std::nextafter(v, 1.0F);
      }
      for (float& w : c.importance)
        w = 1.0F;
      check(kernel, c);
    }
  });
}

TEST_CASE("codec_for has a kernel for every type that is quantized, to blocks and back",
          "[quantize][kernel]") {
  const auto target = target_of_run();
  if (!target || *target == KernelTarget::scalar) return;
  for (const TensorTypeInfo& type : all_tensor_types()) {
    const RowCodec& scalar = scalar_codec(type.type);
    if (!type.quantized || scalar.quantize == nullptr) continue;
    const RowCodec& kernel = codec_for(*target, type.type);
    INFO(type.name);
    CHECK(kernel.quantize != scalar.quantize);
    CHECK(kernel.dequantize != scalar.dequantize);
  }
}

TEST_CASE("codec_for dequantizes any block as the scalar definition does", "[quantize][kernel]") {
  const auto target = target_of_run();
  if (!target) return;
  std::mt19937_64 random(7);
  for (const TensorTypeInfo& type : all_tensor_types()) {
    if (scalar_codec(type.type).dequantize == nullptr) continue;
    for (std::uint64_t round = 0; round < rounds(); ++round) {
      Case c{type.type, "random blocks", 1, type.block * (1 + random() % 70), round % 9, {}, {}};
      c.in.resize(c.row_elements);
      std::vector<std::byte> blocks(*tensor_bytes(type.type, c.row_elements));
      for (std::byte& b : blocks)
        b = static_cast<std::byte>(random());
      check_dequantize(codec_for(*target, type.type), c, blocks);
    }
  }
}

namespace {

/// Bell-shaped weights by integers alone, so that every processor and C library makes the same.
std::vector<float> portable_rows(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t sum = 0;
    for (int k = 0; k < 4; ++k)
      sum += static_cast<std::int64_t>(random() % 0x200000) - 0x100000;
    const float spread = 1.0F / static_cast<float>(1U << (10 + i / 64 % 20));
    x[i] = static_cast<float>(sum) / 0x100000 * (random() % 500 == 0 ? 8.0F : 1.0F) * spread;
  }
  return x;
}

/// FNV-1a.
std::uint64_t digest(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const std::byte b : bytes)
    hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001b3U;
  return hash;
}

struct Digest {
  TensorType type;
  std::uint64_t plain; ///< 0 where there is no definition without importance
  std::uint64_t weighted;
};

constexpr Digest k_digests[] = {
    {TensorType::f32, 0x5d078b7d51a1b61b, 0x5d078b7d51a1b61b},
    {TensorType::f16, 0x7a08f5c0159b9aa4, 0x7a08f5c0159b9aa4},
    {TensorType::q4_0, 0xfd6415d4c1fe98b9, 0xf269f23b3e2455c4},
    {TensorType::q4_1, 0xf80fdf0443038b96, 0x5ddf4fed3fcad33e},
    {TensorType::q5_0, 0x6c5ed3227c91189b, 0x6b8427d2547694ce},
    {TensorType::q5_1, 0xe7e8c504e5eaeccd, 0x739e3195c380121c},
    {TensorType::q8_0, 0x51ae91652da5faa0, 0x51ae91652da5faa0},
    {TensorType::q2_k, 0xbee6a32676299c18, 0xd970fbcda30f8f01},
    {TensorType::q3_k, 0xaff4b6a78944011c, 0x6ab093e89b831c3},
    {TensorType::q4_k, 0x647e4de1a700c406, 0x862615d4b975f7a0},
    {TensorType::q5_k, 0xbcc2583aeb96e15b, 0x826079a76d267623},
    {TensorType::q6_k, 0x84468940b6a2325d, 0x328e2489d171f9fe},
    {TensorType::iq2_xxs, 0, 0x76df032529a35e00},
    {TensorType::iq2_xs, 0, 0x39a9d3d74f1e434e},
    {TensorType::iq3_xxs, 0x73452918956dc6af, 0xa2605def85f60594},
    {TensorType::iq1_s, 0, 0x67e9e2dd5c2613b6},
    {TensorType::iq4_nl, 0x9a1ad17edd9de166, 0xc37bb914d9d11034},
    {TensorType::iq3_s, 0x1e4f96c0f2fd4d9d, 0x260f72c058b1fbd1},
    {TensorType::iq2_s, 0x8d5f4e5e2d624a90, 0xdb3e81021f39f2b9},
    {TensorType::iq4_xs, 0x6c7890ed923cf7e2, 0x823843c406b7269b},
    {TensorType::iq1_m, 0xf1f9b70345fc7d47, 0xc1f047fec11a3809},
    {TensorType::bf16, 0xe64f169bd525ce5d, 0xe64f169bd525ce5d},
    {TensorType::tq1_0, 0xc2718e7348819e25, 0xc2718e7348819e25},
    {TensorType::tq2_0, 0x9abf5c60a9570739, 0x9abf5c60a9570739},
    {TensorType::mxfp4, 0x84e8993d26f8ae87, 0x84e8993d26f8ae87},
    {TensorType::nvfp4, 0xe2ed921c30b94036, 0xe2ed921c30b94036},
    {TensorType::q1_0, 0x6d5ffe9ab7173d6f, 0x6d5ffe9ab7173d6f},
    {TensorType::q2_0, 0xc718e93f9cbbf71c, 0xc718e93f9cbbf71c},
};

} // namespace

// What ties the processors that the tests run on to each other: the kernels of each are compared
// with the definition as compiled there.
TEST_CASE("The definition gives the same bytes on every processor", "[quantize][kernel]") {
  constexpr std::uint64_t k_row = 1024;
  constexpr std::uint64_t k_rows = 24;
  const std::vector<float> x = portable_rows(k_rows * k_row, 5);
  std::vector<float> importance = portable_rows(k_row, 6);
  for (float& w : importance)
    w = w * w;
  for (const TensorTypeInfo& type : all_tensor_types()) {
    const RowCodec& scalar = scalar_codec(type.type);
    if (scalar.quantize == nullptr) continue;
    std::vector<std::byte> blocks(*tensor_bytes(type.type, x.size()));
    Digest got{type.type, 0, 0};
    if (scalar.importance_use != ImportanceUse::required) {
      scalar.quantize(x.data(), k_rows, k_row, nullptr, blocks.data());
      got.plain = digest(blocks);
    }
    scalar.quantize(x.data(), k_rows, k_row, importance.data(), blocks.data());
    got.weighted = digest(blocks);
    const auto* const expected = std::find_if(std::begin(k_digests), std::end(k_digests),
                                              [&](const Digest& d) { return d.type == type.type; });
    INFO(type.name << ": 0x" << std::hex << got.plain << ", 0x" << got.weighted);
    REQUIRE(expected != std::end(k_digests));
    CHECK(expected->plain == got.plain);
    CHECK(expected->weighted == got.weighted);
  }
}
