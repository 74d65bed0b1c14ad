// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/tokenizer/files.hpp"
#include "schema/result.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace modeld::quantize {

/// Of the two lists of steps in tokenizer.json.
struct StepNames {
  std::string_view one;  ///< "normalizer"
  std::string_view list; ///< the member of a Sequence: "normalizers"
};

/// A member of tokenizer.json that is null, a step, or a Sequence of them, within a limit of depth.
/// `make_one(type, object)` gives a Result of a step, which is null for a type that it does not
/// know.
template <class Step, class Sequence, class MakeOne>
Result<std::unique_ptr<Step>> make_steps(const boost::json::value& value, StepNames names,
                                         const MakeOne& make_one, unsigned depth = 0) {
  constexpr unsigned k_max_depth = 32;
  if (value.is_null()) return nullptr;
  const auto* fields = value.if_object();
  if (fields == nullptr || depth > k_max_depth) {
    return fail(Errc::malformed,
                fmt::format("reading 'tokenizer.json': a {} that is no object", names.one));
  }
  const auto type = text_member(*fields, "type").value_or("");
  if (type == "Sequence") {
    const auto* list = fields->if_contains(names.list);
    if (list == nullptr || !list->is_array()) {
      return fail(Errc::malformed,
                  fmt::format("reading 'tokenizer.json': a Sequence without {}", names.list));
    }
    std::vector<std::unique_ptr<Step>> parts;
    for (const auto& each : list->get_array()) {
      auto part = make_steps<Step, Sequence>(each, names, make_one, depth + 1);
      if (!part) return fail(std::move(part.error()));
      if (*part != nullptr) parts.push_back(*std::move(part));
    }
    return std::make_unique<Sequence>(std::move(parts));
  }
  Result<std::unique_ptr<Step>> made = make_one(type, *fields);
  if (made && *made == nullptr) {
    return fail(Errc::unsupported,
                fmt::format("reading 'tokenizer.json': the {} '{}' is not known", names.one, type));
  }
  return made;
}

} // namespace modeld::quantize
