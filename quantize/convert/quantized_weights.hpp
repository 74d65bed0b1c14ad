// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/weights.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::quantize {

/// The weights of a checkpoint by name, while quantized ones become values or blocks. Nothing moves
/// before apply(), so that names() is in the order of the file.
class QuantizedWeights {
public:
  explicit QuantizedWeights(Weights& weights);

  /// Null where there is none (any more).
  SourcePtr find(const std::string& name) const;
  /// malformed where there is none, with the detail "misfit": "part".
  Result<SourcePtr> need(const std::string& name) const;
  std::vector<std::string> names() const;
  /// Whether a factor of some weight has not been taken yet.
  bool any_scale_left() const;

  void remove(const std::string& name) { removed_.insert(name); }
  /// The tensor goes, and `into` is made of it.
  void take_into(NamedSource& into, const std::string& name);
  Result<void> replace(const std::string& name, Result<SourcePtr> value, bool fp8);
  /// A weight times its scale, which goes. `block`: rows and columns that share a factor.
  Result<void> scale(const std::string& weight, const std::string& scale_name,
                     const std::vector<std::uint64_t>& block, bool fp8);
  /// Takes the place behind all others, unless that name is there.
  void rename_to_end(const std::string& from, const std::string& to, SourcePtr tensor);
  /// Before everything else, in the order of the calls.
  NamedSource& put_front(NamedSource source) { return front_.emplace_back(std::move(source)); }
  /// Behind everything else: a weight under a name of its own.
  NamedSource& append(std::string name, SourcePtr tensor);
  NamedSource& at(const std::string& name) { return weights_.tensors[places_.at(name)]; }
  void apply();

  static Error about(Error error, const std::string& name);

private:
  Weights& weights_;
  std::map<std::string, std::size_t> places_;
  std::set<std::string> removed_;
  std::vector<NamedSource> front_;
  std::vector<NamedSource> added_;
};

/// Takes it off where it is there.
bool take_suffix(std::string& name, std::string_view suffix);

} // namespace modeld::quantize
