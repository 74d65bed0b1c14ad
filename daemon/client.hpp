// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/interrupt.hpp"
#include "schema/api.hpp"
#include "schema/result.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace modeld::daemon {

/// modelctl's end of the socket. One connection, opened when it is needed and kept; one thread.
/// Errors: those of the daemon as they are, and unreachable where it does not answer.
class Client {
public:
  /// `token` goes along with each request; empty for none.
  Client(std::string socket, std::string token);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  struct Answer {
    int status = 0;
    boost::json::object body;
  };
  Result<Answer> get(std::string_view path);
  Result<Answer> remove(std::string_view path);
  Result<Answer> remove(std::string_view path, const boost::json::object& body);
  Result<Answer> post(std::string_view path, const boost::json::object& body);
  Result<Answer> put(std::string_view path, const boost::json::object& body);
  Result<std::string> text(std::string_view path);
  /// An answer of any length, piece by piece, on a connection of its own. `take` is told how long
  /// it will be in all. unreachable where it ends before that, cancelled where the user interrupts.
  Result<void>
  stream(std::string_view path, const Interrupt& interrupt,
         const std::function<Result<void>(std::string_view piece, std::uint64_t total)>& take);

  struct Event {
    std::string type;         ///< "change", "progress", "end"; empty for a heartbeat
    std::uint64_t number = 0; ///< of the last event that had one
    api::Job job;
  };
  /// Reads a job's events on a connection of its own, until `on_event` says false, the stream ends
  /// (unreachable: the daemon went away) or the user interrupts (cancelled).
  Result<void> events(std::string_view job, std::uint64_t after, const Interrupt& interrupt,
                      const std::function<bool(const Event&)>& on_event);

private:
  struct Connection;
  Result<std::pair<int, std::string>> exchange(std::string_view method, std::string_view path,
                                               const std::string& body);
  Result<Answer> ask(std::string_view method, std::string_view path,
                     const boost::json::object* body);
  std::string head(std::string_view method, std::string_view path, std::size_t body,
                   std::string_view more) const;

  std::string socket_;
  std::string token_;
  std::unique_ptr<Connection> connection_;
};

/// A ref, or another text, as a part of a path: everything but unreserved characters and "/:@" is
/// percent-encoded.
std::string url_part(std::string_view text);

} // namespace modeld::daemon
