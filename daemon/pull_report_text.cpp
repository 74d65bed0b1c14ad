// SPDX-License-Identifier: Apache-2.0
#include "daemon/pull_report.hpp"

#include "daemon/human_text.hpp"
#include "schema/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace modeld::daemon {
namespace {

using boost::json::object;

constexpr std::size_t k_shown_paths = 5; // of a list on a line

/// The first few of a list of paths: "a, b, ...".
std::string names(const object& report, std::string_view member) {
  const auto list = json_array(report, member);
  if (!list) return {};
  std::vector<std::string> shown;
  for (const auto& one : **list) {
    if (one.is_string() && shown.size() < k_shown_paths) shown.emplace_back(one.get_string());
  }
  if ((*list)->size() > shown.size()) shown.emplace_back("...");
  return fmt::format("{}", fmt::join(shown, ", "));
}

std::string choice_line(const object& choice) {
  const auto number = [&choice](std::string_view name) {
    return json_uint(choice, name).value_or(0);
  };
  const std::string why = json_string(choice, "why").value_or("");
  const std::string left = names(choice, "left_paths");
  return fmt::format("took {} of {} files, {} of {}, {}; left: {}", number("files"),
                     number("files") + number("left"), human_bytes(number("bytes")),
                     human_bytes(number("bytes") + number("left_bytes")),
                     why == "conversion" ? "what the conversion needs" : "as the patterns say",
                     left);
}

std::string moved_line(const object& moved) {
  std::vector<std::string> parts;
  for (const std::string_view what : {"added", "removed", "changed"}) {
    const auto list = json_array(moved, what);
    if (!list || (*list)->empty()) continue;
    parts.push_back(fmt::format("{} {} ({})", (*list)->size(), what, names(moved, what)));
  }
  const std::string from = json_string(moved, "from").value_or("");
  return fmt::format("'{}' moved from {} to {}: {}; what was pulled as {} stays",
                     json_string(moved, "revision").value_or(""), from.substr(0, 12),
                     json_string(moved, "to").value_or("").substr(0, 12),
                     parts.empty() ? "no file differs, or the old list is gone"
                                   : fmt::format("{}", fmt::join(parts, ", ")),
                     from.substr(0, 12));
}

const object* member(const object& from, std::string_view name) {
  const auto* value = from.if_contains(name);
  return value == nullptr ? nullptr : value->if_object();
}

} // namespace

std::vector<std::string> pull_report_lines(const object& result) {
  const object* report = member(result, "pull");
  std::vector<std::string> lines;
  if (report == nullptr) return lines;
  if (const object* renamed = member(*report, "renamed")) {
    lines.push_back(fmt::format("'{}' is now '{}'; both names are known here",
                                json_string(*renamed, "from").value_or(""),
                                json_string(*renamed, "to").value_or("")));
  }
  if (const object* moved = member(*report, "moved")) lines.push_back(moved_line(*moved));
  const object* choice = member(*report, "choice");
  if (choice != nullptr && json_uint(*choice, "left").value_or(0) > 0) {
    lines.push_back(choice_line(*choice));
  }
  return lines;
}

} // namespace modeld::daemon
