// SPDX-License-Identifier: Apache-2.0
#include "builders.hpp"

namespace modeld::test {

MemoryFiles::MemoryFiles(std::map<std::string, std::string> files, std::string name)
    : name_(std::move(name)) {
  for (auto& [path, text] : files) {
    entries_.push_back({path, text.size()});
    files_.emplace(path, std::move(text));
  }
}

Result<std::span<const std::byte>> MemoryFiles::bytes(std::string_view path) const {
  const auto at = files_.find(path);
  if (at == files_.end())
    return fail(Errc::not_found, "reading '" + std::string(path) + "': no such file");
  return bytes_of(at->second);
}

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
