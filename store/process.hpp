// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace modeld::store {

/// A process that cannot be confused with a later one of the same number.
struct ProcessIdentity {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0; ///< /proc/PID/stat, field 22
  std::string boot_id;           ///< /proc/sys/kernel/random/boot_id
  std::string pid_namespace;     ///< where pid means something: /proc/self/ns/pid
  std::string machine_id;        ///< /etc/machine-id; empty where there is none

  bool operator==(const ProcessIdentity&) const = default;
};

ProcessIdentity this_process();
/// Nothing where there is no such process, or it is a zombie.
std::optional<std::uint64_t> start_ticks_of(std::int32_t pid);
std::string boot_id();

} // namespace modeld::store
