// SPDX-License-Identifier: Apache-2.0
#include "daemon/check_input.hpp"

#include "validate/shard_name.hpp"

#include <fmt/format.h>

#include <sys/stat.h>

namespace modeld::daemon {
namespace {

namespace fs = std::filesystem;

/// Whether a file beside `name` is a part of it.
bool belongs(std::string_view name, std::string_view other) {
  if (name == other) return true;
  const auto part = validate::numbered_name(name, ".gguf");
  const auto other_part = validate::numbered_name(other, ".gguf");
  if (part && other_part) return part->prefix == other_part->prefix;
  return name.ends_with(".safetensors.index.json") && other.ends_with(".safetensors");
}

Result<std::unique_ptr<FileSet>> open_with_parts(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const std::string name = path.filename().string();
  std::vector<store::FilePlace> places;
  std::error_code ec;
  for (fs::directory_iterator at(folder, ec); !ec && at != fs::directory_iterator();
       at.increment(ec)) {
    const std::string other = at->path().filename().string();
    std::error_code ignored;
    if (!belongs(name, other) || !at->is_regular_file(ignored)) continue;
    places.push_back({other, fs::absolute(at->path()), at->file_size(ignored)});
  }
  if (ec || places.empty()) { // a folder that may be entered but not listed
    const std::uint64_t size = fs::file_size(path, ec);
    if (ec) return fail(from_errno(ec.value(), fmt::format("opening '{}'", path.string())));
    places = {{name, fs::absolute(path), size}};
  }
  return store::make_file_set(fs::absolute(folder).lexically_normal().filename().string(),
                              std::move(places));
}

} // namespace

bool CheckInput::Stamp::operator==(const Stamp& other) const {
  return there == other.there && size == other.size && inode == other.inode &&
         modified.tv_sec == other.modified.tv_sec && modified.tv_nsec == other.modified.tv_nsec;
}

CheckInput::Stamp CheckInput::stamp(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return {true, static_cast<std::uint64_t>(info.st_size), info.st_ino, info.st_mtim};
}

Result<CheckInput> CheckInput::open(const fs::path& path) {
  CheckInput input;
  std::error_code ec;
  const fs::file_status status = fs::status(path, ec);
  if (status.type() == fs::file_type::not_found)
    return fail(Errc::not_found,
                fmt::format("checking '{}': there is no such file or folder", path.string()));
  if (ec) return fail(from_errno(ec.value(), fmt::format("checking '{}'", path.string())));
  if (fs::is_directory(status)) {
    MODELD_ASSIGN(input.files_, store::open_folder(path, input.left_out_));
    input.folder_ = path;
    input.argument_ = path.string();
    if (!input.argument_.ends_with('/')) input.argument_ += '/';
  } else if (fs::is_regular_file(status)) {
    MODELD_ASSIGN(input.files_, open_with_parts(path));
    input.folder_ = path.parent_path();
    if (path.has_parent_path()) input.argument_ = (path.parent_path() / "").string();
  } else {
    return fail(Error{Errc::malformed,
                      fmt::format("checking '{}': it is no regular file", path.string()),
                      "only files and folders can be checked",
                      {},
                      0}
                    .with_detail("rule", "GN-01"));
  }
  for (const FileSet::Entry& entry : input.files_->entries())
    input.stamps_.push_back(stamp(input.folder_ / entry.path));
  return input;
}

Result<Descriptor> CheckInput::open_file(std::size_t index) const {
  return open_for_reading((folder_ / files_->entries().at(index).path).string());
}

std::string CheckInput::shown(std::string_view path) const {
  if (path != ".") return argument_ + std::string(path);
  return argument_.empty() ? "." : argument_.substr(0, argument_.size() - 1);
}

std::vector<std::string> CheckInput::changed() const {
  std::vector<std::string> paths;
  const auto& entries = files_->entries();
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (!(stamp(folder_ / entries[i].path) == stamps_[i])) paths.push_back(entries[i].path);
  return paths;
}

} // namespace modeld::daemon
