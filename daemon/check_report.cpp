// SPDX-License-Identifier: Apache-2.0
#include "daemon/check_report.hpp"

#include "daemon/terminal_text.hpp"
#include "schema/json.hpp"
#include "validate/escape.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

namespace json = boost::json;
using validate::Finding;

constexpr std::size_t k_longest_path = 4096;

std::string word(const json::object& from, std::string_view name) {
  return json_string(from, name).value_or("");
}

void print_finding(Output& out, const json::object& finding, bool all) {
  const std::string severity = word(finding, "severity");
  if (severity == "I" && !all) return;
  const auto* offset = finding.if_contains("offset");
  const bool somewhere = offset != nullptr && offset->is_number();
  out.result(fmt::format(
      "  {} {}{}: {}", terminal_text(severity), terminal_text(word(finding, "id")),
      somewhere ? fmt::format(" at byte {}", offset->to_number<std::uint64_t>()) : std::string(),
      terminal_text(word(finding, "message"))));
  if (const std::string hint = word(finding, "hint"); !hint.empty())
    out.result("      " + terminal_text(hint));
}

Error broken() {
  return {
      Errc::malformed, "reading a report of findings: it is not of the expected form", {}, {}, 0};
}

} // namespace

json::object check_json(const validate::CheckedFile& file) {
  json::array findings;
  for (const Finding& finding : file.report.findings()) {
    json::object item{{"id", finding.rule},
                      {"severity", validate::letter(finding.severity)},
                      {"offset", nullptr},
                      {"message", finding.message}};
    if (finding.offset) item["offset"] = *finding.offset;
    if (!finding.hint.empty()) item["hint"] = finding.hint;
    findings.push_back(std::move(item));
  }
  json::object object{{"path", validate::escape_text(file.path, k_longest_path)},
                      {"format", file.format},
                      {"verdict", validate::verdict(file.report)},
                      {"findings", std::move(findings)}};
  if (file.report.dropped() > 0) object["more_findings"] = file.report.dropped();
  return object;
}

void add_error(json::object& file, std::string_view rule, std::string_view message,
               std::string_view hint) {
  file["verdict"] = "reject";
  json::object finding{
      {"id", rule}, {"severity", "E"}, {"offset", nullptr}, {"message", message}, {"hint", hint}};
  auto* findings = file.if_contains("findings");
  if (findings != nullptr && findings->is_array()) {
    findings->get_array().push_back(std::move(finding));
  } else {
    file["findings"] = json::array{std::move(finding)};
  }
}

CheckTotals count(const json::array& files) {
  CheckTotals totals;
  for (const auto& value : files) {
    if (!value.is_object()) continue;
    ++totals.files;
    const std::string verdict = word(value.get_object(), "verdict");
    if (verdict == "reject") ++totals.rejected;
    if (verdict == "warn") ++totals.warned;
  }
  return totals;
}

Result<void> print_check(Output& out, const json::array& files, bool all) {
  for (const auto& value : files) {
    if (!value.is_object()) return fail(broken());
    const auto& file = value.get_object();
    MODELD_ASSIGN(const auto verdict, json_string(file, "verdict"));
    MODELD_ASSIGN(const auto format, json_string(file, "format"));
    MODELD_ASSIGN(const auto* findings, json_array(file, "findings"));
    if (verdict == "accept" && !all && format == "other") continue;
    out.result(fmt::format("{:<6}  {}  ({})", terminal_text(verdict),
                           terminal_text(word(file, "path")), terminal_text(format)));
    for (const auto& finding : *findings) {
      if (!finding.is_object()) return fail(broken());
      print_finding(out, finding.get_object(), all);
    }
    if (const auto more = json_uint(file, "more_findings"); more && *more > 0)
      out.result(fmt::format("  ... and {} more findings", *more));
  }
  return {};
}

} // namespace modeld::daemon
