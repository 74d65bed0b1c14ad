// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <string>
#include <utility>

namespace modeld::daemon {

/// Owner of an open file descriptor: closes it. Move-only.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

private:
  int fd_ = -1;
};

/// Opens a file for reading; the error names it.
Result<Descriptor> open_for_reading(const std::string& path);

} // namespace modeld::daemon
