// SPDX-License-Identifier: Apache-2.0
#include "tests/store/faults.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <system_error>

namespace modeld::test {

namespace fs = std::filesystem;
using store::DiskEvent;
using store::DiskOp;

FastDir::FastDir() {
  const bool memory = access("/dev/shm", W_OK) == 0;
  std::string name =
      (memory ? fs::path("/dev/shm") : fs::temp_directory_path()) / "modeld-test-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "making a folder for a test");
  }
  path_ = name;
}

FastDir::~FastDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

namespace {

std::string parent_of(const std::string& path) {
  return fs::path(path).parent_path().string();
}

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

void overwrite(int fd, const std::string& text) {
  if (ftruncate(fd, 0) != 0 ||
      pwrite(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    std::abort();
  }
}

} // namespace

UnsyncedLog::UnsyncedLog(fs::path spare) : spare_(std::move(spare)) {
  fs::create_directories(spare_);
}

std::string UnsyncedLog::spare_link(const std::string& path) {
  const std::string name = (spare_ / std::to_string(next_++)).string();
  std::error_code ec;
  fs::create_hard_link(path, name, ec);
  return ec ? std::string() : name;
}

/// The file is kept open: it may have another name by the time of the crash.
void UnsyncedLog::save_content(const std::string& path) {
  for (const Undo& undo : undo_) {
    if (undo.data && undo.key == path) return;
  }
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  pending_ = Undo{true, path, [fd, text = content_of(path)] { overwrite(fd, text); }};
}

void UnsyncedLog::name_changed(const std::string& path, std::function<void()> undo) {
  pending_ = Undo{false, parent_of(path), std::move(undo)};
}

void UnsyncedLog::before(const DiskEvent& event) {
  const std::string path = event.path;
  const std::string to = event.to;
  switch (event.op) {
  case DiskOp::write:
  case DiskOp::truncate:
  case DiskOp::allocate:
  case DiskOp::clone:
    return save_content(path);
  case DiskOp::create:
    return name_changed(path, [path] { unlink(path.c_str()); });
  case DiskOp::symlink:
    return name_changed(path, [path] { unlink(path.c_str()); });
  case DiskOp::link:
    return name_changed(to, [to] { unlink(to.c_str()); });
  case DiskOp::make_folder:
    return name_changed(path, [path] { fs::remove_all(path); });
  case DiskOp::remove_folder:
    return name_changed(path, [path] { mkdir(path.c_str(), 0755); });
  case DiskOp::unlink: {
    const std::string old = spare_link(path);
    return name_changed(path, [old, path] {
      if (!old.empty()) rename(old.c_str(), path.c_str());
    });
  }
  case DiskOp::rename: {
    if (event.offset == 1) { // an exchange
      return name_changed(to, [path, to] {
        renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE);
      });
    }
    const std::string old = spare_link(to);
    return name_changed(to, [path, to, old] {
      rename(to.c_str(), path.c_str());
      if (!old.empty()) rename(old.c_str(), to.c_str());
    });
  }
  default:
    return;
  }
}

void UnsyncedLog::after(const DiskEvent& event) {
  if (pending_) undo_.push_back(std::move(*pending_));
  pending_.reset();
  // A file that was renamed is synced under its new name.
  if (event.op == DiskOp::rename && event.offset != 1) {
    for (Undo& undo : undo_) {
      if (undo.data && undo.key == event.path) undo.key = event.to;
    }
  }
  if (event.op != DiskOp::sync && event.op != DiskOp::sync_folder) return;
  const bool data = event.op == DiskOp::sync;
  std::erase_if(undo_, [&](const Undo& u) { return u.data == data && u.key == event.path; });
}

void UnsyncedLog::lose(Loss loss) {
  if (loss == Loss::nothing) return;
  for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) {
    if (loss == Loss::all || undo->data == (loss == Loss::data)) undo->run();
  }
}

void CrashWatcher::count() {
  if (seen_++ != point_) return;
  log_.lose(loss_);
  _exit(k_exit);
}

int CrashWatcher::before(DiskEvent& event) {
  const std::lock_guard lock(mutex_);
  count();
  log_.before(event);
  return 0;
}

void CrashWatcher::after(const DiskEvent& event) {
  const std::lock_guard lock(mutex_);
  log_.after(event);
  // Before the next change is the same as after this one, except at the end of a statement.
  if (event.op == DiskOp::sql) count();
}

void ErrorWatcher::arm(int point, int error, bool sticky) {
  const std::lock_guard lock(mutex_);
  armed_ = true;
  fired_ = false;
  point_ = point;
  error_ = error;
  sticky_ = sticky;
}

int ErrorWatcher::before(DiskEvent& event) {
  const std::lock_guard lock(mutex_);
  if (longest_write > 0 && event.op == DiskOp::write) {
    event.size = std::min(event.size, longest_write);
  }
  if (!armed_ || (matches && !matches(event)) || point_-- > 0) return 0;
  fired_ = true;
  where_ = event.path;
  if (sticky_) {
    point_ = 0;
  } else {
    armed_ = false;
  }
  return error_;
}

int in_child(const std::function<void()>& child) {
  fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    child();
    _exit(0);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace modeld::test
