// SPDX-License-Identifier: Apache-2.0
#include "builders.hpp"

namespace modeld::test {

std::string list(const validate::Report& report) {
  std::string out;
  for (const auto& finding : report.findings()) {
    out += std::string(finding.rule) + " " + std::string(letter(finding.severity)) + " " +
           (finding.offset ? std::to_string(*finding.offset) : "-") + ": " + finding.message + "\n";
    if (out.size() > 2000) return out + "...";
  }
  return out;
}

} // namespace modeld::test
