// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What goes over the socket, as both programs see it. The contract is openapi.yaml; a test holds
// the two together. Readers ignore members that they do not know. Times are seconds since 1970.

namespace modeld::api {

/// {"code","message","hint","details"}: an error inside another object, and after --json.
boost::json::object error_to_json(const Error& error);
/// An object without a code that we know is internal.
Error error_from_json(const boost::json::object& object);

/// The whole body of a failed request: RFC 9457 problem details, with our members beside them.
boost::json::object problem_to_json(const Error& error);

/// A job as clients see it.
struct Job {
  std::string id;
  std::string kind;             ///< "pull", "variant"
  std::string ref;              ///< what was asked for
  std::string state;            ///< "queued", "running", "done", "failed", "cancelled"
  std::string phase;            ///< "resolving", "listing", "downloading", ...; empty while queued
  std::string notice;           ///< what it waits for, for people; may be empty
  std::uint64_t done = 0;       ///< bytes of this phase
  std::uint64_t total = 0;      ///< bytes of this phase; 0 while unknown
  std::uint64_t rate = 0;       ///< bytes per second, lately
  std::uint64_t limit_rate = 0; ///< bytes per second it may download; 0: no limit of its own
  std::uint32_t uid = 0;        ///< who asked first
  std::int64_t created = 0;
  std::int64_t updated = 0;
  std::optional<boost::json::object> result; ///< of a job that is done
  std::optional<Error> error;                ///< of a job that failed

  bool finished() const { return state == "done" || state == "failed" || state == "cancelled"; }
  boost::json::object to_json() const;
  static Result<Job> from_json(const boost::json::object& object);
};

/// A snapshot that is there.
struct Snapshot {
  std::string repo;
  std::string commit;
  std::string path; ///< folder with its files that are here
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t absent = 0; ///< files that the Hub lists and nobody asked for
  std::uint64_t absent_bytes = 0;
  std::int64_t added = 0;
  std::int64_t used = 0;
  bool damaged = false;
  std::vector<std::string> revisions; ///< branches and tags that are known to mean this commit

  boost::json::object to_json() const;
  static Result<Snapshot> from_json(const boost::json::object& object);
};

/// A file that a runtime can map: built from a snapshot, or a part of it.
struct Variant {
  std::string key; ///< empty for a file of the repository itself
  std::string repo;
  std::string commit;
  std::string recipe; ///< canonical; empty for a file of the repository itself
  std::string path;
  std::string sha256;
  std::uint64_t size = 0;
  std::int64_t added = 0;
  std::uint64_t build_ms = 0;

  boost::json::object to_json() const;
  static Result<Variant> from_json(const boost::json::object& object);
};

} // namespace modeld::api
