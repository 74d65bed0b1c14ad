// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/protobuf_reader.hpp"

#include <fmt/format.h>

namespace modeld::quantize {

std::optional<std::uint64_t> ProtobufReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at_ == message_.size()) return std::nullopt;
    const auto byte = static_cast<unsigned char>(message_[at_++]);
    value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
    if ((byte & 0x80U) == 0) return value;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> ProtobufReader::fixed(std::size_t bytes) {
  if (bytes > message_.size() - at_) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(message_[at_ + i])) << (8 * i);
  }
  at_ += bytes;
  return value;
}

Result<ProtobufReader::Field> ProtobufReader::next() {
  const std::size_t start = at_;
  const auto broken = [start](std::string_view cause) {
    return fail(Errc::malformed, fmt::format("{} in the field at byte {}", cause, start));
  };
  const auto key = varint();
  if (!key) return broken("unfinished key");
  Field field;
  if (*key >> 3U == 0 || *key >> 3U > 0x1FFFFFFFU) return broken("impossible field number");
  field.number = static_cast<std::uint32_t>(*key >> 3U);
  const auto wire = static_cast<unsigned>(*key & 7U);
  std::optional<std::uint64_t> value;
  switch (wire) {
  case 0:
    value = varint();
    break;
  case 1:
    value = fixed(8);
    break;
  case 2:
    value = varint();
    break;
  case 5:
    value = fixed(4);
    break;
  default:
    return broken(fmt::format("unknown wire type {}", wire));
  }
  if (!value) return broken("unfinished value");
  field.wire = static_cast<Field::Wire>(wire);
  if (field.wire != Field::Wire::bytes) {
    field.number_value = *value;
    return field;
  }
  if (*value > message_.size() - at_) {
    return broken(fmt::format("length {} with {} bytes left", *value, message_.size() - at_));
  }
  field.bytes = message_.substr(at_, static_cast<std::size_t>(*value));
  at_ += field.bytes.size();
  return field;
}

} // namespace modeld::quantize
