// SPDX-License-Identifier: Apache-2.0
// Shapes, sizes and ranges of a safetensors header: rules ST-24 to ST-38.
#include "validate/escape.hpp"
#include "validate/safetensors_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace modeld::validate {
void SafetensorsReader::check_size(Entry& entry) {
  const SafetensorsTensor& tensor = entry.tensor;
  const SafetensorsDtypeInfo& type = info(tensor.dtype);
  // Over the dimensions that are not zero too: a zero must not hide an overflow, whatever the
  // order.
  std::uint64_t nonzero = 1;
  bool zero = false;
  bool overflow = false;
  for (const std::uint64_t dim : tensor.shape) {
    if (dim == 0)
      zero = true;
    else
      overflow |= __builtin_mul_overflow(nonzero, dim, &nonzero);
  }
  std::uint64_t bits = 0;
  overflow |= __builtin_mul_overflow(nonzero, std::uint64_t{type.bits}, &bits);
  if (overflow) {
    report_.error("ST-24", tensor.header_offset,
                  fmt::format("the size of tensor {} of {} elements does not fit 64 bits",
                              quoted(tensor.name), fmt::join(tensor.shape, " x ")));
    return;
  }
  if (zero) bits = 0;
  if (bits % 8 != 0) {
    report_.error("ST-25", tensor.header_offset,
                  fmt::format("tensor {} of {} {} elements takes {} bits, not whole bytes",
                              quoted(tensor.name), nonzero, type.name, bits));
    return;
  }
  if (tensor.dtype == SafetensorsDtype::f4 && !tensor.shape.empty() &&
      tensor.shape.back() % 2 != 0) {
    report_.warn("ST-26", tensor.header_offset,
                 fmt::format("the last dimension {} of the F4 tensor {} is odd, two elements share "
                             "a byte",
                             tensor.shape.back(), quoted(tensor.name)));
  }
  if (tensor.bytes() != bits / 8) {
    report_.error("ST-32", tensor.header_offset,
                  fmt::format("tensor {} of shape [{}] and dtype {} takes {} bytes, its offsets "
                              "{} to {} span {}",
                              quoted(tensor.name), fmt::join(tensor.shape, ", "), type.name,
                              bits / 8, tensor.begin, tensor.end, tensor.bytes()));
  }
}

void SafetensorsReader::check_tiling() {
  const auto& tensors = header_.tensors;
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  const auto less = [&](std::uint32_t a, std::uint32_t b) {
    return std::pair{tensors[a].begin, tensors[a].end} <
           std::pair{tensors[b].begin, tensors[b].end};
  };
  if (!std::is_sorted(order.begin(), order.end(), less))
    std::sort(order.begin(), order.end(), less);
  std::uint64_t end = 0;
  std::string_view before;
  for (const std::uint32_t i : order) {
    const SafetensorsTensor& tensor = tensors[i];
    if (tensor.begin != end && !report_.full()) {
      const bool overlap = tensor.begin < end;
      report_.error(
          "ST-33", tensor.header_offset,
          fmt::format("tensor {} begins at {}, {} {}: {} of {} bytes", quoted(tensor.name),
                      tensor.begin,
                      before.data() == nullptr ? "the data begins at" : quoted(before) + " ends at",
                      end, overlap ? "an overlap" : "a hole",
                      overlap ? end - tensor.begin : tensor.begin - end));
    }
    before = tensor.name;
    end = std::max(end, tensor.end);
  }
  check_data_end(end);
}

void SafetensorsReader::check_data_end(std::uint64_t end) {
  const std::uint64_t present = file_size_ - header_.data_start;
  if (end > present) {
    report_.error(
        "ST-34a", file_size_,
        fmt::format("the tensors take {} bytes, the file has {} behind its header: it was "
                    "cut short by {}",
                    end, present, end - present),
        "download the file again");
  } else if (end < present) {
    report_.error("ST-34b", header_.data_start + end,
                  fmt::format("{} bytes follow the last tensor, allowed are none", present - end));
  }
}

void SafetensorsReader::check_format() {
  const std::string* format = header_.metadata_value("format");
  constexpr std::array<std::string_view, 5> k_formats{"pt", "tf", "flax", "np", "mlx"};
  if (format == nullptr) {
    report_.note("ST-38", 8, "'__metadata__' names no format, some loaders want one");
  } else if (std::find(k_formats.begin(), k_formats.end(), *format) == k_formats.end()) {
    report_.note("ST-38", 8,
                 fmt::format("'__metadata__' names the format {}, known are {}", quoted(*format),
                             fmt::join(k_formats, ", ")));
  }
}

void SafetensorsReader::check_alignment() {
  std::size_t count = 0;
  const SafetensorsTensor* first = nullptr;
  for (const SafetensorsTensor& tensor : header_.tensors) {
    const std::uint64_t size = std::max<std::uint64_t>(1, info(tensor.dtype).bits / 8);
    if ((header_.data_start + tensor.begin) % size == 0) continue;
    if (first == nullptr) first = &tensor;
    ++count;
  }
  if (first == nullptr) return;
  report_.warn("ST-35", header_.data_start + first->begin,
               fmt::format("{} tensors do not lie on a multiple of their element's size, the first "
                           "is {}; they are copied, never cast",
                           count, quoted(first->name)));
}

void SafetensorsReader::note_rare_types() {
  std::size_t empty = 0;
  const SafetensorsTensor* first_empty = nullptr;
  std::array<bool, 32> seen{};
  for (const SafetensorsTensor& tensor : header_.tensors) {
    const SafetensorsDtypeInfo& type = info(tensor.dtype);
    if (tensor.begin == tensor.end) {
      if (first_empty == nullptr) first_empty = &tensor;
      ++empty;
    }
    bool& known = seen[static_cast<std::size_t>(tensor.dtype)];
    if (!known && !type.since.empty()) {
      report_.note("ST-20", tensor.header_offset,
                   fmt::format("dtype {} needs safetensors {} or newer", type.name, type.since));
    }
    known = true;
  }
  if (first_empty == nullptr) return;
  report_.note("ST-36", first_empty->header_offset,
               fmt::format("{} tensors have no elements, the first is {}", empty,
                           quoted(first_empty->name)));
}

} // namespace modeld::validate
