// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace modeld::daemon {

/// A connected Unix socket with blocking reads that an interrupt can end. One owner, one thread.
class UnixConnection {
public:
  /// unreachable with a hint how to start the daemon; denied where the socket is not for us.
  static Result<UnixConnection> open(const std::string& path);
  UnixConnection(UnixConnection&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UnixConnection& operator=(UnixConnection&&) = delete;
  ~UnixConnection();

  Result<void> write(std::string_view bytes) const;
  /// What has come, at most 64 KiB; empty at the end of the stream. cancelled once `interrupt` (a
  /// descriptor, or -1) is readable.
  Result<std::string_view> read(int interrupt = -1);

private:
  explicit UnixConnection(int fd) : fd_(fd) {}

  int fd_;
  std::array<char, 64U << 10> buffer_;
};

} // namespace modeld::daemon
