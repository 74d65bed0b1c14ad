// SPDX-License-Identifier: Apache-2.0
#include "store/show_files.hpp"

#include "store/layout.hpp"
#include "store/plain_view.hpp"
#include "store/quarantine.hpp"
#include "store/state.hpp"
#include "validate/sha256.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace modeld::store {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t k_copy_size = 1U << 20;
constexpr std::uint64_t k_max_text = 256U << 20; // a listing of a million files

Sha256Digest digest_of(std::string_view text) {
  return validate::sha256_of(std::as_bytes(std::span(text)));
}

/// The same name each time, so that what a crash left is found again.
std::string temporary_beside(const std::string& path) {
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  return folder + ".modeld-" + digest_of(path).hex().substr(0, 16);
}

std::optional<struct stat> stat_of(const Disk& root, const std::string& path, int flags) {
  struct stat info {};
  if (fstatat(root.fd(), path.c_str(), &info, flags) != 0) return std::nullopt;
  return info;
}

std::string link_text(const Disk& root, const std::string& path) {
  std::error_code ec;
  return fs::read_symlink(root.root() / path, ec).string();
}

} // namespace

std::string ShownFiles::relative(const std::string& absolute) const {
  return absolute.substr(root_.root().string().size() + 1);
}

LinkedFile ShownFiles::describe(const ShownFile& file, LinkForm form) const {
  LinkedFile linked;
  linked.path = (root_.root() / file.path).string();
  linked.blob = file.blob;
  if (file.blob) {
    linked.form = form;
    linked.content = *file.blob;
  } else if (!file.target.empty()) {
    linked.form = LinkForm::symlink;
    linked.content = digest_of(file.target);
  } else {
    linked.form = LinkForm::written;
    linked.content = digest_of(file.text);
  }
  return linked;
}

/// The same inode, a link to it, or equal bytes.
bool ShownFiles::is_blob(const std::string& path, const Sha256Digest& digest) const {
  const auto there = stat_of(root_, path, 0);
  const auto blob = stat_of(store_.internals().disk, layout::blob(digest), 0);
  if (!there || !blob) return false;
  if (there->st_dev == blob->st_dev && there->st_ino == blob->st_ino) return true;
  if (!S_ISREG(there->st_mode) || there->st_size != blob->st_size) return false;
  const auto hash = hash_file(root_, path, 0, nullptr);
  return hash && *hash == digest;
}

Found ShownFiles::look_at(const ShownFile& file) const {
  const auto info = stat_of(root_, file.path, AT_SYMLINK_NOFOLLOW);
  if (!info) return Found::nothing;
  if (file.blob) return is_blob(file.path, *file.blob) ? Found::equal : Found::other;
  if (!file.target.empty()) {
    return S_ISLNK(info->st_mode) && link_text(root_, file.path) == file.target ? Found::equal
                                                                                : Found::other;
  }
  const auto text = root_.read_text(file.path, k_max_text);
  return S_ISREG(info->st_mode) && text && *text == file.text ? Found::equal : Found::other;
}

Result<void> ShownFiles::make_copy(const Sha256Digest& blob, const std::string& path,
                                   LinkForm form) const {
  const Disk& disk = store_.internals().disk;
  MODELD_ASSIGN(const auto source, disk.open_read(layout::blob(blob)));
  MODELD_ASSIGN(const auto file, root_.create(path, 0600));
  if (form == LinkForm::reflink) {
    MODELD_TRY(root_.clone(source, file, path));
  } else {
    std::vector<std::byte> part(k_copy_size);
    for (std::uint64_t at = 0;;) {
      const ssize_t n = pread(source.get(), part.data(), part.size(), static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail(from_errno(errno, fmt::format("copying blob {}", blob.hex())));
      if (n == 0) break;
      const auto count = static_cast<std::size_t>(n);
      MODELD_TRY(root_.write(file, path, std::span(part).first(count), at));
      at += count;
    }
  }
  MODELD_TRY(root_.set_mode(file, path, store_.internals().options.blob_mode));
  return root_.sync(file, path);
}

/// Beside its place, then renamed: a reader sees nothing or everything.
Result<void> ShownFiles::make(const ShownFile& file, LinkForm form) const {
  MODELD_TRY(root_.make_folders(folder_of(file.path)));
  const std::string blob = file.blob ? (store_.blob_path(*file.blob)).string() : std::string();
  if (file.blob && form == LinkForm::hardlink) {
    MODELD_TRY(store_.internals().disk.link_out(layout::blob(*file.blob), root_, file.path));
    return root_.sync_folder(folder_of(file.path));
  }
  if (!file.target.empty() || (file.blob && form == LinkForm::symlink)) {
    MODELD_TRY(root_.symlink(file.target.empty() ? blob : file.target, file.path));
    return root_.sync_folder(folder_of(file.path));
  }
  const std::string temporary = temporary_beside(file.path);
  MODELD_TRY(root_.unlink(temporary));
  Result<void> made;
  if (file.blob) {
    made = make_copy(*file.blob, temporary, form);
  } else {
    auto text = root_.create(temporary, 0644);
    made = text ? root_.write(*text, temporary, std::as_bytes(std::span(file.text)), 0)
                : fail(text.error());
    if (made) made = root_.sync(*text, temporary);
  }
  if (made) made = root_.rename(temporary, file.path);
  if (made) return root_.sync_folder(folder_of(file.path));
  [[maybe_unused]] const auto ignored = root_.unlink(temporary);
  return made;
}

std::string ShownFiles::problem(const LinkedFile& file) const {
  const std::string path = relative(file.path);
  const auto info = stat_of(root_, path, AT_SYMLINK_NOFOLLOW);
  if (!info) return "it is gone";
  if (S_ISLNK(info->st_mode) && !stat_of(root_, path, 0)) return "a dead link";
  if (file.blob) return is_blob(path, *file.blob) ? "" : "it is another file now";
  if (file.form == LinkForm::symlink) {
    return digest_of(link_text(root_, path)) == file.content ? "" : "it leads elsewhere now";
  }
  const auto text = root_.read_text(path, k_max_text);
  return text && digest_of(*text) == file.content ? "" : "its text was changed";
}

Result<bool> ShownFiles::mend(const LinkedFile& file) const {
  if (!file.blob) return false;
  const std::string path = relative(file.path);
  const auto info = stat_of(root_, path, AT_SYMLINK_NOFOLLOW);
  const bool dead = info && S_ISLNK(info->st_mode) && !stat_of(root_, path, 0);
  if (info && !dead) return false;
  MODELD_ASSIGN(const auto blob, store_.find_blob(*file.blob));
  if (!blob || !store_.internals().disk.exists(layout::blob(*file.blob))) return false;
  if (dead) MODELD_TRY(root_.unlink(path));
  MODELD_TRY(make({path, file.blob, {}, {}}, file.form));
  return true;
}

Result<bool> ShownFiles::withdraw(const LinkedFile& file) const {
  if (!file.blob || (file.form != LinkForm::hardlink && file.form != LinkForm::symlink)) {
    return false;
  }
  const std::string path = relative(file.path);
  const auto there = stat_of(root_, path, 0);
  const auto blob = stat_of(store_.internals().disk, layout::blob(*file.blob), 0);
  if (!there || !blob || there->st_dev != blob->st_dev || there->st_ino != blob->st_ino) {
    return false;
  }
  MODELD_TRY(root_.unlink(path));
  MODELD_TRY(root_.sync_folder(folder_of(path)));
  return true;
}

Result<bool> ShownFiles::remove(const LinkedFile& file) const {
  const std::string path = relative(file.path);
  MODELD_TRY(root_.unlink(temporary_beside(path)));
  const auto info = stat_of(root_, path, AT_SYMLINK_NOFOLLOW);
  if (!info) {
    remove_empty_folders(root_, folder_of(path), ".");
    return true;
  }
  // A link of ours is recognised by where it leads, also when that is gone.
  const bool our_link = S_ISLNK(info->st_mode) && file.blob &&
                        link_text(root_, path) == store_.blob_path(*file.blob).string();
  const bool our_relative =
      S_ISLNK(info->st_mode) && !file.blob && digest_of(link_text(root_, path)) == file.content;
  if (!our_link && !our_relative && !problem(file).empty()) return false;
  MODELD_TRY(root_.unlink(path));
  // On the disk before the record of it is forgotten.
  MODELD_TRY(root_.sync_folder(folder_of(path)));
  remove_empty_folders(root_, folder_of(path), ".");
  return true;
}

} // namespace modeld::store
