// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/sinusoids.hpp"

#include "quantize/convert/torch_math.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace modeld::quantize {
namespace {

constexpr double k_longest_wave = 10000;
constexpr std::int64_t k_max_length = 1 << 16;
constexpr std::int64_t k_max_channels = 1 << 14;

/// Rows are made when they are asked for.
class Sinusoids final : public SourceTensor {
public:
  Sinusoids(std::uint64_t length, std::vector<float> frequencies)
      : SourceTensor(ElementType::f32, {length, 2 * frequencies.size()}),
        frequencies_(std::move(frequencies)) {}

  Result<void> read(std::uint64_t first, std::uint64_t count, std::byte* out) const override {
    auto* values = reinterpret_cast<float*>(out);
    const std::uint64_t half = frequencies_.size();
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t row = (first + i) / (2 * half);
      const std::uint64_t column = (first + i) % (2 * half);
      const float angle = static_cast<float>(row) * frequencies_[column % half];
      values[i] = column < half ? torch_sin(angle) : torch_cos(angle);
    }
    return {};
  }

private:
  std::vector<float> frequencies_;
};

} // namespace

Result<SourcePtr> sinusoids(std::int64_t length, std::int64_t channels) {
  if (length <= 0 || length > k_max_length || channels < 4 || channels > k_max_channels ||
      channels % 2 != 0) {
    return fail(Errc::unsupported, fmt::format("making {} positions of {} channels: expected an "
                                               "even number of channels from 4 to {}",
                                               length, channels, k_max_channels));
  }
  const std::int64_t half = channels / 2;
  const double step = std::log(k_longest_wave) / static_cast<double>(half - 1);
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < half; ++i) {
    const float exponent = static_cast<float>(-step) * static_cast<float>(i);
    frequencies.push_back(torch_exp(exponent));
  }
  return std::make_shared<Sinusoids>(static_cast<std::uint64_t>(length), std::move(frequencies));
}

} // namespace modeld::quantize
