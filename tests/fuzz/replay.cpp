// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over files and folders of files, and over cuts and flipped bits of each: what
// a build without libFuzzer can do with the seeds. usage: fuzz_replay TARGET PATH...
#include "targets.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

using modeld::fuzz::k_targets;

modeld::fuzz::Target g_target =
    nullptr; // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

void run(const std::string& text) {
  // A copy of exactly this size, so that a sanitizer sees one byte too many.
  const std::vector<std::uint8_t> copy(text.begin(), text.end());
  g_target(copy.data(), copy.size());
}

void replay(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(fs::file_size(path)), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  run(text);
  constexpr std::size_t k_runs = 400; // of each kind, spread over the file
  const std::size_t step = text.size() / k_runs + 1;
  for (std::size_t cut = 0; cut < text.size(); cut += step)
    run(text.substr(0, cut));
  for (std::size_t at = 0; at < text.size(); at += step) {
    std::string changed = text;
    for (const int mask : {0x01, 0x80, 0xFF}) {
      changed[at] = static_cast<char>(text[at] ^ mask);
      run(changed);
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  for (const auto& [name, target] : k_targets)
    if (argc > 1 && name == argv[1]) g_target = target;
  if (g_target == nullptr) return 2;
  std::size_t files = 0;
  for (int i = 2; i < argc; ++i) {
    if (!fs::is_directory(argv[i])) {
      replay(argv[i]);
      ++files;
      continue;
    }
    for (const auto& entry : fs::directory_iterator(argv[i])) {
      replay(entry.path());
      ++files;
    }
  }
  std::printf("%zu files\n", files);
  return files > 0 ? 0 : 1;
}
