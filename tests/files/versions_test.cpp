// SPDX-License-Identifier: Apache-2.0
#include "gguf_builder.hpp"
#include "tests/files/command.hpp"
#include "tests/support/memory_files.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace modeld::test;

namespace {

/// The same model in one version and byte order, with values that are not zero.
std::string model(std::uint32_t version, bool big_endian) {
  Tiny tiny(GgufWriter{.big_endian = big_endian, .short_lengths = version == 1});
  float value = -1.0F;
  for (Tiny::Tensor& tensor : tiny.tensors) {
    std::size_t count = 1;
    for (const std::uint64_t n : tensor.dims) {
      count *= n;
    }
    for (std::size_t i = 0; i < count; ++i) {
      value = value > 1 ? -1.0F : value + 0.037F;
      tensor.data += tiny.w.f32(value);
    }
  }
  std::string text = tiny.str();
  const std::string number = tiny.w.u32(version);
  return text.replace(4, number.size(), number);
}

} // namespace

TEST_CASE("modelctl quantize and split give the same files from every version and byte order",
          "[files][quantize][split]") {
  const Workplace place;
  std::ofstream(place / "v3.gguf", std::ios::binary) << model(3, false);
  std::ofstream(place / "v2.gguf", std::ios::binary) << model(2, false);
  std::ofstream(place / "v1.gguf", std::ios::binary) << model(1, false);
  std::ofstream(place / "big.gguf", std::ios::binary) << model(3, true);
  for (const std::string type : {"Q8_0", "Q4_0", "F16", "COPY"}) {
    REQUIRE(place.ctl({"quantize", "v3.gguf", "expected.gguf", type}).status == 0);
    for (const std::string in : {"v2", "v1", "big"}) {
      const auto done = place.ctl({"quantize", in + ".gguf", "out.gguf", type});
      INFO(in << " " << type << ": " << done.err);
      CHECK(done.status == 0);
      CHECK(place.sha256("out.gguf") == place.sha256("expected.gguf"));
    }
  }
  REQUIRE(place.ctl({"split", "--split-max-tensors", "5", "v3.gguf", "v3"}).status == 0);
  for (const std::string in : {"v2", "v1", "big"}) {
    const auto done = place.ctl({"split", "--split-max-tensors", "5", in + ".gguf", in});
    INFO(in << ": " << done.err);
    CHECK(done.status == 0);
    CHECK(place.sha256(in + "-00001-of-00003.gguf") == place.sha256("v3-00001-of-00003.gguf"));
    CHECK(place.sha256(in + "-00002-of-00003.gguf") == place.sha256("v3-00002-of-00003.gguf"));
  }
}
