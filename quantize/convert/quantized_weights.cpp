// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/quantized_weights.hpp"

#include "quantize/convert/source_dequant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace modeld::quantize {

bool take_suffix(std::string& name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return false;
  name.resize(name.size() - suffix.size());
  return true;
}

QuantizedWeights::QuantizedWeights(Weights& weights) : weights_(weights) {
  for (std::size_t i = 0; i < weights_.tensors.size(); ++i) {
    places_[weights_.tensors[i].name] = i;
  }
}

SourcePtr QuantizedWeights::find(const std::string& name) const {
  const auto at = places_.find(name);
  return at == places_.end() || removed_.contains(name) ? nullptr
                                                        : weights_.tensors[at->second].tensor;
}

Result<SourcePtr> QuantizedWeights::need(const std::string& name) const {
  if (SourcePtr found = find(name)) return found;
  return fail(Error{Errc::malformed,
                    fmt::format("reading quantized weights: tensor '{}' is missing", name),
                    {},
                    {},
                    0}
                  .with_detail("misfit", "part"));
}

std::vector<std::string> QuantizedWeights::names() const {
  std::vector<std::string> out;
  for (const NamedSource& source : weights_.tensors) {
    if (!removed_.contains(source.name)) out.push_back(source.name);
  }
  return out;
}

bool QuantizedWeights::any_scale_left() const {
  return std::any_of(places_.begin(), places_.end(), [this](const auto& place) {
    return !removed_.contains(place.first) &&
           (place.first.ends_with(".weight_scale") || place.first.ends_with(".weight_scale_inv"));
  });
}

Error QuantizedWeights::about(Error error, const std::string& name) {
  return std::move(error).context(fmt::format("reading quantized weights '{}'", name));
}

Result<void> QuantizedWeights::replace(const std::string& name, Result<SourcePtr> value, bool fp8) {
  if (!value) return fail(about(std::move(value.error()), name));
  NamedSource& source = weights_.tensors[places_.at(name)];
  source.tensor = *std::move(value);
  source.was_fp8 = fp8;
  return {};
}

Result<void> QuantizedWeights::scale(const std::string& weight, const std::string& scale_name,
                                     const std::vector<std::uint64_t>& block, bool fp8) {
  MODELD_ASSIGN(SourcePtr values, need(weight));
  MODELD_TRY(replace(weight, scaled_weight(std::move(values), find(scale_name), block), fp8));
  take_into(at(weight), scale_name);
  return {};
}

void QuantizedWeights::rename_to_end(const std::string& from, const std::string& to,
                                     SourcePtr tensor) {
  if (find(to) != nullptr) return;
  removed_.insert(from);
  std::vector<std::string> stored = std::exchange(at(from).stored, {});
  places_[to] = weights_.tensors.size();
  weights_.tensors.push_back(
      {to, std::move(tensor), {}, false, false, nullptr, nullptr, std::move(stored)});
}

NamedSource& QuantizedWeights::append(std::string name, SourcePtr tensor) {
  return added_.emplace_back(
      NamedSource{std::move(name), std::move(tensor), {}, false, false, nullptr, nullptr});
}

void QuantizedWeights::take_into(NamedSource& into, const std::string& name) {
  const auto place = places_.find(name);
  if (place != places_.end()) {
    for (std::string& stored : std::exchange(weights_.tensors[place->second].stored, {})) {
      into.stored.push_back(std::move(stored));
    }
  }
  removed_.insert(name);
}

void QuantizedWeights::apply() {
  std::vector<NamedSource> all = std::move(front_);
  for (NamedSource& source : weights_.tensors) {
    if (!removed_.contains(source.name)) {
      all.push_back(std::move(source));
    } else {
      // What nothing was made of: scales of activations.
      weights_.dropped.insert(weights_.dropped.end(), source.stored.begin(), source.stored.end());
    }
  }
  std::move(added_.begin(), added_.end(), std::back_inserter(all));
  weights_.tensors = std::move(all);
}

} // namespace modeld::quantize
