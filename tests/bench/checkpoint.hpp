// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace modeld::bench {

/// Writes a Llama checkpoint of about so many MiB of BF16, in two shards, with normal values of the
/// spread that weights have, and a tied embedding. Returns the number of layers.
unsigned make_checkpoint(const std::filesystem::path& folder, std::uint64_t mebibytes);

/// What a process cost.
struct Cost {
  double seconds = 0;   ///< wall clock
  double processor = 0; ///< seconds of all its threads, system calls included
  double peak_mib = 0;  ///< resident memory at its largest, mapped files included
};

/// Runs a program with its stdout thrown away; throws where it fails.
Cost run(const std::vector<std::string>& words);
/// The same of a function, in a child process; its result is the exit status.
Cost run(const std::function<int()>& work);

/// A folder of its own, removed at the end.
class BenchFolder {
public:
  BenchFolder();
  ~BenchFolder();
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

private:
  std::filesystem::path path_;
};

} // namespace modeld::bench
