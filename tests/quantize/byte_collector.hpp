// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/byte_sink.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace modeld::test {

/// Keeps a file that is written in memory.
class ByteCollector final : public ByteSink {
public:
  Result<void> write(std::span<const std::byte> more) override {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return {};
  }
  std::vector<std::byte> bytes;
};

} // namespace modeld::test
