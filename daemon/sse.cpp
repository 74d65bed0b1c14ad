// SPDX-License-Identifier: Apache-2.0
#include "daemon/sse.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <charconv>

namespace modeld::daemon {
namespace {

// Serialised JSON has no raw line feed, so data is one line.
std::string data_of(const api::Job& job) {
  return boost::json::serialize(job.to_json());
}

} // namespace

std::string sse_event(const JobEvent& event) {
  return fmt::format("event: {}\nid: {}\ndata: {}\n\n", event.last ? "end" : "change", event.number,
                     data_of(event.job));
}

std::string sse_progress(const api::Job& job) {
  return fmt::format("event: progress\ndata: {}\n\n", data_of(job));
}

std::string_view sse_heartbeat() {
  return ": still here\n\n";
}

std::uint64_t parse_last_event_id(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  return ec == std::errc{} && end == text.data() + text.size() ? number : 0;
}

} // namespace modeld::daemon
