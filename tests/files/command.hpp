// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

#include <boost/json/object.hpp>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace modeld::test {

/// A folder in which modelctl is run on files, without a daemon.
class Workplace {
public:
  /// A command that runs the words behind it under other circumstances: prlimit, setpriv, ...
  using Wrapper = std::vector<std::string>;

  Finished ctl(const std::vector<std::string>& words, const Wrapper& wrapper = {}) const;
  Process start(const std::vector<std::string>& words,
                const Process::Environment& environment = {}) const;
  /// ctl --json, which must end with this status: the one object on stdout.
  boost::json::object ctl_json(const std::vector<std::string>& words, int status = 0) const;
  /// Everything in the folder, hidden files too.
  std::set<std::string> names() const;
  std::string sha256(std::string_view name) const;
  std::filesystem::path operator/(std::string_view name) const { return dir_ / name; }
  const std::filesystem::path& path() const { return dir_.path(); }

private:
  std::vector<std::string> command(const std::vector<std::string>& words,
                                   const Wrapper& wrapper) const;
  TempDir dir_;
};

/// The words in brackets at the end of the last line: the error code.
std::string error_code(const Finished& finished);

/// TinyVerse-4M, converted to BF16.
void put_tiny_verse(const Workplace& place, const std::string& name = "in.gguf");
/// The SHA-256 that the reference's file of TinyVerse-4M has: "Q4_K_M", "BF16", ...
std::string tiny_verse_sha256(const std::string& type);

} // namespace modeld::test
