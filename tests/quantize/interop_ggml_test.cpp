// SPDX-License-Identifier: Apache-2.0
#include "quantize/ggml_library.hpp"
#include "quantize/kernels/row_codec.hpp"
#include "quantize/row_samples.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using namespace modeld;
using namespace modeld::quantize;
using namespace modeld::test;

namespace {

std::size_t rounds() {
  const char* wanted = std::getenv("MODELD_TEST_ROUNDS");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 12;
}

/// Index of the first byte that differs, or the size.
std::size_t first_difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
}

struct Case {
  const RowCodec& codec;
  std::string_view kind;
  std::vector<float> in;
  std::uint64_t rows;
  std::uint64_t row_elements;
  std::vector<float> importance; ///< empty: none
};

void check(const GgmlLibrary& ggml, const Case& c) {
  const TensorTypeInfo& type = info(c.codec.type);
  std::vector<std::byte> ours(*tensor_bytes(type.type, c.in.size()));
  std::vector<std::byte> theirs(ours.size());
  const float* weights = c.importance.empty() ? nullptr : c.importance.data();
  c.codec.quantize(c.in.data(), c.rows, c.row_elements, weights, ours.data());
  ggml.quantize(type.type, c.in.data(), c.rows, c.row_elements, weights, theirs.data());
  const std::size_t at = first_difference(ours, theirs);
  INFO(type.name << ", " << c.kind << ", " << c.rows << " x " << c.row_elements
                 << (weights != nullptr ? ", weighted" : "") << ": block " << at / type.bytes
                 << " byte " << at % type.bytes);
  REQUIRE(at == ours.size());

  std::vector<float> decoded(c.in.size());
  std::vector<float> expected(c.in.size());
  c.codec.dequantize(ours.data(), c.rows, c.row_elements, decoded.data());
  REQUIRE(ggml.dequantize(type.type, ours.data(), expected.data(), expected.size()));
  REQUIRE(std::memcmp(decoded.data(), expected.data(), decoded.size() * sizeof(float)) == 0);
}

void compare(const GgmlLibrary& ggml, TensorType type, bool weighted) {
  const RowCodec& c = scalar_codec(type);
  for (std::uint64_t seed = 0; seed < rounds(); ++seed) {
    const std::uint64_t rows = 1 + seed % 3;
    const std::uint64_t row_elements = info(type).block * (1 + seed * seed % 6);
    for (const RowKind& kind : row_kinds()) {
      Case one{c, kind.name, std::vector<float>(rows * row_elements), rows, row_elements, {}};
      kind.fill(one.in, seed);
      if (weighted) one.importance = importance_sample(row_elements, seed);
      check(ggml, one);
    }
  }
}

} // namespace

TEST_CASE("scalar_codec equals ggml_quantize_chunk and dequantize_row bit for bit", "[interop]") {
  const GgmlLibrary* ggml = GgmlLibrary::find();
  INFO("tests/interop/get_reference.sh fetches the reference's library");
  REQUIRE(ggml != nullptr);
  for (const TensorTypeInfo& type : all_tensor_types()) {
    const RowCodec& c = scalar_codec(type.type);
    if (c.quantize == nullptr || !type.quantized) continue;
    DYNAMIC_SECTION(type.name << " without importance") {
      if (c.importance_use != ImportanceUse::required) compare(*ggml, type.type, false);
    }
    DYNAMIC_SECTION(type.name << " with importance") {
      compare(*ggml, type.type, true);
    }
  }
}
