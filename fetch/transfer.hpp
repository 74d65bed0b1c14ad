// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/headers.hpp"
#include "fetch/request.hpp"
#include "schema/result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace modeld::fetch {

/// Who a transfer talks to. Called from Wire::step only, on its thread.
class Receiver {
public:
  Receiver() = default;
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;
  virtual ~Receiver() = default;

  /// The final head (never a 1xx, never a proxy's). False ends the transfer.
  virtual bool on_head(unsigned status, const Headers& headers) = 0;
  /// Part of the body, decoded. False ends the transfer.
  virtual bool on_body(std::span<const std::byte> bytes) = 0;
  /// The transfer is over; its handle is free again. `error` is empty where it went to the end.
  virtual void on_end(const Error* error) = 0;
};

struct WireOptions {
  std::string user_agent;
  std::string ca_bundle;
  std::string http_proxy; ///< for http addresses; empty: as curl reads the environment
  std::string no_proxy;   ///< curl reads it too, but does not know "host:port"
  std::chrono::milliseconds connect_timeout{10'000};
  std::size_t max_connections = 64;
};

/// libcurl's multi interface: many transfers on one thread, connections kept between them.
class Wire {
public:
  explicit Wire(WireOptions options);
  ~Wire();

  using Id = std::uint64_t;
  /// The receiver must live until on_end or cancel.
  Id start(const HttpRequest& request, Receiver& receiver);
  /// Ends a transfer without on_end; its connection is closed.
  void cancel(Id id);
  /// Lets the transfers run; returns when something happened, or after `longest`.
  void step(std::chrono::milliseconds longest);
  std::size_t active() const;
  /// Makes step() return; the one member for any thread.
  void wake();

private:
  struct Transfer;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace modeld::fetch
