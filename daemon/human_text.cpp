// SPDX-License-Identifier: Apache-2.0
#include "daemon/human_text.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

namespace modeld::daemon {
namespace {

constexpr std::size_t k_bar_width = 24;

std::string bar(double share) {
  const auto full = static_cast<std::size_t>(share * static_cast<double>(k_bar_width));
  return '[' + std::string(std::min(full, k_bar_width), '#') +
         std::string(k_bar_width - std::min(full, k_bar_width), '.') + ']';
}

double share_of(const api::Job& job) {
  if (job.total == 0) return 0;
  return std::min(1.0, static_cast<double>(job.done) / static_cast<double>(job.total));
}

std::string numbers(const api::Job& job) {
  if (job.total == 0) return job.done == 0 ? std::string() : human_bytes(job.done);
  std::string text = fmt::format("{:3.0f}%  {} of {}", share_of(job) * 100, human_bytes(job.done),
                                 human_bytes(job.total));
  if (job.rate > 0 && job.done < job.total) {
    text += fmt::format("  {}/s  {} left", human_bytes(job.rate),
                        human_duration((job.total - job.done) / job.rate));
  }
  return text;
}

std::string_view phase_of(const api::Job& job) {
  return job.phase.empty() ? std::string_view(job.state) : std::string_view(job.phase);
}

} // namespace

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array k_units{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < k_units.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, k_units[unit]);
}

std::string human_duration(std::uint64_t seconds) {
  const std::uint64_t minutes = seconds / 60;
  if (minutes < 60) return fmt::format("{}:{:02}", minutes, seconds % 60);
  return fmt::format("{}:{:02}:{:02}", minutes / 60, minutes % 60, seconds % 60);
}

std::string human_time(std::int64_t unix_time) {
  if (unix_time == 0) return "-";
  const std::time_t time = unix_time;
  std::tm local{};
  if (::localtime_r(&time, &local) == nullptr) return "-";
  return fmt::format("{:%Y-%m-%d %H:%M}", local);
}

std::string progress_line(const api::Job& job, std::size_t width) {
  const std::string phase = fmt::format("{:<12}", phase_of(job));
  std::string rest = numbers(job);
  if (!job.notice.empty()) rest += "  " + job.notice;
  const std::string drawn = job.total > 0 ? bar(share_of(job)) + ' ' : std::string();
  const bool wide = phase.size() + drawn.size() + rest.size() > width;
  return (wide ? phase + rest : phase + drawn + rest).substr(0, width);
}

std::string progress_text(const api::Job& job) {
  std::string text(phase_of(job));
  if (const std::string more = numbers(job); !more.empty()) text += ' ' + more;
  if (!job.notice.empty()) text += ": " + job.notice;
  return text;
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i + 1 == row.size() ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += (out.empty() ? "" : "\n") + line;
  }
  return out;
}

} // namespace modeld::daemon
