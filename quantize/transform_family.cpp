// SPDX-License-Identifier: Apache-2.0
#include "quantize/transform_family.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace json = boost::json;

namespace modeld::quantize {
namespace {

double number_or(const json::object& from, std::string_view name, double fallback) {
  const json::value* value = from.if_contains(name);
  return value == nullptr ? fallback : as_number(*value).value_or(fallback);
}

std::optional<std::int64_t> whole(const ExprScope& scope, std::string_view name) {
  const json::value* value = scope.find(name);
  return value == nullptr ? std::nullopt : as_integer(*value);
}

} // namespace

Result<SourcePtr> llama3_rope(const ExprScope& scope) {
  const json::value* parameters = scope.find("rope_parameters");
  if (parameters == nullptr || !parameters->is_object()) {
    return fail(Errc::malformed, "making rotary factors: there are no rope_parameters");
  }
  const json::object* rope = &parameters->get_object();
  if (const json::value* full = rope->if_contains("full_attention"); full && full->is_object()) {
    rope = &full->get_object();
  }
  std::optional<std::int64_t> dim = whole(scope, "head_dim");
  if (!dim) {
    const auto width = whole(scope, "hidden_size");
    const auto heads = whole(scope, "num_attention_heads");
    if (width && heads && *heads > 0) dim = *width / *heads;
  }
  if (!dim || *dim <= 0 || *dim > (1 << 16)) {
    return fail(Errc::malformed, "making rotary factors: the size of a head is unknown");
  }
  const auto base = static_cast<float>(number_or(*rope, "rope_theta", 10000.0));
  const auto factor = static_cast<float>(number_or(*rope, "factor", 8.0));
  const double low = number_or(*rope, "low_freq_factor", 1.0);
  const double high = number_or(*rope, "high_freq_factor", 4.0);
  const double context = number_or(*rope, "original_max_position_embeddings", 8192);
  const auto low_wavelength = static_cast<float>(context / low);
  const auto high_wavelength = static_cast<float>(context / high);

  std::vector<float> factors;
  for (std::int64_t i = 0; i < *dim; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(*dim);
    const float frequency = 1.0F / std::pow(base, exponent);
    const float wavelength = static_cast<float>(2 * std::numbers::pi) / frequency;
    if (wavelength < high_wavelength) {
      factors.push_back(1.0F);
    } else if (wavelength > low_wavelength) {
      factors.push_back(factor);
    } else {
      const float smooth = (static_cast<float>(context) / wavelength - static_cast<float>(low)) /
                           static_cast<float>(high - low);
      factors.push_back(1.0F / ((1.0F - smooth) / factor + smooth));
    }
  }
  const Shape shape{factors.size()};
  return owned_tensor(shape, std::move(factors));
}

} // namespace modeld::quantize
