// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/api.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::daemon {

/// "512 B", "1.5 MiB", "12.3 GiB".
std::string human_bytes(std::uint64_t bytes);
/// "0:07", "12:34", "1:02:03".
std::string human_duration(std::uint64_t seconds);
/// "2026-03-01 12:34", local time; "-" for 0.
std::string human_time(std::int64_t unix_time);

/// One line about a running job: phase, bar, share, bytes, rate, time left, at most `width` wide.
std::string progress_line(const api::Job& job, std::size_t width);
/// The same without a bar, for a log.
std::string progress_text(const api::Job& job);

/// Rows as columns, each as wide as it must be; the first row is the head.
std::string table(const std::vector<std::vector<std::string>>& rows);

} // namespace modeld::daemon
