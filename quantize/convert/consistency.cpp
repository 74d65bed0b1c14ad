// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/consistency.hpp"

#include "quantize/convert/source_tensor.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace json = boost::json;

namespace modeld::quantize {
namespace {

const json::object* member_object(const json::object& from, std::string_view name) {
  const json::value* value = from.if_contains(name);
  return value == nullptr ? nullptr : value->if_object();
}

bool differ(const json::value& a, const json::value& b) {
  if (a.is_number() && b.is_number()) return a.to_number<double>() != b.to_number<double>();
  return a != b;
}

/// The one tensor whose name ends so, as a whole name or after a dot; null where there is none.
const SourceTensor* ending_in(const Weights& weights, std::string_view name) {
  for (const NamedSource& source : weights.tensors) {
    const std::string_view whole = source.name;
    const bool ends = whole.ends_with(name) &&
                      (whole.size() == name.size() || whole[whole.size() - name.size() - 1] == '.');
    if (ends) return source.tensor.get();
  }
  return nullptr;
}

std::optional<std::uint64_t> number_of(const GgufModel& model, const std::string& key) {
  const GgufValue* value = model.find(key);
  const auto* number = value == nullptr ? nullptr : std::get_if<std::uint32_t>(value);
  return number == nullptr ? std::nullopt : std::optional<std::uint64_t>(*number);
}

} // namespace

std::vector<std::string> rotary_contradictions(const json::object& raw) {
  std::vector<std::string> out;
  const json::object* text = member_object(raw, "text_config");
  const json::object& config = text == nullptr ? raw : *text;
  const json::object* newer = member_object(config, "rope_parameters");
  if (newer == nullptr) return out;
  const auto compare = [&](const json::value* old, std::string_view where, std::string_view name) {
    const json::value* value = newer->if_contains(name);
    if (old == nullptr || value == nullptr || old->is_null() || !differ(*old, *value)) return;
    out.push_back(
        fmt::format("config.json has {} {} {} and {} in rope_parameters; the latter counts", name,
                    json::serialize(*old), where, json::serialize(*value)));
  };
  for (const std::string_view name : {"rope_theta", "partial_rotary_factor"}) {
    compare(config.if_contains(name), "by itself", name);
  }
  if (const json::object* older = member_object(config, "rope_scaling")) {
    for (const auto& member : *older) {
      const std::string_view name =
          member.key() == "type" ? "rope_type" : std::string_view(member.key());
      compare(&member.value(), "in rope_scaling", name);
    }
  }
  return out;
}

Result<std::string> tied_contradiction(const Weights& weights, bool tied) {
  if (!tied) return std::string();
  const SourceTensor* output = ending_in(weights, "lm_head.weight");
  const SourceTensor* embedding = ending_in(weights, "embed_tokens.weight");
  if (output == nullptr || embedding == nullptr) return std::string();
  MODELD_ASSIGN(const bool same, equal_tensors(*output, *embedding));
  if (same) return std::string();
  return std::string("input and output embedding are one tensor by the configuration, but the "
                     "checkpoint's lm_head.weight is another one than its embedding");
}

Result<void> check_complete(const GgufModel& model, std::string_view arch) {
  constexpr std::string_view k_hint =
      "download the checkpoint again, or see whether config.json belongs to it; --force writes the "
      "file all the same";
  constexpr std::string_view k_block = "blk.";
  const GgufTensor* embedding = nullptr;
  std::set<std::uint64_t> blocks;
  for (const GgufTensor& tensor : model.tensors) {
    if (tensor.name == "token_embd.weight") embedding = &tensor;
    if (!tensor.name.starts_with(k_block)) continue;
    std::uint64_t number = 0;
    const char* end = tensor.name.data() + tensor.name.size();
    if (std::from_chars(tensor.name.data() + k_block.size(), end, number).ec == std::errc()) {
      blocks.insert(number);
    }
  }
  if (embedding == nullptr) {
    return fail(Errc::malformed,
                "converting: no tensor of the checkpoint becomes token_embd.weight",
                std::string(k_hint));
  }
  const auto width = number_of(model, fmt::format("{}.embedding_length", arch));
  if (width && !embedding->ne.empty() && embedding->ne.front() != *width) {
    return fail(
        Errc::malformed,
        fmt::format("converting: the embedding has rows of {} values, but the configuration "
                    "says {}",
                    embedding->ne.front(), *width),
        std::string(k_hint));
  }
  const std::uint64_t count = number_of(model, fmt::format("{}.block_count", arch)).value_or(0);
  // Other than blk: towers of an encoder and a decoder, which count for themselves.
  if (blocks.empty() || blocks.size() >= count) return {};
  std::uint64_t missing = 0;
  while (blocks.contains(missing)) {
    ++missing;
  }
  return fail(Errc::malformed,
              fmt::format("converting: block {} of {} has no tensor at all; {} blocks have some",
                          missing, count, blocks.size()),
              std::string(k_hint));
}

} // namespace modeld::quantize
