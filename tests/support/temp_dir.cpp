// SPDX-License-Identifier: Apache-2.0
#include "tests/support/temp_dir.hpp"

#include <cstdlib>
#include <string>
#include <system_error>

namespace modeld::test {

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "modeld-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "making a folder for a test");
  }
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

} // namespace modeld::test
