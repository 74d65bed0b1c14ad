// SPDX-License-Identifier: Apache-2.0
#include "validate/safetensors.hpp"

#include "validate/safetensors_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace modeld::validate {
namespace {

std::uint64_t little_endian_u64(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;)
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

std::string too_large(std::uint64_t length) {
  return fmt::format("header length is {} bytes, allowed are at most {}", length,
                     k_safetensors_max_header);
}

} // namespace

std::uint64_t SafetensorsTensor::elements() const {
  std::uint64_t product = 1;
  for (const std::uint64_t dim : shape)
    product *= dim;
  return product;
}

const SafetensorsTensor* SafetensorsHeader::find(std::string_view name) const {
  const auto at =
      index_.find(name, [&](std::uint32_t i) -> std::string_view { return tensors[i].name; });
  return at ? &tensors[*at] : nullptr;
}

const std::string* SafetensorsHeader::metadata_value(std::string_view key) const {
  const auto at = std::find_if(metadata.begin(), metadata.end(),
                               [&](const auto& pair) { return pair.first == key; });
  return at == metadata.end() ? nullptr : &at->second;
}

Result<std::uint64_t> safetensors_header_length(std::span<const std::byte, 8> prefix) {
  const std::uint64_t length = little_endian_u64(prefix);
  if (length > k_safetensors_max_header) {
    return fail(
        Error{Errc::malformed, "reading a safetensors header: " + too_large(length), {}, {}, 0}
            .with_detail("rule", "ST-03"));
  }
  return length;
}

bool SafetensorsReader::frame() {
  if (file_size_ == 0) {
    report_.error("GN-02", 0, "the file is empty", "download it again");
    return false;
  }
  if (file_size_ < 8 || head_.size() < 8) {
    report_.error("ST-01", 0,
                  fmt::format("the file has {} bytes, a header length alone takes 8", file_size_));
    return false;
  }
  const std::uint64_t length = little_endian_u64(head_);
  if (length > k_safetensors_max_header) {
    report_.error("ST-03", 0, too_large(length));
    return false;
  }
  if (length > file_size_ - 8) {
    report_.error("ST-02", 0,
                  fmt::format("header length is {} bytes, the file has {} behind the length",
                              length, file_size_ - 8),
                  "the file was cut short or is no safetensors file; download it again");
    return false;
  }
  if (length > head_.size() - 8) {
    report_.error(
        "GN-07", 0,
        fmt::format("header length is {} bytes, only {} could be read", length, head_.size() - 8));
    return false;
  }
  text_ = {reinterpret_cast<const char*>(head_.data()) + 8, static_cast<std::size_t>(length)};
  header_.data_start = 8 + length;
  return true;
}

Checked<SafetensorsHeader> SafetensorsReader::run() && {
  if (!frame() || !begin_json() || !read_root() || !end_json())
    return {std::nullopt, std::move(report_)};
  check_format();
  if (ranges_known_) check_tiling();
  if (report_.accepted()) {
    check_alignment();
    note_rare_types();
  }
  return {std::move(header_), std::move(report_)};
}

Checked<SafetensorsHeader> check_safetensors(std::span<const std::byte> head,
                                             std::uint64_t file_size, std::string_view path,
                                             Profile profile, const Limits& limits) {
  return SafetensorsReader(head, file_size, path, profile, limits).run();
}

Result<SafetensorsHeader> read_safetensors(std::span<const std::byte> file, std::string_view path,
                                           Profile profile) {
  return check_safetensors(file, file.size(), path, profile).take();
}

} // namespace modeld::validate
