// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/job.hpp"

#include <cstdint>
#include <string>
#include <string_view>

// The text of an event stream (WHATWG HTML, server-sent events).

namespace modeld::daemon {

/// "change", or "end" for the last one, with the event's number as its id.
std::string sse_event(const JobEvent& event);
/// "progress", without an id: a reader that comes back asks for what it missed of the others.
std::string sse_progress(const api::Job& job);
/// A comment, which readers skip: keeps what is between us from closing the connection.
std::string_view sse_heartbeat();

/// The value of Last-Event-ID; 0 where it is absent or no number: everything is told then.
std::uint64_t parse_last_event_id(std::string_view text);

} // namespace modeld::daemon
