// SPDX-License-Identifier: Apache-2.0
#include "tests/hub/hub_commit.hpp"

#include "tests/hub/git_objects.hpp"
#include "validate/sha256.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <system_error>

namespace modeld::test {
namespace {

// From the .gitattributes that the Hub puts in every new model repository.
constexpr std::array<std::string_view, 24> k_lfs_endings{
    ".7z",     ".arrow",  ".bin",     ".bz2", ".ckpt", ".gguf",        ".gz",  ".h5",
    ".joblib", ".model",  ".msgpack", ".npy", ".npz",  ".onnx",        ".ot",  ".parquet",
    ".pb",     ".pickle", ".pkl",     ".pt",  ".pth",  ".safetensors", ".tar", ".zip"};

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

struct Mapping {
  void* data = nullptr;
  std::size_t size = 0;
  ~Mapping() {
    if (data != nullptr) munmap(data, size);
  }
};

/// Maps a file read-only; the mapping outlives the descriptor.
std::shared_ptr<const Mapping> map_file(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd < 0 || fstat(fd, &status) != 0) {
    throw std::system_error(errno, std::generic_category(), "opening " + path.string());
  }
  auto mapping = std::make_shared<Mapping>();
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > 0) {
    void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
      throw std::system_error(errno, std::generic_category(), "mapping " + path.string());
    }
    mapping->data = data;
    mapping->size = size;
  }
  close(fd);
  return mapping;
}

void identify(HubFile& file, const LfsRule& rule) {
  if (rule.applies(file.path, file.bytes.size())) {
    file.sha256 = validate::sha256_of(as_bytes(file.bytes));
    file.pointer = lfs_pointer(*file.sha256, file.bytes.size());
    file.git_oid = validate::git_blob_id(as_bytes(file.pointer));
  } else {
    file.git_oid = validate::git_blob_id(as_bytes(file.bytes));
  }
}

} // namespace

bool LfsRule::applies(std::string_view path, std::uint64_t size) const {
  if (size >= threshold) return true;
  return by_name && std::any_of(k_lfs_endings.begin(), k_lfs_endings.end(),
                                [path](std::string_view end) { return path.ends_with(end); });
}

HubCommit::HubCommit(std::vector<HubFile> files) : files_(std::move(files)) {
  std::sort(files_.begin(), files_.end(),
            [](const HubFile& a, const HubFile& b) { return a.path < b.path; });
  id_ = git_commit_id(tree_of("", 0, files_.size()));
}

/// Tree id of the files [first, last), all of which lie under `folder` ("" or "a/b/").
GitOid HubCommit::tree_of(const std::string& folder, std::size_t first, std::size_t last) {
  std::vector<TreeLine> lines;
  while (first < last) {
    const std::string_view rest = std::string_view(files_[first].path).substr(folder.size());
    const auto slash = rest.find('/');
    if (slash == std::string_view::npos) {
      lines.push_back({std::string(rest), false, files_[first].git_oid});
      ++first;
      continue;
    }
    const std::string name(rest.substr(0, slash));
    const std::string inner = folder + name + '/';
    std::size_t end = first;
    while (end < last && files_[end].path.starts_with(inner)) {
      ++end;
    }
    const GitOid oid = tree_of(inner, first, end);
    folders_[folder + name] = oid;
    lines.push_back({name, true, oid});
    first = end;
  }
  return git_tree_id(std::move(lines));
}

std::shared_ptr<const HubCommit> HubCommit::from_folder(const std::filesystem::path& folder,
                                                        const LfsRule& rule) {
  namespace fs = std::filesystem;
  std::vector<HubFile> files;
  for (auto it = fs::recursive_directory_iterator(folder); it != fs::end(it); ++it) {
    if (it.depth() == 0 && it->path().filename() == ".git") {
      it.disable_recursion_pending();
      continue;
    }
    if (!it->is_regular_file()) continue;
    const auto mapping = map_file(it->path());
    HubFile file;
    file.path = fs::relative(it->path(), folder).generic_string();
    file.bytes = {static_cast<const char*>(mapping->data), mapping->size};
    file.owner = mapping;
    identify(file, rule);
    files.push_back(std::move(file));
  }
  return std::shared_ptr<const HubCommit>(new HubCommit(std::move(files)));
}

std::shared_ptr<const HubCommit>
HubCommit::from_bytes(const std::vector<std::pair<std::string, std::string>>& files,
                      const LfsRule& rule) {
  std::vector<HubFile> made;
  for (const auto& [path, bytes] : files) {
    const auto owner = std::make_shared<const std::string>(bytes);
    HubFile file;
    file.path = path;
    file.bytes = *owner;
    file.owner = owner;
    identify(file, rule);
    made.push_back(std::move(file));
  }
  return std::shared_ptr<const HubCommit>(new HubCommit(std::move(made)));
}

const HubFile* HubCommit::find(std::string_view path) const {
  const auto it = std::lower_bound(
      files_.begin(), files_.end(), path,
      [](const HubFile& file, std::string_view wanted) { return file.path < wanted; });
  return it != files_.end() && it->path == path ? &*it : nullptr;
}

} // namespace modeld::test
