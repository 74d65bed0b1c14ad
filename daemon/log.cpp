// SPDX-License-Identifier: Apache-2.0
#include "daemon/log.hpp"

#include "daemon/terminal_text.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>

namespace modeld::daemon {
namespace {

// Under systemd stderr goes to the journal, which reads "<N>" in front of a line as its priority
// (sd-daemon(3)) and keeps the time itself.
std::shared_ptr<spdlog::logger> make_logger() {
  auto logger =
      std::make_shared<spdlog::logger>("modeld", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  if (std::getenv("JOURNAL_STREAM") != nullptr) {
    logger->set_pattern("%v");
  } else {
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  }
  logger->set_level(spdlog::level::info);
  return logger;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = make_logger();
  return *instance;
}

spdlog::level::level_enum spd_level(LogLevel level) {
  switch (level) {
  case LogLevel::debug:
    return spdlog::level::debug;
  case LogLevel::info:
    return spdlog::level::info;
  case LogLevel::warning:
    return spdlog::level::warn;
  case LogLevel::error:
    return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::string_view journal_prefix(LogLevel level) {
  switch (level) {
  case LogLevel::debug:
    return "<7>";
  case LogLevel::info:
    return "<6>";
  case LogLevel::warning:
    return "<4>";
  case LogLevel::error:
    return "<3>";
  }
  return "<3>";
}

} // namespace

void set_log_level(std::string_view name) {
  LogLevel level = LogLevel::info;
  if (name == "error") level = LogLevel::error;
  if (name == "warning") level = LogLevel::warning;
  if (name == "debug") level = LogLevel::debug;
  logger().set_level(spd_level(level));
}

void log_line(LogLevel level, std::string_view line) {
  static const bool journal = std::getenv("JOURNAL_STREAM") != nullptr;
  const std::string text = terminal_text(line);
  logger().log(spd_level(level), journal ? std::string(journal_prefix(level)) + text : text);
}

} // namespace modeld::daemon
