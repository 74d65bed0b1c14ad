// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/torch_math.hpp"

#include "quantize/convert/sinusoids.hpp"
#include "quantize/convert/torch_pow.hpp"
#include "quantize/convert/transform_family.hpp"
#include "quantize/convert/transform_value.hpp"
#include "validate/sha256.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <limits>

// Expected values: PyTorch 2.15 on x86-64, its exponential as it is on Intel processors with
// AVX-512.

using namespace modeld;
using namespace modeld::quantize;

namespace {

/// The digest of torch_exp over every `step`th float of [from, to), negated where `sign` is -1.
std::string digest_of_exp(float from, float to, std::uint32_t step, float sign) {
  std::vector<float> results;
  for (auto bits = std::bit_cast<std::uint32_t>(from); bits < std::bit_cast<std::uint32_t>(to);
       bits += step) {
    results.push_back(torch_exp(sign * std::bit_cast<float>(bits)));
  }
  return validate::sha256_of(std::as_bytes(std::span(results))).hex();
}

/// |values| whose mean was taken there.
SourcePtr scattered(std::uint64_t count) {
  std::vector<float> values;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto z = static_cast<std::uint32_t>(i * 2654435761U);
    values.push_back(static_cast<float>(z >> 8U) * 0x1p-24F - 0.5F);
  }
  return owned_tensor({count}, std::move(values));
}

} // namespace

TEST_CASE("torch_exp equals the framework's where that is not the nearest value",
          "[quantize][transform][torch]") {
  CHECK(torch_exp(0x1.0002b6p-1F) == 0x1.a614d6p+0F); // nearest: ...d4
  CHECK(torch_exp(0x1.03d63ap-1F) == 0x1.a93f5ap+0F);
  CHECK(torch_exp(0x1.2cdfa4p-1F) == 0x1.ccbbf2p+0F);
  CHECK(torch_exp(0x1.9f5df4p-1F) == 0x1.201898p+1F);
  CHECK(torch_exp(1.0F) == 0x1.5bf0a8p+1F);
  CHECK(torch_exp(0.0F) == 1.0F);
  CHECK(torch_exp(-0.0F) == 1.0F);
}

TEST_CASE("torch_exp equals the framework's over the whole range", "[quantize][transform][torch]") {
  CHECK(digest_of_exp(0x1p-40F, 87.0F, 997, 1) ==
        "c79b1b95c8f8418efbad70a00ca6f002242eca0e442400c2a3248797af18050d");
  CHECK(digest_of_exp(0x1p-40F, 87.0F, 997, -1) ==
        "7a10593aa4279e06922c58c02e7c6a3af9c2ddd824bdcb92d59bf319833dbd9e");
  // Up to infinity, and down to denormal values and zero.
  CHECK(digest_of_exp(87.0F, 90.0F, 97, 1) ==
        "0a845ff501c4737f799d6dab263a4b0f5ca1ff075389e8531ac32346b0d6213b");
  CHECK(digest_of_exp(87.0F, 110.0F, 97, -1) ==
        "61665eddf2f666fc740cceb7a54bfdc02f8171810e46614be14cc9dc32be124a");
}

TEST_CASE("torch_exp takes what is not finite", "[quantize][transform][torch]") {
  constexpr float k_infinity = std::numeric_limits<float>::infinity();
  CHECK(std::isnan(torch_exp(std::numeric_limits<float>::quiet_NaN())));
  CHECK(torch_exp(k_infinity) == k_infinity);
  CHECK(torch_exp(-k_infinity) == 0.0F);
  CHECK(torch_exp(std::numeric_limits<float>::max()) == k_infinity);
  CHECK(torch_exp(std::numeric_limits<float>::lowest()) == 0.0F);
  CHECK(torch_exp(std::numeric_limits<float>::denorm_min()) == 1.0F);
}

TEST_CASE("torch_mean_magnitude sums in the framework's order", "[quantize][transform][torch]") {
  const std::pair<std::uint64_t, float> expected[] = {{1, 0x1p-1F},
                                                      {5, 0x1.02da7p-2F},
                                                      {7, 0x1.134e02p-2F},
                                                      {8, 0x1.07221ap-2F},
                                                      {9, 0x1.1c71c6p-2F},
                                                      {31, 0x1.011cbp-2F},
                                                      {32, 0x1.03fcd4p-2F},
                                                      {33, 0x1.04b512p-2F},
                                                      {100, 0x1.014ecep-2F},
                                                      {1000, 0x1.0003a4p-2F},
                                                      {4099, 0x1.000864p-2F},
                                                      {8192, 0x1.0001fep-2F},
                                                      {32767, 0x1.000002p-2F},
                                                      {32768, 0x1.00010cp-2F},
                                                      {32769, 0x1.0000f4p-2F},
                                                      {100003, 0x1.000054p-2F},
                                                      {1048576, 0x1.00001p-2F}};
  for (const auto& [count, mean] : expected) {
    INFO(count << " elements");
    CHECK(torch_mean_magnitude(*scattered(count)).value() == mean);
  }
}

TEST_CASE("ternary weights read nothing before they are asked for", "[quantize][transform]") {
  class Counted final : public SourceTensor {
  public:
    Counted() : SourceTensor(ElementType::f32, {4}) {}
    Result<void> read(std::uint64_t, std::uint64_t count, std::byte* out) const override {
      ++reads;
      std::fill_n(reinterpret_cast<float*>(out), count, -0.5F);
      return {};
    }
    mutable int reads = 0;
  };
  const auto counted = std::make_shared<Counted>();
  const SourcePtr scaled = ternary(counted);
  CHECK(counted->reads == 0);
  float out[2] = {};
  REQUIRE(read_f32(*scaled, 2, 2, out));
  CHECK(out[0] == -0.5F);
}

TEST_CASE("torch_rotary_powers equals the framework's powers, of its vectors and of its rest",
          "[quantize][transform][torch]") {
  struct Row {
    float base;
    int dim;
    std::string_view digest;
  };
  const Row rows[] = {
      {500000, 128, "b1bf8d0426cfd74da52c10a0c6eaf251abafa4f4dda71d7bcac58f22d7d62868"},
      {1000000, 128, "7097fd897a00e96b6ef58fb0e6f93689bdbc1fe2ec7f5b417d57f0f16302a838"},
      {10000, 96, "04577811b352da57f384c37b28702a74092bfdcf26d15cd28c432bb22a83992a"},
      {500000, 112, "942dffb790fa0b375c0364eb640d0f516abeedd34302178013aa904a3f9a43df"},
      {7264121, 256, "e42bca44f92f97120786a7adda487567618dbf6b56a2ff3d01dd63f8fa339647"},
      {10000, 66, "970b24d36cc809507ced34e2c902216311d68c1352f872fd7bae24b2d75d2588"}};
  for (const auto& row : rows) {
    INFO(row.base << " over " << row.dim);
    const auto powers = torch_rotary_powers(row.base, row.dim);
    CHECK(validate::sha256_of(std::as_bytes(std::span(powers))).hex() == row.digest);
  }
}

TEST_CASE("llama3_rope equals the framework's arithmetic, which divides by inverses",
          "[quantize][transform][torch][A08]") {
  class Settings final : public ExprScope {
  public:
    Settings(double theta, double factor)
        : keys_{{"head_dim", 128},
                {"rope_parameters", {{"rope_theta", theta}, {"factor", factor}}}} {}
    const boost::json::value* find(std::string_view name) const override {
      return keys_.if_contains(name);
    }

  private:
    boost::json::object keys_;
  };
  const auto factors = [](double theta, double factor) {
    return llama3_rope(Settings(theta, factor));
  };
  const auto usual = factors(500000, 8);
  REQUIRE(usual);
  std::vector<float> out(64);
  REQUIRE(read_f32(**usual, 0, 64, out.data()));
  CHECK(out[28] == 1.0F);
  CHECK(out[29] == 0x1.351daap+0F);
  CHECK(out[30] == 0x1.8dac94p+0F);
  CHECK(out[33] == 0x1.d7959cp+1F);
  CHECK(out[34] == 0x1.50780cp+2F);
  CHECK(out[35] == 8.0F);
  const auto other = factors(1234567, 32);
  REQUIRE(other);
  REQUIRE(read_f32(**other, 0, 64, out.data()));
  CHECK(out[27] == 0x1.301402p+0F);
  CHECK(out[28] == 0x1.9db4a2p+0F);
  CHECK(out[31] == 0x1.635df2p+2F);
  CHECK(out[32] == 0x1.6ec39cp+3F);
  CHECK(out[33] == 32.0F);
  CHECK_FALSE(factors(0, 8));
  CHECK_FALSE(factors(-1, 8));
}

TEST_CASE("torch_sin and torch_cos equal the framework's up to 1500",
          "[quantize][transform][torch]") {
  std::vector<float> sines;
  std::vector<float> cosines;
  for (auto bits = std::bit_cast<std::uint32_t>(0x1p-20F);
       bits < std::bit_cast<std::uint32_t>(1500.0F); bits += 997) {
    sines.push_back(torch_sin(std::bit_cast<float>(bits)));
    cosines.push_back(torch_cos(std::bit_cast<float>(bits)));
  }
  CHECK(validate::sha256_of(std::as_bytes(std::span(sines))).hex() ==
        "82641663fa01be709ee487f905ed38eb49b8dcf2c8ce5659fff3f240f0a684f3");
  CHECK(validate::sha256_of(std::as_bytes(std::span(cosines))).hex() ==
        "ca4d7458a25882d374f44e30261a40d08adffc5c5f83bf74e0a09891a82db7eb");
  CHECK(torch_sin(0.0F) == 0.0F);
  CHECK(torch_cos(0.0F) == 1.0F);
  CHECK(std::isnan(torch_sin(std::numeric_limits<float>::infinity())));
}

TEST_CASE("sinusoids equal the framework's positions", "[quantize][transform][torch]") {
  const auto digest = [](std::int64_t length, std::int64_t channels) {
    const SourcePtr made = sinusoids(length, channels).value();
    std::vector<float> values(made->elements());
    REQUIRE(made->read(0, values.size(), reinterpret_cast<std::byte*>(values.data())));
    return validate::sha256_of(std::as_bytes(std::span(values))).hex();
  };
  CHECK(digest(3000, 64) == "1ff72574831e1160ce3bf8d5689c514c7a0d323f6055bc1dc5b6a8e4a2f1c35e");
  for (const std::int64_t channels : {0, 2, 7, 1 << 20}) {
    CHECK_FALSE(sinusoids(1500, channels));
  }
  CHECK_FALSE(sinusoids(0, 64));
  CHECK_FALSE(sinusoids(1 << 20, 64));
}
