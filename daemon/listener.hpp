// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/http.hpp"
#include "schema/result.hpp"

#include <optional>
#include <string>

namespace modeld::daemon {

/// A listening Unix socket, and its name in the file system where we made it.
class ListeningSocket {
public:
  /// systemd's socket where there is one (sd_listen_fds(3)), else a new one at `path` with `mode`.
  /// A name that is left from a daemon that died is replaced; one that answers is a conflict.
  /// With a group, where one is given, before anybody can connect.
  static Result<ListeningSocket> open(const std::string& path, unsigned mode,
                                      std::optional<gid_t> group = {});
  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket(); ///< removes the name, if it is still ours

  int get() const { return socket_.get(); }
  /// Gives the descriptor away; the name stays ours to remove.
  int release();
  const std::string& path() const { return path_; }
  bool from_systemd() const { return from_systemd_; }

private:
  ListeningSocket() = default;
  static Result<ListeningSocket> bind_new(const std::string& path, unsigned mode,
                                          std::optional<gid_t> group);

  Descriptor socket_;
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  bool owns_name_ = false;
  bool from_systemd_ = false;
};

/// SO_PEERCRED of a connected socket.
Result<Peer> peer_of(int socket);

} // namespace modeld::daemon
