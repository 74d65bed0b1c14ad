// SPDX-License-Identifier: Apache-2.0
#include "store/layout.hpp"
#include "store/show.hpp"
#include "store/show_files.hpp"
#include "store/state.hpp"

#include <fmt/format.h>

#include <unistd.h>

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
    if (done.error().sys == EACCES || done.error().sys == EROFS) {
      return fail(
          Errc::denied,
          fmt::format("showing a model in '{}': user {}, who runs the daemon, may not write "
                      "to '{}' ({})",
                      options.root.string(), ::geteuid(), root.root().string(),
                      done.error().message),
          "modelctl link ... --print | sh makes the links with your own rights");
    }
  }
  return fail(Errc::unsupported,
              fmt::format("showing a model in '{}': no allowed way works ({})",
                          options.root.string(), tried),
              "allow symbolic links or copies, or choose a folder on the store's file system");
}

} // namespace modeld::store
