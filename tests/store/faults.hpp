// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/disk.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace modeld::test {

/// A folder in memory where there is one: thousands of crashes need no real fsync.
class FastDir {
public:
  FastDir();
  ~FastDir();
  FastDir(const FastDir&) = delete;
  FastDir& operator=(const FastDir&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

private:
  std::filesystem::path path_;
};

/// What a power cut takes away of that which was not synced.
enum class Loss {
  nothing, ///< kill -9: the kernel still writes everything
  data,    ///< contents of files, but not names: the classic empty file after a rename
  names,   ///< names (create, rename, link, unlink, folders), but not contents
  all,
};

/// Remembers how to undo every change that is not synced yet, as a disk without power would.
class UnsyncedLog {
public:
  /// `spare` is a folder for old inodes, on the same file system, outside of the store.
  explicit UnsyncedLog(std::filesystem::path spare);
  void before(const store::DiskEvent& event);
  void after(const store::DiskEvent& event);
  void lose(Loss loss);

private:
  struct Undo {
    bool data = false;
    std::string key; ///< path of the file (data) or of the folder (names) whose sync settles it
    std::function<void()> run;
  };
  void save_content(const std::string& path);
  void name_changed(const std::string& path, std::function<void()> undo);
  std::string spare_link(const std::string& path);

  std::filesystem::path spare_;
  std::vector<Undo> undo_;
  std::optional<Undo> pending_;
  int next_ = 0;
};

/// Ends the process at the n-th change, or after it, as a power cut would.
class CrashWatcher final : public store::DiskWatcher {
public:
  CrashWatcher(std::filesystem::path spare, int point, Loss loss)
      : log_(std::move(spare)), point_(point), loss_(loss) {}
  int before(store::DiskEvent& event) override;
  void after(const store::DiskEvent& event) override;

  static constexpr int k_exit = 42;

private:
  void count();
  std::mutex mutex_;
  UnsyncedLog log_;
  int point_;
  int seen_ = 0;
  Loss loss_;
};

/// Fails the n-th change with an errno, once or from then on; or makes writes short.
class ErrorWatcher final : public store::DiskWatcher {
public:
  int before(store::DiskEvent& event) override;
  void after(const store::DiskEvent&) override {}

  /// From now on: the n-th change that `matches` fails.
  void arm(int point, int error, bool sticky = false);
  void disarm() { armed_ = false; }
  bool fired() const { return fired_; }
  std::string where() const { return where_; }
  std::function<bool(const store::DiskEvent&)> matches;
  std::uint64_t longest_write = 0; ///< 0: no limit

private:
  std::mutex mutex_;
  bool armed_ = false;
  bool fired_ = false;
  bool sticky_ = false;
  int point_ = 0;
  int error_ = 0;
  std::string where_;
};

/// Runs `child` in a process of its own; gives its exit status.
int in_child(const std::function<void()>& child);

} // namespace modeld::test
