// SPDX-License-Identifier: Apache-2.0
#include "store/layout.hpp"
#include "store/show.hpp"
#include "store/show_files.hpp"
#include "store/state.hpp"

#include <fmt/format.h>

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace modeld::store {
namespace {

namespace fs = std::filesystem;

/// A small file of ours, and a name in the target folder; both are gone afterwards.
class Probe {
public:
  Probe(const Disk& disk, const Disk& root, std::string source, std::string name)
      : disk_(disk), root_(root), source_(std::move(source)), name_(std::move(name)) {}
  ~Probe() {
    clear();
    [[maybe_unused]] const auto ignored = disk_.unlink(source_);
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  Result<void> begin() {
    clear(); // of a crash
    MODELD_ASSIGN(file_, disk_.create(source_, 0644));
    const std::array<std::byte, 4096> page{};
    return disk_.write(file_, source_, page, 0);
  }

  Result<void> attempt(LinkForm form) {
    Result<void> done;
    if (form == LinkForm::hardlink) {
      done = disk_.link_out(source_, root_, name_);
    } else if (form == LinkForm::symlink) {
      done = root_.symlink((disk_.root() / source_).string(), name_);
    } else {
      auto made = root_.create(name_, 0600);
      if (!made) return fail(std::move(made).error());
      if (form == LinkForm::reflink) done = root_.clone(file_, *made, name_);
    }
    clear();
    return done;
  }

private:
  void clear() {
    // A probe's name that cannot be removed was never made.
    [[maybe_unused]] const auto ignored = root_.unlink(name_);
  }

  const Disk& disk_;
  const Disk& root_;
  std::string source_;
  std::string name_;
  Fd file_;
};

std::string_view explain(LinkForm form) {
  switch (form) {
  case LinkForm::reflink:
    return "the file system shares blocks between files: no space is used, and writing to the "
           "shown "
           "file cannot reach the stored one";
  case LinkForm::hardlink:
    return "same file system: a second name of the stored file, no space is used";
  case LinkForm::symlink:
    return "another file system: a symbolic link, no space is used; dead inside of containers that "
           "do not mount the store";
  default:
    return "another file system, and copies were allowed: the space is used again";
  }
}

std::vector<LinkForm> allowed_forms(const ShowOptions& options) {
  if (options.form) return {*options.form};
  std::vector<LinkForm> forms{LinkForm::reflink, LinkForm::hardlink};
  if (options.allow_symlink) forms.push_back(LinkForm::symlink);
  if (options.allow_copy) forms.push_back(LinkForm::copy);
  return forms;
}

bool may_search(const struct stat& info, std::uint32_t uid, const std::vector<std::uint32_t>& gids,
                unsigned bit) {
  if (uid == 0) return true;
  if (info.st_uid == uid) return (info.st_mode & (bit << 6)) != 0;
  if (std::find(gids.begin(), gids.end(), info.st_gid) != gids.end()) {
    return (info.st_mode & (bit << 3)) != 0;
  }
  return (info.st_mode & bit) != 0;
}

} // namespace

fs::path existing_ancestor(fs::path path) {
  std::error_code ec;
  while (!fs::exists(path, ec) && path.has_relative_path()) {
    path = path.parent_path();
  }
  return path;
}

Result<FormChoice> choose_form(Store& store, const ShowOptions& options) {
  Store::State& s = store.internals();
  MODELD_ASSIGN(const auto root, Disk::open(existing_ancestor(options.root), s.disk.watcher()));
  Probe probe(s.disk, root, s.temporary("probe"), ".modeld-probe");
  MODELD_TRY(probe.begin());
  std::string tried;
  for (const LinkForm form : allowed_forms(options)) {
    const auto done = probe.attempt(form);
    if (done) return FormChoice{form, std::string(explain(form))};
    tried += fmt::format("{}{}: {}", tried.empty() ? "" : "; ", slug(form), done.error().message);
    if (done.error().code == Errc::denied && done.error().sys == EACCES) break;
  }
  return fail(Errc::unsupported,
              fmt::format("showing a model in '{}': no allowed way works ({})",
                          options.root.string(), tried),
              "allow symbolic links or copies, or choose a folder on the store's file system");
}

Result<void> check_reachable(const fs::path& path, std::uint32_t uid,
                             const std::vector<std::uint32_t>& gids) {
  fs::path at;
  for (const fs::path& part : fs::weakly_canonical(path)) {
    at /= part;
    struct stat info {};
    if (stat(at.c_str(), &info) != 0) {
      return fail(from_errno(errno, fmt::format("looking at '{}'", at.string())));
    }
    const unsigned bit = S_ISDIR(info.st_mode) ? 1U : 4U;
    if (may_search(info, uid, gids, bit)) continue;
    return fail(Errc::denied,
                fmt::format("reaching '{}' as user {}: '{}' has mode {:04o} and owner {}",
                            path.string(), uid, at.string(), info.st_mode & 07777, info.st_uid),
                fmt::format("chmod o+{} '{}', or put the store elsewhere", bit == 1 ? "x" : "r",
                            at.string()));
  }
  return {};
}

} // namespace modeld::store
