// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/convert.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace modeld::quantize {
namespace {

/// Whether another tensor goes into the next part.
bool full(const std::vector<GgufTensor>& part, std::uint64_t bytes, const GgufTensor& next,
          std::uint64_t max_tensors, std::uint64_t max_bytes) {
  if (part.empty()) return false;
  return (max_tensors != 0 && part.size() >= max_tensors) ||
         (max_bytes != 0 && bytes + next.bytes() > max_bytes);
}

} // namespace

std::vector<GgufModel> split_model(GgufModel model, std::uint64_t max_tensors,
                                   std::uint64_t max_bytes, bool empty_first) {
  const std::size_t total = model.tensors.size();
  std::vector<std::vector<GgufTensor>> parts(empty_first ? 2 : 1);
  std::uint64_t bytes = 0;
  for (GgufTensor& tensor : model.tensors) {
    if (full(parts.back(), bytes, tensor, max_tensors, max_bytes)) {
      parts.emplace_back();
      bytes = 0;
    }
    bytes += tensor.bytes();
    parts.back().push_back(std::move(tensor));
  }
  std::vector<GgufModel> out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    GgufModel part;
    part.alignment = model.alignment;
    part.big_endian = model.big_endian;
    if (i == 0) part.kv = std::move(model.kv);
    if (parts.size() > 1) {
      part.set("split.no", static_cast<std::uint16_t>(i));
      part.set("split.count", static_cast<std::uint16_t>(parts.size()));
      part.set("split.tensors.count", static_cast<std::int32_t>(total));
    }
    part.tensors = std::move(parts[i]);
    out.push_back(std::move(part));
  }
  out[0].vocabulary_only = model.vocabulary_only;
  return out;
}

Result<std::uint64_t> parse_split_size(std::string_view text) {
  std::uint64_t unit = 1;
  std::string_view digits = text;
  if (!digits.empty()) {
    const char last = digits.back();
    unit = last == 'K' ? 1000 : last == 'M' ? 1000000 : last == 'G' ? 1000000000 : 1;
    if (unit != 1) digits.remove_suffix(1);
  }
  std::uint64_t number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size() || digits.empty() ||
      __builtin_mul_overflow(number, unit, &number)) {
    return fail(Errc::invalid_argument,
                fmt::format("reading split size '{}': expected a number, with K, M or G behind it "
                            "or not",
                            text));
  }
  return number;
}

} // namespace modeld::quantize
