// SPDX-License-Identifier: Apache-2.0
#include "repository_rows.hpp"

#include "tests/support/memory_files.hpp"

#include <catch2/catch.hpp>

namespace modeld::test {

using namespace validate;

Report check_all(const Files& files, std::string_view name, Profile profile, bool data) {
  CheckOptions options;
  options.profile = profile;
  options.data = data;
  options.threads = 2;
  Report all;
  for (CheckedFile& file : check_repository(MemoryFiles(std::string(name), files), options))
    all.merge(std::move(file.report));
  return all;
}

void expect_row(std::string_view id, const Files& files, std::string_view verdict,
                std::string_view name, bool data) {
  const Report report = check_all(files, name, Profile::strict, data);
  INFO(id << " " << verdict << "\n" << list(report));
  const std::string_view kind = verdict.substr(0, verdict.find(' '));
  const std::string_view rule =
      verdict.size() > kind.size() ? verdict.substr(kind.size() + 1) : std::string_view();
  CHECK(report.accepted() == (kind != "REJECT"));
  if (kind == "ACCEPT") CHECK(report.warnings() == 0);
  if (!rule.empty())
    CHECK(report.has(rule, kind == "REJECT" ? Severity::error : Severity::warning));
}

} // namespace modeld::test
