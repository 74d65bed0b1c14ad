// SPDX-License-Identifier: Apache-2.0
// Where the data of a GGUF file lies: each tensor right behind the padded end of the one before.
// Rules GG-40 to GG-46.
#include "validate/escape.hpp"
#include "validate/gguf_reader.hpp"
#include "validate/sniff.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace modeld::validate {
namespace {

constexpr std::uint32_t k_default_alignment = 32;

std::uint64_t padding(std::uint64_t size, std::uint64_t alignment) {
  return (alignment - size % alignment) % alignment;
}

} // namespace

void GgufReader::check_layout() {
  check_data_start();
  if (header_.tensors.empty()) {
    // No padding is asked for; a writer may have added it.
    const std::uint64_t end = header_.metadata_end;
    const std::uint64_t padded = std::min(file_size_, end + padding(end, header_.alignment));
    check_padding(end, padded, "behind the keys");
    header_.data_end = padded;
    check_tail(padded);
    return;
  }
  if (header_.data_start > file_size_) return;
  check_padding(header_.metadata_end, header_.data_start, "before the data");
  check_ranges();
}

void GgufReader::check_data_start() {
  header_.data_start = header_.metadata_end;
  if (header_.tensors.empty()) return;
  header_.data_start += padding(header_.metadata_end, header_.alignment);
  if (header_.data_start > file_size_) {
    report_.error(
        "GG-41", header_.metadata_end,
        fmt::format("the data starts at {}, the file has {} bytes", header_.data_start, file_size_),
        "the file was cut short; download it again");
  }
}

void GgufReader::check_ranges() {
  const std::uint64_t present = file_size_ - header_.data_start;
  std::uint64_t expected = 0;
  std::uint64_t last_end = 0; // without the last padding
  bool in_order = true;
  for (const GgufTensorInfo& tensor : header_.tensors) {
    in_order &= tensor.offset == expected;
    if (tensor.offset != expected && !report_.full()) {
      report_.error("GG-40", tensor.info_offset,
                    fmt::format("tensor {} has the offset {}, it must be {}, right behind the one "
                                "before it",
                                quoted(tensor.name), tensor.offset, expected),
                    header_.alignment == k_default_alignment
                        ? "possibly produced by a fork with other block sizes"
                        : "split tools pad with 32 while they keep general.alignment: merge again");
    }
    if ((tensor.bytes > present || tensor.offset > present - tensor.bytes) && !report_.full()) {
      report_.error(
          "GG-42", tensor.info_offset,
          fmt::format("tensor {} of {} bytes at offset {} ends outside of the data, which "
                      "has {}",
                      quoted(tensor.name), tensor.bytes, tensor.offset, present),
          "the file was cut short; download it again");
    }
    std::uint64_t end = 0;
    if (__builtin_add_overflow(expected, tensor.bytes, &last_end) ||
        __builtin_add_overflow(last_end, padding(tensor.bytes, header_.alignment), &end)) {
      report_.error("GG-38", tensor.info_offset, "the sizes of all tensors do not fit 64 bits");
      return;
    }
    if (in_order && end <= present && tensor.bytes % header_.alignment != 0 && !report_.full())
      check_padding(header_.data_start + last_end, header_.data_start + end,
                    "behind a tensor's data");
    expected = end;
  }
  if (__builtin_add_overflow(header_.data_start, expected, &header_.data_end)) {
    report_.error("GG-38", std::nullopt, "the sizes of all tensors do not fit 64 bits");
    return;
  }
  if (!in_order) return;
  if (expected > present && last_end <= present) {
    report_.warn("GG-43", file_size_,
                 fmt::format("the file ends {} bytes before the end of its last padding",
                             expected - present));
  }
  if (expected < present) check_tail(header_.data_end);
}

void GgufReader::check_padding(std::uint64_t from, std::uint64_t to, std::string_view where) {
  const std::uint64_t end = std::min<std::uint64_t>(to, file_.size());
  if (from >= end) return;
  const auto bytes =
      file_.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(end - from));
  const auto at =
      std::find_if(bytes.begin(), bytes.end(), [](std::byte byte) { return byte != std::byte{0}; });
  if (at == bytes.end()) return;
  report_.warn("GG-45", from + static_cast<std::uint64_t>(at - bytes.begin()),
               fmt::format("padding {} holds the byte 0x{:02X}, it must be zero", where,
                           std::to_integer<unsigned>(*at)));
}

void GgufReader::check_tail(std::uint64_t from) {
  if (from >= file_size_) return;
  const std::uint64_t size = file_size_ - from;
  if (from >= file_.size()) {
    report_.add("GG-44", error_if_strict(report_.profile()), from,
                fmt::format("{} bytes follow the last tensor, allowed are none", size));
    return;
  }
  const FileEnds ends = FileEnds::of(file_.subspan(static_cast<std::size_t>(from)));
  const ContentKind kind = sniff(ends);
  if (kind == ContentKind::gguf) {
    report_.error("GG-46", from,
                  fmt::format("another GGUF file of {} bytes follows the last tensor", size),
                  "shards are joined with a merge tool, not one behind the other");
    return;
  }
  report_.add("GG-44", error_if_strict(report_.profile()), from,
              fmt::format("{} bytes follow the last tensor, allowed are none; they are {}", size,
                          describe(kind)),
              "possibly produced by a fork with other block sizes, or something is hidden there");
}

} // namespace modeld::validate
