// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace modeld::store {

/// Owns a file descriptor.
class Fd {
public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();
  /// The caller owns it from now on.
  int release() { return std::exchange(fd_, -1); }

private:
  int fd_ = -1;
};

} // namespace modeld::store
