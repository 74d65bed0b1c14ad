// SPDX-License-Identifier: Apache-2.0
#include "store/root_lock.hpp"

#include "schema/json.hpp"
#include "schema/version.hpp"
#include "store/layout.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

// The lock's record, one line of JSON, empty after a clean end:
//   {"pid":n,"start_ticks":n,"boot_id":"...","pid_namespace":"...","machine_id":"...","version":"..."}

namespace modeld::store {
namespace {

constexpr std::uint64_t k_max_record = 4096;

std::string to_record(const ProcessIdentity& self) {
  const boost::json::object record{{"pid", self.pid},
                                   {"start_ticks", self.start_ticks},
                                   {"boot_id", self.boot_id},
                                   {"pid_namespace", self.pid_namespace},
                                   {"machine_id", self.machine_id},
                                   {"version", k_version}};
  return boost::json::serialize(record) + '\n';
}

Result<ProcessIdentity> from_record(std::string_view text) {
  MODELD_ASSIGN(const auto value, parse_json(text, "the lock's record"));
  if (!value.is_object()) return fail(Errc::malformed, "parsing the lock's record: not an object");
  const auto& object = value.get_object();
  ProcessIdentity owner;
  MODELD_ASSIGN(const auto pid, json_uint(object, "pid"));
  owner.pid = static_cast<std::int32_t>(pid);
  MODELD_ASSIGN(owner.start_ticks, json_uint(object, "start_ticks"));
  MODELD_ASSIGN(owner.boot_id, json_string(object, "boot_id"));
  MODELD_ASSIGN(owner.pid_namespace, json_string(object, "pid_namespace"));
  MODELD_ASSIGN(owner.machine_id, json_string(object, "machine_id"));
  return owner;
}

/// File systems whose flock may not reach other machines.
bool is_shared(int fd) {
  struct statfs info {};
  if (fstatfs(fd, &info) != 0) return true;
  constexpr long k_cifs = 0xFF534D42;
  constexpr long k_smb2 = 0xFE534D42;
  constexpr long k_lustre = 0x0BD00BD0;
  constexpr long k_gpfs = 0x47504653;
  constexpr long k_fuse = 0x65735546;
  for (const long type : {long{NFS_SUPER_MAGIC}, long{CEPH_SUPER_MAGIC}, long{V9FS_MAGIC}, k_cifs,
                          k_smb2, k_lustre, k_gpfs, k_fuse}) {
    if (info.f_type == type) return true;
  }
  return false;
}

tl::unexpected<Error> taken(const Disk& disk, const ProcessIdentity& owner, std::string hint) {
  Error error{Errc::conflict,
              fmt::format("locking store '{}': another modeld owns it, process {}",
                          disk.root().string(), owner.pid),
              std::move(hint),
              {},
              0};
  return fail(std::move(error).with_detail("pid", std::to_string(owner.pid)));
}

Result<Fd> open_lock(const Disk& disk) {
  const std::string path = (disk.root() / layout::k_lock).string();
  struct stat info {};
  if (fstatat(disk.fd(), layout::k_lock, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
      !S_ISREG(info.st_mode)) {
    return fail(Errc::io, fmt::format("locking store: '{}' is no regular file", path));
  }
  return disk.open_write(layout::k_lock, 0644);
}

} // namespace

OwnerVerdict judge_owner(const ProcessIdentity& owner, const ProcessIdentity& self,
                         std::optional<std::uint64_t> start_ticks_now) {
  if (owner.boot_id != self.boot_id) {
    // The same machine after a reboot, or another machine.
    const bool same_machine = !self.machine_id.empty() && owner.machine_id == self.machine_id;
    return same_machine ? OwnerVerdict::gone : OwnerVerdict::unknown;
  }
  if (owner.pid_namespace != self.pid_namespace) return OwnerVerdict::unknown;
  if (owner.pid == self.pid && owner.start_ticks == self.start_ticks) return OwnerVerdict::gone;
  const bool alive = start_ticks_now && *start_ticks_now == owner.start_ticks;
  return alive ? OwnerVerdict::alive : OwnerVerdict::gone;
}

Result<RootLock> RootLock::take(const Disk& disk) {
  auto opened = open_lock(disk);
  if (!opened) {
    return fail(std::move(opened).error().with_hint(
        fmt::format("where no modeld runs, remove '{}'", (disk.root() / layout::k_lock).string())));
  }
  Fd file = *std::move(opened);
  const bool locked = flock(file.get(), LOCK_EX | LOCK_NB) == 0;
  const int lock_error = errno;
  // A record that cannot be read is one that a crash cut short: its writer is gone.
  const std::string record = disk.read_text(layout::k_lock, k_max_record).value_or("?");
  const auto owner = from_record(record);
  if (!locked && lock_error == EWOULDBLOCK) {
    return taken(disk, owner ? *owner : ProcessIdentity{},
                 "talk to that daemon, or stop it before starting another");
  }
  if (!locked && lock_error != ENOLCK && lock_error != EOPNOTSUPP) {
    return fail(from_errno(lock_error, fmt::format("locking store '{}'", disk.root().string())));
  }
  const ProcessIdentity self = this_process();
  if (owner) {
    const auto verdict = judge_owner(*owner, self, start_ticks_of(owner->pid));
    const bool blind = !locked || is_shared(file.get());
    if (verdict == OwnerVerdict::alive || (verdict == OwnerVerdict::unknown && blind)) {
      return taken(disk, *owner,
                   fmt::format("if that process is gone for good, remove '{}'",
                               (disk.root() / layout::k_lock).string()));
    }
  }
  const std::string mine = to_record(self);
  MODELD_TRY(disk.truncate(file, layout::k_lock, 0));
  MODELD_TRY(disk.write(file, layout::k_lock, std::as_bytes(std::span(mine)), 0));
  MODELD_TRY(disk.sync(file, layout::k_lock));
  return RootLock(std::move(file), record.empty());
}

void RootLock::mark_clean(const Disk& disk) {
  // Without it the next start checks more than it needs to.
  [[maybe_unused]] const auto truncated = disk.truncate(file_, layout::k_lock, 0);
  [[maybe_unused]] const auto synced = disk.sync(file_, layout::k_lock);
}

} // namespace modeld::store
