// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace modeld::test {

/// A TCP port on loopback that takes connections and never says a word: a Hub on which a job hangs
/// for as long as a test wants.
class SilentServer {
public:
  SilentServer();
  ~SilentServer();
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;

  const std::string& endpoint() const { return endpoint_; }

private:
  int socket_ = -1;
  std::string endpoint_;
};

} // namespace modeld::test
