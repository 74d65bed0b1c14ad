// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace modeld {

/// What went wrong, as a closed list. The table in error.cpp gives each code its slug, HTTP status,
/// exit status and whether a retry can help; nothing else in the program knows those mappings.
enum class Errc {
  invalid_argument, ///< the request itself is wrong; nobody can answer it
  not_found,        ///< repository, revision, file, variant, job
  conflict,         ///< the request contradicts what is there
  digest_mismatch,  ///< bytes are not the bytes that were promised
  malformed,        ///< a file breaks its format
  corrupt,          ///< our own store is damaged
  unsupported,      ///< well-formed, but not something we can do
  no_space,
  busy, ///< a limit on concurrent work; try again
  io,
  net_transient, ///< a retry may help
  net_permanent, ///< a retry will not help
  denied,        ///< credentials missing or insufficient
  unreachable,   ///< the daemon does not answer
  cancelled,
  internal, ///< a bug of ours
};

struct ErrcInfo {
  Errc code;
  std::string_view slug; ///< in logs, JSON, problem details
  int http_status;
  int exit_status; ///< design.md section 5
  bool retryable;
};

/// One row for each code; never null.
const ErrcInfo& info(Errc code);

/// The whole table, in the order of the enumeration.
std::vector<ErrcInfo> all_error_codes();

/// Finds a code by its slug; Errc::internal for a slug that we do not know.
Errc errc_from_slug(std::string_view slug);

/// A failure that the world can cause. Message: lower case, no full stop,
/// "<doing> '<object>': <cause>", with the value found and those allowed. Never a token or the
/// user information of a URL.
struct Error {
  Errc code = Errc::internal;
  std::string message;
  std::string hint;                                         ///< what to do next; may be empty
  std::vector<std::pair<std::string, std::string>> details; ///< for programs: name and value
  int sys = 0;                                              ///< errno where there was one

  /// Puts "importing 'x'" in front of the message on the way up.
  Error context(std::string_view doing) &&;
  Error with_hint(std::string text) &&;
  Error with_detail(std::string name, std::string value) &&;
};

/// The only door for errno: ENOSPC and EDQUOT are no_space everywhere, EACCES and EPERM denied.
Error from_errno(int sys, std::string message);

} // namespace modeld
