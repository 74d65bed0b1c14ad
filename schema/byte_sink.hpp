// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <cstddef>
#include <span>

namespace modeld {

/// Where bytes go, in order, exactly once. fetch and quantize write to it; store and plain files
/// implement it. One writer at a time; an error is final for the sink.
class ByteSink {
public:
  ByteSink() = default;
  ByteSink(const ByteSink&) = delete;
  ByteSink& operator=(const ByteSink&) = delete;
  virtual ~ByteSink() = default;

  /// Takes all of the bytes, or fails.
  virtual Result<void> write(std::span<const std::byte> bytes) = 0;
};

} // namespace modeld
