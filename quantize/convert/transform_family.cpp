// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/transform_family.hpp"

#include "quantize/convert/torch_pow.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numbers>
#include <type_traits>
#include <utility>

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

/// What a configuration says about Llama 3's scheme.
struct Llama3 {
  double base = 10000.0;
  double factor = 8.0;
  double low = 1.0;
  double high = 4.0;
  double context = 8192;
};

Result<Llama3> llama3_of(const ExprScope& scope) {
  const json::value* parameters = scope.find("rope_parameters");
  if (parameters == nullptr || !parameters->is_object()) {
    return fail(Errc::malformed, "making rotary factors: there are no rope_parameters");
  }
  const json::object* rope = &parameters->get_object();
  if (const json::value* full = rope->if_contains("full_attention"); full && full->is_object()) {
    rope = &full->get_object();
  }
  Llama3 out;
  out.base = number_or(*rope, "rope_theta", out.base);
  out.factor = number_or(*rope, "factor", out.factor);
  out.low = number_or(*rope, "low_freq_factor", out.low);
  out.high = number_or(*rope, "high_freq_factor", out.high);
  out.context = number_or(*rope, "original_max_position_embeddings", out.context);
  using Single = std::numeric_limits<float>;
  if (!(out.base >= Single::min() && out.base <= Single::max())) {
    return fail(Errc::malformed,
                fmt::format("making rotary factors: rope_theta is {}, where a positive number "
                            "is needed",
                            out.base));
  }
  return out;
}

/// What a family computes with after the powers: single precision as its framework has it, where a
/// number over a tensor is the tensor's inverse times the number; or double precision.
template <class Real>
Real over(double number, Real value) {
  if constexpr (std::is_same_v<Real, float>) {
    return 1.0F / value * static_cast<float>(number);
  } else {
    return number / value;
  }
}

/// The factor of one frequency.
template <class Real>
Real llama3_factor(const Llama3& scheme, float frequency) {
  const Real wavelength = over<Real>(2 * std::numbers::pi, frequency);
  const auto factor = static_cast<Real>(scheme.factor);
  if (wavelength < static_cast<Real>(scheme.context / scheme.high)) return 1;
  if (wavelength > static_cast<Real>(scheme.context / scheme.low)) return factor;
  const Real smooth = (over<Real>(scheme.context, wavelength) - static_cast<Real>(scheme.low)) /
                      static_cast<Real>(scheme.high - scheme.low);
  return Real{1} / ((Real{1} - smooth) / factor + smooth);
}

template <class Real>
std::vector<float> llama3_factors(const Llama3& scheme, std::int64_t dim) {
  std::vector<float> factors;
  for (const float power :
       torch_rotary_powers(static_cast<float>(scheme.base), static_cast<int>(dim))) {
    factors.push_back(static_cast<float>(llama3_factor<Real>(scheme, 1.0F / power)));
  }
  return factors;
}

/// Sizes of heads that a configuration may claim.
constexpr std::int64_t k_max_head = 1 << 16;

} // namespace

Result<SourcePtr> llama3_rope(const ExprScope& scope) {
  MODELD_ASSIGN(const Llama3 scheme, llama3_of(scope));
  std::optional<std::int64_t> dim = whole(scope, "head_dim");
  if (!dim) {
    const auto width = whole(scope, "hidden_size");
    const auto heads = whole(scope, "num_attention_heads");
    if (width && heads && *heads > 0) dim = *width / *heads;
  }
  if (!dim || *dim <= 0 || *dim > k_max_head) {
    return fail(Errc::malformed, "making rotary factors: the size of a head is unknown");
  }
  std::vector<float> factors = llama3_factors<float>(scheme, *dim);
  const Shape shape{factors.size()};
  return owned_tensor(shape, std::move(factors));
}

Result<SourcePtr> llama3_rope_part(const ExprScope& scope, std::int64_t rotary, std::int64_t head,
                                   double base) {
  if (rotary <= 0 || rotary > head || head > k_max_head) {
    return fail(Errc::malformed,
                fmt::format("making rotary factors: {} rotary dimensions of {}", rotary, head));
  }
  MODELD_ASSIGN(Llama3 scheme, llama3_of(scope));
  scheme.base = base;
  std::vector<float> factors = llama3_factors<double>(scheme, rotary);
  factors.resize(std::max<std::size_t>(factors.size(), static_cast<std::size_t>(head) / 2), 1.0F);
  const Shape shape{factors.size()};
  return owned_tensor(shape, std::move(factors));
}

} // namespace modeld::quantize
