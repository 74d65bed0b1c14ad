// SPDX-License-Identifier: Apache-2.0
#include "daemon/check_input.hpp"
#include "daemon/commands.hpp"
#include "daemon/safe_json.hpp"
#include "daemon/terminal_text.hpp"
#include "daemon/work_progress.hpp"
#include "validate/escape.hpp"
#include "validate/repository.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>

namespace modeld::daemon {
namespace {

namespace json = boost::json;
using validate::CheckedFile;
using validate::Finding;
using validate::Severity;

struct Options {
  std::vector<std::string> paths;
  bool data = false;
  bool all = false;
  std::string profile = "strict";
  unsigned threads = 0;
};

struct Totals {
  std::size_t files = 0;
  std::size_t rejected = 0;
  std::size_t warned = 0;
};

json::object to_json(const CheckedFile& file) {
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
  json::object object{{"path", validate::escape_text(file.path, 4096)},
                      {"format", file.format},
                      {"verdict", validate::verdict(file.report)},
                      {"findings", std::move(findings)}};
  if (file.report.dropped() > 0) object["more_findings"] = file.report.dropped();
  return object;
}

void print(Output& out, const CheckedFile& file, bool all) {
  const std::string_view verdict = validate::verdict(file.report);
  if (verdict == "accept" && !all && file.format == "other") return;
  out.result(fmt::format("{:<6}  {}  ({})", verdict, terminal_text(file.path), file.format));
  for (const Finding& finding : file.report.findings()) {
    if (finding.severity == Severity::info && !all) continue;
    const std::string at = finding.offset ? fmt::format(" at byte {}", *finding.offset) : "";
    out.result(fmt::format("  {} {}{}: {}", validate::letter(finding.severity), finding.rule, at,
                           terminal_text(finding.message)));
    if (!finding.hint.empty()) out.result("      " + terminal_text(finding.hint));
  }
  if (file.report.dropped() > 0)
    out.result(fmt::format("  ... and {} more findings", file.report.dropped()));
}

/// What a PATH that cannot be opened as it is gives in place of findings.
std::optional<CheckedFile> as_finding(const Error& error, const std::string& path) {
  if (error.code != Errc::malformed && error.code != Errc::denied) return std::nullopt;
  CheckedFile file{path, "other", validate::Report(path)};
  file.report.error("GN-01", std::nullopt, validate::escape_text(error.message, 1000), error.hint);
  return file;
}

Result<std::vector<CheckedFile>> check_path(const std::string& path,
                                            const validate::CheckOptions& options) {
  auto input = CheckInput::open(path);
  if (!input) {
    if (auto file = as_finding(input.error(), path)) {
      std::vector<CheckedFile> files;
      files.push_back(*std::move(file));
      return files;
    }
    return fail(std::move(input).error());
  }
  std::vector<CheckedFile> files = validate::check_repository(input->files(), options);
  if (options.progress->cancel) return fail(Errc::cancelled, "checking: interrupted");
  for (const std::string& changed : input->changed()) {
    const auto file = std::find_if(files.begin(), files.end(),
                                   [&](const CheckedFile& f) { return f.path == changed; });
    if (file != files.end())
      file->report.error("GN-07", std::nullopt, "the file changed while it was checked",
                         "check it again when nobody writes to it");
  }
  for (CheckedFile& file : files)
    file.path = input->shown(file.path);
  return files;
}

Result<int> check(CommandContext& context, const Options& given) {
  Progress progress;
  validate::CheckOptions options;
  options.profile =
      given.profile == "compat" ? validate::Profile::compat : validate::Profile::strict;
  options.data = given.data;
  options.threads =
      given.threads > 0 ? given.threads : std::max(1U, std::thread::hardware_concurrency());
  options.progress = &progress;
  std::vector<CheckedFile> files;
  {
    const WorkProgress shown(context.out, progress, "checking");
    for (const std::string& path : given.paths) {
      MODELD_ASSIGN(auto found, check_path(path, options));
      std::move(found.begin(), found.end(), std::back_inserter(files));
    }
  }
  Totals totals;
  json::array list;
  for (const CheckedFile& file : files) {
    ++totals.files;
    if (!file.report.accepted())
      ++totals.rejected;
    else if (file.report.warnings() > 0)
      ++totals.warned;
    if (context.out.json())
      list.push_back(to_json(file));
    else
      print(context.out, file, given.all);
  }
  if (context.out.json()) context.out.result(safe_json(json::object{{"files", std::move(list)}}));
  context.out.message(fmt::format("{} files: {} rejected, {} with warnings", totals.files,
                                  totals.rejected, totals.warned));
  return totals.rejected > 0 ? info(Errc::malformed).exit_status : 0;
}

} // namespace

void add_check(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("check", "Check model files and repositories");
  command->add_option("path", options->paths, "Files and folders")->required();
  command->add_flag("--data", options->data, "Scan tensor data too, not only headers");
  command
      ->add_option("--profile", options->profile,
                   "strict, or compat: what the formats' own readers take")
      ->check(CLI::IsMember({"strict", "compat"}));
  command->add_flag("-a,--all", options->all, "List files without findings and notes too");
  command->add_option("-j,--jobs", options->threads, "Files at once (default: processors)")
      ->check(CLI::Range(1, 1024));
  command->callback([&context, options] {
    context.run = [&context, options] { return check(context, *options); };
  });
}

} // namespace modeld::daemon
