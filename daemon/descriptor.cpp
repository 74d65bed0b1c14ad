// SPDX-License-Identifier: Apache-2.0
#include "daemon/descriptor.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace modeld::daemon {

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

Result<Descriptor> open_for_reading(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC)); // NOLINT: a C interface
  if (!file.valid()) return fail(from_errno(errno, fmt::format("opening '{}'", path)));
  return file;
}

} // namespace modeld::daemon
