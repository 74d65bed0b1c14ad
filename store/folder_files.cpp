// SPDX-License-Identifier: Apache-2.0
#include "store/folder_files.hpp"

#include "schema/guarded.hpp"
#include "store/mapped_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace modeld::store {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t k_max_files = 100'000;
constexpr std::size_t k_max_depth = 32;

class MappedFiles final : public FileSet {
public:
  MappedFiles(std::string name, std::vector<FilePlace> places)
      : name_(std::move(name)), places_(std::move(places)) {
    std::sort(places_.begin(), places_.end(),
              [](const FilePlace& a, const FilePlace& b) { return a.path < b.path; });
    entries_.reserve(places_.size());
    for (const FilePlace& place : places_) {
      entries_.push_back({place.path, place.size});
    }
  }

  std::string_view name() const override { return name_; }
  const std::vector<Entry>& entries() const override { return entries_; }

  Result<std::span<const std::byte>> bytes(std::string_view path) const override {
    const auto place = std::lower_bound(
        places_.begin(), places_.end(), path,
        [](const FilePlace& p, std::string_view wanted) { return p.path < wanted; });
    if (place == places_.end() || place->path != path) {
      return fail(Errc::not_found, fmt::format("opening '{}': no such file in '{}'", path, name_));
    }
    auto mapped = mapped_.lock();
    const auto at = mapped->find(path);
    if (at != mapped->end()) return at->second.bytes();
    MODELD_ASSIGN(auto file, MappedFile::open(place->where));
    if (file.bytes().size() != place->size) {
      return fail(Errc::io, fmt::format("opening '{}': {} bytes, expected {}",
                                        place->where.string(), file.bytes().size(), place->size));
    }
    return mapped->emplace(std::string(path), std::move(file)).first->second.bytes();
  }

  void trim() const override {
    const auto mapped = mapped_.lock();
    for (const auto& [path, file] : *mapped) {
      file.trim();
    }
  }

private:
  std::string name_;
  std::vector<FilePlace> places_;
  std::vector<Entry> entries_;
  mutable Guarded<std::map<std::string, MappedFile, std::less<>>> mapped_;
};

/// Folders that links may lead into: the folder itself and, for a snapshot of a Hugging Face cache,
/// the blobs beside it.
struct Bounds {
  fs::path folder;
  fs::path blobs; ///< empty where it is no such cache

  bool hold(const fs::path& target) const {
    return below(target, folder) || (!blobs.empty() && below(target, blobs));
  }
  static bool below(const fs::path& path, const fs::path& top) {
    return std::mismatch(top.begin(), top.end(), path.begin(), path.end()).first == top.end();
  }
};

constexpr std::string_view k_cache_prefix = "models--";

/// models--org--name/snapshots/<commit>
bool is_cache_snapshot(const fs::path& folder) {
  const fs::path snapshots = folder.parent_path();
  return snapshots.filename() == "snapshots" &&
         snapshots.parent_path().filename().string().starts_with(k_cache_prefix);
}

std::string name_of(const fs::path& folder) {
  if (!is_cache_snapshot(folder)) return folder.filename().string();
  const std::string repo = folder.parent_path().parent_path().filename().string();
  return repo.substr(repo.rfind("--") + 2);
}

class Walk {
public:
  /// `left_out`: where to put what cannot be taken; null where that is an error.
  Walk(fs::path top, Bounds bounds, std::vector<LeftOut>* left_out)
      : top_(std::move(top)), bounds_(std::move(bounds)), left_out_(left_out) {}

  Result<void> folder(const std::string& below, std::size_t depth) {
    if (depth > k_max_depth) {
      return fail(Errc::unsupported, fmt::format("reading folder '{}': deeper than {} levels",
                                                 (top_ / below).string(), k_max_depth));
    }
    std::error_code ec;
    fs::directory_iterator at(top_ / below, ec);
    for (; !ec && at != fs::directory_iterator(); at.increment(ec)) {
      MODELD_TRY(entry(*at, below, depth));
    }
    if (!ec) return {};
    return refuse(
        below, from_errno(ec.value(), fmt::format("reading folder '{}'", (top_ / below).string())));
  }

  std::vector<FilePlace> take() { return std::move(places_); }

private:
  Result<void> refuse(const std::string& path, Error why) {
    if (left_out_ == nullptr || path.empty()) return fail(std::move(why));
    left_out_->push_back({path, std::move(why)});
    return {};
  }

  Result<void> entry(const fs::directory_entry& found, const std::string& below,
                     std::size_t depth) {
    const std::string name = found.path().filename().string();
    if (name.starts_with('.')) return {};
    const std::string path = below.empty() ? name : below + '/' + name;
    std::error_code ec;
    if (found.is_symlink(ec)) {
      if (auto good = check_link(found.path()); !good) return refuse(path, std::move(good.error()));
      // A folder behind a link could lead in a circle; files are what caches link.
      if (found.is_directory(ec)) return {};
    } else if (found.is_directory(ec)) {
      return folder(path, depth + 1);
    }
    if (!found.is_regular_file(ec)) {
      if (left_out_ == nullptr) return {};
      return refuse(path,
                    Error{Errc::malformed,
                          fmt::format("reading '{}': it is no regular file", found.path().string()),
                          {},
                          {},
                          0});
    }
    const auto size = found.file_size(ec);
    if (ec) {
      return refuse(path,
                    from_errno(ec.value(), fmt::format("reading '{}'", found.path().string())));
    }
    if (places_.size() == k_max_files) {
      return fail(Errc::unsupported, fmt::format("reading folder '{}': more than {} files",
                                                 top_.string(), k_max_files));
    }
    places_.push_back({path, found.path(), size});
    return {};
  }

  Result<void> check_link(const fs::path& link) const {
    std::error_code ec;
    const fs::path target = fs::canonical(link, ec);
    if (ec) {
      return fail(from_errno(ec.value(), fmt::format("following link '{}'", link.string())));
    }
    if (bounds_.hold(target)) return {};
    return fail(Errc::denied, fmt::format("following link '{}': '{}' is outside of '{}'",
                                          link.string(), target.string(), top_.string()));
  }

  fs::path top_;
  Bounds bounds_;
  std::vector<LeftOut>* left_out_;
  std::vector<FilePlace> places_;
};

Result<std::unique_ptr<FileSet>> open(const fs::path& folder, std::vector<LeftOut>* left_out) {
  std::error_code ec;
  const fs::path top = fs::canonical(folder, ec);
  if (ec) return fail(from_errno(ec.value(), fmt::format("opening folder '{}'", folder.string())));
  if (!fs::is_directory(top, ec)) {
    return fail(Errc::invalid_argument,
                fmt::format("opening folder '{}': it is a file", folder.string()));
  }
  Bounds bounds{top, {}};
  if (is_cache_snapshot(top)) bounds.blobs = top.parent_path().parent_path() / "blobs";
  Walk walk(top, std::move(bounds), left_out);
  MODELD_TRY(walk.folder("", 0));
  return make_file_set(name_of(top), walk.take());
}

} // namespace

std::unique_ptr<FileSet> make_file_set(std::string name, std::vector<FilePlace> places) {
  return std::make_unique<MappedFiles>(std::move(name), std::move(places));
}

Result<std::unique_ptr<FileSet>> open_folder(const fs::path& folder) {
  return open(folder, nullptr);
}

Result<std::unique_ptr<FileSet>> open_folder(const fs::path& folder,
                                             std::vector<LeftOut>& left_out) {
  return open(folder, &left_out);
}

} // namespace modeld::store
