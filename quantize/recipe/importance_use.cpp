// SPDX-License-Identifier: Apache-2.0
#include "quantize/recipe/importance_use.hpp"

#include "quantize/kernels/row_codec.hpp"
#include "quantize/recipe/quantized_source.hpp"
#include "quantize/recipe/tensor_role.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace modeld::quantize {
namespace {

/// A model has hundreds of tensors; a few of them tell which kind it is about.
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t k_shown = 4;
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), k_shown));
  std::string text = fmt::format("{}", fmt::join(names.begin(), end, ", "));
  if (names.size() > k_shown) text += fmt::format(" and {} more", names.size() - k_shown);
  return text;
}

/// The work of one call; lives no longer.
class Attachment {
public:
  Attachment(const GgufModel& source, const QuantizeRequest& request, const TypeOptions& options,
             PlanOnly plan, std::vector<std::string>& warnings)
      : source_(source), request_(request), options_(options), plan_(plan), warnings_(warnings) {}

  Result<void> run(std::vector<PlannedTensor>& items);

private:
  Result<void> check_values() const;
  Result<void> attach(PlannedTensor& item, std::vector<std::string>& wrong);
  void note_unused();

  const GgufTensor& from(const PlannedTensor& item) const { return source_.tensors[item.index]; }
  bool dry() const { return plan_ == PlanOnly::yes; }

  const GgufModel& source_;
  const QuantizeRequest& request_;
  const TypeOptions& options_;
  PlanOnly plan_;
  std::vector<std::string>& warnings_;
};

Result<void> Attachment::check_values() const {
  for (const auto& [name, weights] : request_.importance->entries) {
    const auto bad = std::find_if(weights.begin(), weights.end(),
                                  [](float w) { return !std::isfinite(w) || w < 0; });
    if (bad != weights.end()) {
      return fail(Errc::malformed,
                  fmt::format("importance matrix '{}': entry '{}' has the value {} at {}; allowed "
                              "are finite numbers from 0",
                              request_.importance->file, name, *bad, bad - weights.begin()),
                  "make the importance matrix again: it is broken");
    }
  }
  return {};
}

Result<void> Attachment::attach(PlannedTensor& item, std::vector<std::string>& wrong) {
  if (!request_.importance) return {};
  const GgufTensor& tensor = from(item);
  const auto entry = request_.importance->entries.find(tensor.name);
  if (entry == request_.importance->entries.end()) return {};
  const std::uint64_t experts = tensor.ne.size() > 2 ? tensor.ne[2] : 1;
  if (entry->second.size() == tensor.row_elements() * experts) {
    item.importance = {request_.importance, &entry->second};
    item.decision.weighted = true;
    const auto zero = zero_weighted_blocks(item.decision.to, entry->second);
    if (!zero.empty() && !request_.recipe.force) {
      warnings_.push_back(fmt::format("importance matrix: {} blocks of '{}' have no weight above "
                                      "zero and are quantized without",
                                      zero.size(), item.name));
    }
    return {};
  }
  const std::string text = fmt::format("'{}' has {} weights for {} x {} columns", tensor.name,
                                       entry->second.size(), experts, tensor.row_elements());
  if (is_token_embedding(item.name)) {
    warnings_.push_back("importance matrix ignored for an embedding: " + text);
  } else {
    wrong.push_back(text);
  }
  return {};
}

Result<void> Attachment::run(std::vector<PlannedTensor>& items) {
  if (request_.importance) {
    MODELD_TRY(check_values());
  }
  std::vector<std::string> wrong;
  std::vector<std::string> missing;
  for (PlannedTensor& item : items) {
    const TensorDecision& d = item.decision;
    if (item.converts()) {
      MODELD_TRY(attach(item, wrong));
    }
    const bool allowed = !request_.only_copy && is_quantizable(from(item));
    bool needs = allowed && needs_importance(d.name, d.to, options_.file_type);
    // Without any matrix the reference refuses even where the tensor would only be copied.
    if (options_.has_importance) needs = needs && item.converts();
    if (item.converts() && codec(d.to).importance_use == ImportanceUse::required) needs = true;
    if (needs && !item.importance) {
      item.decision.unguided_low = true;
      missing.push_back(fmt::format("'{}' ({})", d.name, info(d.to).name));
    }
  }
  if (!wrong.empty() && !dry()) {
    return fail(Errc::invalid_argument,
                fmt::format("importance matrix '{}' does not fit the model: {}",
                            request_.importance->file, fmt::join(wrong, ", ")),
                "the matrix was made for another model or by another program; --exclude-weights "
                "leaves entries out");
  }
  if (!missing.empty() && !dry()) {
    return fail(
        Errc::invalid_argument,
        fmt::format("quantizing: no importance weights for {}, and so few bits make no "
                    "usable model without",
                    some_of(missing)),
        "take a type with more bits, or give modelctl quantize --imatrix with a matrix that "
        "has these tensors");
  }
  note_unused();
  return {};
}

void Attachment::note_unused() {
  if (!request_.importance) return;
  std::size_t unknown = 0;
  for (const auto& entry : request_.importance->entries) {
    const bool known =
        std::any_of(source_.tensors.begin(), source_.tensors.end(),
                    [&](const GgufTensor& tensor) { return tensor.name == entry.first; });
    unknown += known ? 0 : 1;
  }
  if (unknown > 0) {
    warnings_.push_back(fmt::format("importance matrix '{}': {} of {} entries name no tensor of "
                                    "this model",
                                    request_.importance->file, unknown,
                                    request_.importance->entries.size()));
  }
}

} // namespace

Result<void> attach_importance(const GgufModel& source, const QuantizeRequest& request,
                               const TypeOptions& options, PlanOnly plan,
                               std::vector<PlannedTensor>& items,
                               std::vector<std::string>& warnings) {
  return Attachment(source, request, options, plan, warnings).run(items);
}

} // namespace modeld::quantize
