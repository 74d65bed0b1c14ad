// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/file_set.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace modeld::fuzz {

/// Files that lie in memory already.
class BorrowedFiles final : public FileSet {
public:
  explicit BorrowedFiles(std::map<std::string, std::span<const std::byte>, std::less<>> files)
      : files_(std::move(files)) {
    for (const auto& [path, bytes] : files_)
      entries_.push_back({path, bytes.size()});
  }
  std::string_view name() const override { return "fuzz-Instruct"; }
  const std::vector<Entry>& entries() const override { return entries_; }
  Result<std::span<const std::byte>> bytes(std::string_view path) const override {
    const auto at = files_.find(path);
    if (at == files_.end()) return fail(Errc::not_found, "no such file");
    return at->second;
  }

private:
  std::map<std::string, std::span<const std::byte>, std::less<>> files_;
  std::vector<Entry> entries_;
};

} // namespace modeld::fuzz
