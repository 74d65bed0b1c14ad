// SPDX-License-Identifier: Apache-2.0
#include "store/process.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>

namespace modeld::store {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

} // namespace

std::string boot_id() {
  static const std::string id = first_line("/proc/sys/kernel/random/boot_id");
  return id;
}

std::optional<std::uint64_t> start_ticks_of(std::int32_t pid) {
  const std::string line = first_line(fmt::format("/proc/{}/stat", pid));
  // The second field is the program's name in parentheses and may hold anything; fields are counted
  // from the last parenthesis. State is field 3, the start time field 22.
  const auto close = line.rfind(')');
  if (close == std::string::npos) return std::nullopt;
  std::istringstream rest(line.substr(close + 1));
  std::string field;
  rest >> field;
  if (field == "Z" || field == "X") return std::nullopt;
  for (int i = 4; i <= 22; ++i) {
    rest >> field;
  }
  std::uint64_t ticks = 0;
  return std::istringstream(field) >> ticks ? std::optional(ticks) : std::nullopt;
}

ProcessIdentity this_process() {
  std::array<char, 64> space{};
  const ssize_t n = readlink("/proc/self/ns/pid", space.data(), space.size());
  ProcessIdentity self;
  self.pid = getpid();
  self.start_ticks = start_ticks_of(self.pid).value_or(0);
  self.boot_id = boot_id();
  self.pid_namespace = std::string(space.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  self.machine_id = first_line("/etc/machine-id");
  return self;
}

} // namespace modeld::store
