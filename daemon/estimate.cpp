// SPDX-License-Identifier: Apache-2.0
#include "daemon/estimate.hpp"

#include "quantize/convert/convert.hpp"
#include "quantize/gguf/gguf_source.hpp"
#include "quantize/gguf/gguf_writer.hpp"
#include "quantize/recipe/quantize_model.hpp"
#include "validate/shard_name.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace modeld::daemon {
namespace {

using quantize::GgufModel;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::uint64_t elements(const GgufModel& model) {
  std::uint64_t sum = 0;
  for (const auto& tensor : model.tensors) {
    sum += tensor.row_elements() * tensor.rows();
  }
  return sum;
}

double bits(std::uint64_t bytes, std::uint64_t weights) {
  return weights == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
}

Estimate::Variant of_model(std::string recipe, const GgufModel& model, std::uint64_t weights) {
  Estimate::Variant variant;
  variant.recipe = std::move(recipe);
  auto size = quantize::gguf_file_size(model);
  if (!size) {
    variant.note = size.error().message;
    return variant;
  }
  variant.file_bytes = *size;
  variant.bits_per_weight = bits(*size, weights);
  return variant;
}

// What the quantizer would make of it.
Estimate::Variant quantized(Recipe recipe, const GgufModel& model, std::uint64_t weights) {
  quantize::QuantizeRequest request;
  request.recipe = std::move(recipe);
  const std::string& target = request.recipe.target;
  const auto plan = quantize::quantize_model(model, request, quantize::PlanOnly::yes);
  if (!plan) return Estimate::Variant{target, 0, 0, plan.error().message};
  auto variant = of_model(target, plan->parts.front(), weights);
  const bool unguided =
      std::any_of(plan->decisions.begin(), plan->decisions.end(),
                  [](const quantize::TensorDecision& one) { return one.unguided_low; });
  if (unguided) variant.note = "needs an importance matrix";
  return variant;
}

Result<Estimate> of_checkpoint(const FileSet& files, std::uint64_t context) {
  quantize::ConvertOptions options;
  MODELD_ASSIGN(const auto converted, quantize::convert(files, options));
  Estimate estimate = estimate_memory(converted.model, context);
  const std::uint64_t weights = estimate.parameters;
  for (const std::string_view name : all_target_names()) {
    auto recipe = Recipe::parse_target(name);
    if (!recipe || recipe->target != name) continue; // an alias
    if (!recipe->via.empty()) {
      estimate.variants.push_back(quantized(*std::move(recipe), converted.model, weights));
      continue;
    }
    options.outtype = lower(name);
    auto plain = quantize::convert(files, options);
    estimate.variants.push_back(
        plain ? of_model(std::string(name), plain->model, weights)
              : Estimate::Variant{std::string(name), 0, 0, plain.error().message});
  }
  return estimate;
}

bool is_later_part(std::string_view path) {
  const auto part = validate::numbered_name(path, ".gguf");
  return part && part->number > 1;
}

Result<Estimate> of_gguf_files(const FileSet& files, std::uint64_t context) {
  Estimate estimate;
  for (const FileSet::Entry& entry : files.entries()) {
    if (!entry.path.ends_with(".gguf") || is_later_part(entry.path)) continue;
    const auto source = quantize::open_gguf_source(files, entry.path);
    if (!source) {
      estimate.variants.push_back({entry.path, 0, 0, source.error().message});
      continue;
    }
    if (estimate.architecture.empty()) {
      auto variants = std::move(estimate.variants);
      estimate = estimate_memory(source->model, context);
      estimate.variants = std::move(variants);
    }
    estimate.variants.push_back(
        {entry.path, source->bytes, bits(source->bytes, elements(source->model)), {}});
  }
  return estimate;
}

} // namespace

Result<Estimate> estimate(const FileSet& files, std::uint64_t context) {
  const auto& entries = files.entries();
  const auto any = [&entries](std::string_view end) {
    return std::any_of(entries.begin(), entries.end(), [end](const FileSet::Entry& entry) {
      return entry.path.ends_with(end) && entry.path.find('/') == std::string::npos;
    });
  };
  if (!any(".safetensors") && any(".gguf")) return of_gguf_files(files, context);
  return of_checkpoint(files, context);
}

} // namespace modeld::daemon
