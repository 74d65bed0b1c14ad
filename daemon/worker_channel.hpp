// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/descriptor.hpp"
#include "schema/result.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

// How the daemon and a worker process talk: packets over a Unix socket pair (SOCK_SEQPACKET), one
// byte of kind and then the payload, at most k_max_payload bytes. A descriptor may go along.
//
//   daemon -> worker   request   JSON: what to do (worker_request.hpp)
//                      file      the file that was asked for, as a descriptor; without one: refused
//                      go        the plan is accepted: write
//   worker -> daemon   open      u32, little-endian: position of a file in the request
//                      plan      JSON: {"size":n,"via":"AUTO"}
//                      data      bytes of the output, in order
//                      progress  u64 done, u64 total, little-endian: bytes, where no output is to
//                                be counted
//                      done      JSON: what came of it
//                      failed    JSON: an error (schema/api.hpp)
//
// The worker is not trusted: a packet of an unknown kind, at the wrong time or too long ends it.

namespace modeld::daemon {

enum class Packet : std::uint8_t {
  request = 1,
  file = 2,
  go = 3,
  open = 4,
  plan = 5,
  data = 6,
  done = 7,
  failed = 8,
  progress = 9,
};

/// One end. Move-only owner of the socket. send() may be called from several threads, receive()
/// from one at a time.
class WorkerChannel {
public:
  static constexpr std::size_t k_max_payload = 128U << 10; // below the default socket buffer

  struct Received {
    Packet kind = Packet::failed;
    std::span<const std::byte> payload; ///< until the next receive()
    Descriptor descriptor;
  };

  explicit WorkerChannel(Descriptor socket) : socket_(std::move(socket)) {}
  /// Two connected ends.
  static Result<std::pair<Descriptor, Descriptor>> make_pair();

  /// Splits nothing: invalid_argument for a payload beyond the limit. io where the other end is
  /// gone.
  Result<void> send(Packet kind, std::span<const std::byte> payload, int descriptor = -1) const;
  Result<void> send(Packet kind, std::string_view text) const;
  /// Nothing at the end of the stream. With a time: nothing in it gives busy.
  Result<std::optional<Received>> receive(std::chrono::milliseconds time = k_forever);

  static constexpr std::chrono::milliseconds k_forever{-1};

private:
  Descriptor socket_;
  std::array<std::byte, k_max_payload + 1> buffer_;
};

} // namespace modeld::daemon
