// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/descriptor.hpp"
#include "schema/result.hpp"

#include <boost/json/object.hpp>

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// Requests and answers as handlers see them: no sockets, no Beast, so that routes are tested as
// plain functions.

namespace modeld::daemon {

class Job;

/// Who is at the other end of the socket, as the kernel says.
struct Peer {
  uid_t uid = 0;
  gid_t gid = 0;
  pid_t pid = 0;
};

struct Request {
  std::string method;
  std::string path; ///< raw, as it came; without the query
  std::string body;
  /// Names in lower case; of a name that came twice, the last.
  std::map<std::string, std::string, std::less<>> headers;
  /// Parts of the path that the route names, each percent-decoded once.
  std::map<std::string, std::string, std::less<>> parts;
  Peer peer;
  std::uint64_t connection = 0; ///< number of the connection, unique in this process

  std::string_view header(std::string_view name) const;
  std::string_view part(std::string_view name) const;
};

/// A request as it lies in the buffer, for an answer at once.
struct ReadyRequest {
  std::string_view method;
  std::string_view target;
  std::string_view body;
  const Peer& peer;
};

/// Bytes [offset, offset + size) of an open file.
struct FileBody {
  Descriptor file;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// Bytes that are made while they are sent. `read` gives as many as fit, less only in front of the
/// end; it is called on handler threads, one after the other, and may block on the disk. Where it
/// fails the connection ends early: the length is promised.
struct StreamBody {
  std::uint64_t size = 0;
  std::function<Result<std::size_t>(std::span<std::byte>)> read;
};

/// The event stream of a job, from behind the event with this number.
struct EventBody {
  std::shared_ptr<Job> job;
  std::uint64_t after = 0;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  std::variant<std::string, FileBody, StreamBody, EventBody> body;
  Descriptor passed;             ///< goes along with the first byte, by SCM_RIGHTS
  bool keeps_connection = false; ///< a lease hangs on the connection: no idle timeout for it

  static Response json(const boost::json::object& object, int status = 200);
  static Response text(std::string body, std::string content_type);
  static Response problem(const Error& error);
};

/// `%41` becomes `A`, once; invalid_argument for a broken escape or an escaped NUL.
Result<std::string> percent_decode(std::string_view text);

} // namespace modeld::daemon
