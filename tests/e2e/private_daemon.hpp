// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/memory_files.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

#include <boost/json/object.hpp>

#include <memory>
#include <string>
#include <vector>

namespace modeld::test {

/// A real modeld with a root and a socket of its own, and modelctl to talk to it. Stopped at the
/// end.
class PrivateDaemon {
public:
  /// Started and healthy, with the Hub at this address. `config` is the text of a file.
  explicit PrivateDaemon(std::string endpoint, std::string config = {});

  /// modelctl with these arguments. No token and no configuration of the caller's reach it.
  Finished ctl(const std::vector<std::string>& arguments,
               const Process::Environment& environment = {}) const;
  /// The same for another user, in a shell that knows modelctl as "$ctl". Needs root.
  Finished shell_as(unsigned uid, const std::string& script) const;
  /// The same without waiting for it.
  Process start_ctl(const std::vector<std::string>& arguments,
                    const Process::Environment& environment = {}) const;
  /// ctl --json: the one object on stdout.
  boost::json::object ctl_json(const std::vector<std::string>& arguments, int status = 0) const;

  void start();
  /// SIGKILL: no chance to tidy up.
  void kill();
  /// SIGTERM; its exit status.
  int stop();

  std::filesystem::path root() const { return dir_ / "root"; }
  std::string socket() const { return (dir_ / "modeld.sock").string(); }
  const TempDir& dir() const { return dir_; }
  std::string log() const { return process_ ? process_->err() : std::string(); }
  pid_t pid() const { return process_->pid(); }

private:
  TempDir dir_;
  std::string endpoint_;
  std::unique_ptr<Process> process_;
};

/// SHA-256 of a file, in hexadecimal.
std::string file_sha256(const std::filesystem::path& path);
/// The last line of a text.
std::string last_line(const std::string& text);
/// The SHA-256 that the reference's file of TinyVerse-4M has: "Q4_K_M", "BF16", ...
std::string expected_sha256(const std::string& type);
/// The folder of TinyVerse-4M.
std::filesystem::path tiny_verse();

} // namespace modeld::test
