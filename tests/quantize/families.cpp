// SPDX-License-Identifier: Apache-2.0
#include "tests/quantize/families.hpp"

#include "tests/support/memory_files.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace fs = std::filesystem;

namespace modeld::test {

using quantize::ArchitectureSet;

Result<ArchitectureSet> load_families(const fs::path& folder) {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    texts.emplace_back(entry.path().filename().string(), read_file(entry.path()));
  }
  std::sort(texts.begin(), texts.end());
  const std::vector<std::pair<std::string_view, std::string_view>> views(texts.begin(),
                                                                         texts.end());
  return ArchitectureSet::load(views);
}

} // namespace modeld::test
