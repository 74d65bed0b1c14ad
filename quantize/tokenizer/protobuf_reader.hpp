// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace modeld::quantize {

/// Walks the fields of one protobuf message (wire format of version 2 and 3): a varint key, then a
/// varint, 8 bytes, a length with so many bytes, or 4 bytes. Bounded by the message; reads no
/// groups. Borrows the bytes.
class ProtobufReader {
public:
  struct Field {
    std::uint32_t number = 0;
    enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 } wire{};
    std::uint64_t number_value = 0; ///< of varint, fixed64 and fixed32
    std::string_view bytes;         ///< of bytes
  };

  explicit ProtobufReader(std::string_view message) : message_(message) {}

  bool done() const { return at_ == message_.size(); }
  std::size_t offset() const { return at_; }
  /// The next field; malformed where it does not end within the message. Not after done().
  Result<Field> next();

private:
  std::optional<std::uint64_t> varint();
  std::optional<std::uint64_t> fixed(std::size_t bytes);

  std::string_view message_;
  std::size_t at_ = 0;
};

} // namespace modeld::quantize
