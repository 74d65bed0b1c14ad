// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/gguf_split.hpp"

#include "quantize/recipe/tensor_role.hpp"

#include <fmt/format.h>

#include <charconv>

namespace modeld::quantize {
namespace {

constexpr std::uint64_t k_alignment = 32;

void put_last(GgufModel& model, std::string_view key, GgufValue value) {
  model.erase(key);
  model.kv.push_back({std::string(key), std::move(value)});
}

std::uint64_t padded_bytes(const GgufTensor& tensor) {
  return (tensor.bytes() + k_alignment - 1) / k_alignment * k_alignment;
}

/// As the reference's writer has it: without the ones behind the last real dimension.
GgufTensor trimmed(GgufTensor tensor) {
  tensor.ne.resize(dimensions(tensor));
  return tensor;
}

std::uint16_t part_count(const GgufModel& model) {
  const GgufValue* value = model.find("split.count");
  const auto* count = value != nullptr ? std::get_if<std::uint16_t>(value) : nullptr;
  return count != nullptr ? *count : std::uint16_t{0};
}

tl::unexpected<Error> empty_part(std::size_t part) {
  return fail(Errc::invalid_argument,
              fmt::format("splitting: part {} would have no tensor: the limit is smaller than the "
                          "next tensor",
                          part + 1),
              "give a larger --split-max-size");
}

} // namespace

Result<std::uint64_t> parse_split_limit(std::string_view text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  const std::string_view unit(at, static_cast<std::size_t>(end - at));
  constexpr std::uint64_t k_most = 1'000'000; // a petabyte in G
  if (error != std::errc{} || (unit != "M" && unit != "G") || number == 0 || number > k_most) {
    return fail(Errc::invalid_argument,
                fmt::format("reading the size '{}': a number from 1 to {} with M or G behind it is "
                            "allowed",
                            text, k_most));
  }
  return number * (unit == "M" ? 1'000'000U : 1'000'000'000U);
}

Result<std::vector<GgufModel>> split_gguf(const GgufModel& model, const SplitLimits& limits) {
  if (part_count(model) > 1) {
    return fail(Errc::invalid_argument, "splitting: the file is itself a part of a split",
                "merge the parts first: modelctl merge");
  }
  if (limits.max_bytes == 0 && limits.max_tensors == 0) {
    return fail(Errc::invalid_argument, "splitting: a part must have at least one tensor");
  }
  std::vector<GgufModel> parts(1);
  parts.front().kv = model.kv;
  parts.front().alignment = model.alignment; // the others have no key that would say so
  if (limits.no_tensor_first) parts.emplace_back();
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < model.tensors.size(); ++i) {
    const std::uint64_t next = padded_bytes(model.tensors[i]);
    const bool full = limits.max_bytes != 0 ? bytes + next > limits.max_bytes
                                            : i > 0 && i % limits.max_tensors == 0;
    if (full) {
      if (parts.back().tensors.empty()) return empty_part(parts.size() - 1);
      parts.emplace_back();
      bytes = 0;
    }
    bytes += next;
    parts.back().tensors.push_back(trimmed(model.tensors[i]));
  }
  if (parts.size() > 65535) {
    return fail(Errc::invalid_argument,
                fmt::format("splitting: {} parts; at most 65535 are possible", parts.size()));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    put_last(parts[i], "split.no", static_cast<std::uint16_t>(i));
    put_last(parts[i], "split.tensors.count", static_cast<std::int32_t>(model.tensors.size()));
    put_last(parts[i], "split.count", static_cast<std::uint16_t>(parts.size()));
  }
  return parts;
}

Result<GgufModel> merge_gguf(const GgufSource& source) {
  if (part_count(source.model) == 0) {
    return fail(Errc::invalid_argument,
                fmt::format("merging '{}': it is no part of a split: split.count is missing or 0",
                            source.paths.empty() ? "" : source.paths.front()));
  }
  GgufModel merged;
  merged.kv = source.model.kv;
  merged.alignment = source.model.alignment;
  put_last(merged, "split.count", std::uint16_t{0});
  for (const GgufTensor& tensor : source.model.tensors) {
    merged.tensors.push_back(trimmed(tensor));
  }
  return merged;
}

} // namespace modeld::quantize
