// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/error.hpp"

#include <boost/json/object.hpp>

#include <string_view>

namespace modeld::daemon {

/// Where a command speaks. Results alone go to stdout, everything else to stderr; with --json a
/// result is one JSON object. One for each process, used from one thread.
class Output {
public:
  Output();

  bool json() const { return json_; }
  void set_json(bool on) { json_ = on; }
  bool quiet() const { return quiet_; }
  void set_quiet(bool on) { quiet_ = on; }
  /// Whether stderr is a terminal that a progress bar can be drawn on.
  bool terminal() const { return terminal_; }

  /// One line of result, written as it is (a path must arrive unchanged) plus a line feed.
  void result(std::string_view line);
  /// A result for people: a table, a report. Strangers' text in it is escaped.
  void text(std::string_view lines);
  /// The result as JSON: one object and a line feed.
  void result(const boost::json::object& object);
  /// Text for people, escaped; nothing with --quiet.
  void message(std::string_view line);
  /// A progress bar in place of the last one; empty clears it. Only on a terminal.
  void progress(std::string_view line);
  /// The last words of a command that failed: hint, then `error: <what> [<code>]`; with --json the
  /// object {"error":{...}} on stdout as well.
  void error(const Error& error);
  /// Whether everything written to stdout has arrived: a full disk must not look like success.
  bool flush();

private:
  bool json_ = false;
  bool quiet_ = false;
  bool terminal_ = false;
  bool drawn_ = false; ///< a progress bar is on the screen
};

} // namespace modeld::daemon
