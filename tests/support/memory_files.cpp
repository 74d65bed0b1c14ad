// SPDX-License-Identifier: Apache-2.0
#include "tests/support/memory_files.hpp"

#include <fstream>
#include <stdexcept>

namespace modeld::test {

std::string read_file(const std::filesystem::path& path) {
  std::string bytes(std::filesystem::file_size(path), '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return bytes;
}

MemoryFiles::MemoryFiles(std::string name, std::map<std::string, std::string> files)
    : name_(std::move(name)) {
  for (auto& [path, text] : files) {
    files_.emplace(path, std::move(text));
  }
  list();
}

MemoryFiles::MemoryFiles(MemoryFiles&& other) noexcept
    : name_(std::move(other.name_)), files_(std::move(other.files_)),
      entries_(std::move(other.entries_)) {}

MemoryFiles MemoryFiles::from_folder(const std::filesystem::path& folder,
                                     std::uint64_t largest_file) {
  MemoryFiles out(folder.filename().string());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.file_size() > largest_file) continue;
    out.files_.emplace(std::filesystem::relative(entry.path(), folder).generic_string(),
                       read_file(entry.path()));
  }
  out.list();
  return out;
}

void MemoryFiles::put(std::string path, std::string text) {
  files_.insert_or_assign(std::move(path), std::move(text));
  list();
}

void MemoryFiles::remove(const std::string& path) {
  files_.erase(path);
  list();
}

Result<std::span<const std::byte>> MemoryFiles::bytes(std::string_view path) const {
  const auto at = files_.find(path);
  if (at == files_.end()) return fail(Errc::not_found, "reading '" + std::string(path) + "'");
  return std::as_bytes(std::span(at->second));
}

void MemoryFiles::list() {
  entries_.clear();
  for (const auto& [path, text] : files_) {
    entries_.push_back({path, text.size()});
  }
}

} // namespace modeld::test
