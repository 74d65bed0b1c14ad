// SPDX-License-Identifier: Apache-2.0
#include "validate/finding.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace modeld::validate {

std::string_view letter(Severity severity) {
  switch (severity) {
  case Severity::info:
    return "I";
  case Severity::warning:
    return "W";
  case Severity::error:
    break;
  }
  return "E";
}

void Report::add(std::string_view rule, Severity severity, std::optional<std::uint64_t> offset,
                 std::string message, std::string hint) {
  if (severity == Severity::error) ++errors_;
  if (severity == Severity::warning) ++warnings_;
  Finding finding{rule, severity, path_, offset, std::move(message), std::move(hint)};
  if (!full()) {
    findings_.push_back(std::move(finding));
    return;
  }
  ++dropped_;
  // An error behind a thousand warnings must still be what the file is refused for.
  if (severity == Severity::error && !first_error_beyond_cap_)
    first_error_beyond_cap_ = std::move(finding);
}

void Report::merge(Report other) {
  errors_ += other.errors_;
  warnings_ += other.warnings_;
  dropped_ += other.dropped_;
  for (Finding& finding : other.findings_) {
    if (!full()) {
      findings_.push_back(std::move(finding));
      continue;
    }
    ++dropped_;
    if (finding.severity == Severity::error && !first_error_beyond_cap_)
      first_error_beyond_cap_ = std::move(finding);
  }
  if (!first_error_beyond_cap_) first_error_beyond_cap_ = std::move(other.first_error_beyond_cap_);
}

bool Report::has(std::string_view rule) const {
  return std::any_of(findings_.begin(), findings_.end(),
                     [&](const Finding& finding) { return finding.rule == rule; });
}

bool Report::has(std::string_view rule, Severity severity) const {
  return std::any_of(findings_.begin(), findings_.end(), [&](const Finding& finding) {
    return finding.rule == rule && finding.severity == severity;
  });
}

std::optional<Error> Report::first_error() const {
  if (errors_ == 0) return std::nullopt;
  const auto at = std::find_if(findings_.begin(), findings_.end(), [](const Finding& finding) {
    return finding.severity == Severity::error;
  });
  if (at == findings_.end() && !first_error_beyond_cap_) return std::nullopt;
  const Finding& finding = at != findings_.end() ? *at : *first_error_beyond_cap_;
  Error error{Errc::malformed,
              fmt::format("checking '{}': {} [{}]", finding.path, finding.message, finding.rule),
              finding.hint,
              {},
              0};
  error.details.emplace_back("rule", finding.rule);
  error.details.emplace_back("path", finding.path);
  if (finding.offset) error.details.emplace_back("offset", std::to_string(*finding.offset));
  return error;
}

} // namespace modeld::validate
