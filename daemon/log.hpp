// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

// The daemon's log: one line each on stderr, or for the journal where stderr is one. Only this
// folder logs. Strangers' text is escaped here.

namespace modeld::daemon {

enum class LogLevel { debug, info, warning, error };

/// "error", "warning", "info", "debug"; info for anything else.
void set_log_level(std::string_view name);
void log_line(LogLevel level, std::string_view line);

template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::debug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::warning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::error, fmt::format(format, std::forward<Args>(args)...));
}

} // namespace modeld::daemon
