// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker_sandbox.hpp"

#include "daemon/descriptor.hpp"

#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace modeld::daemon {
namespace {

// Calls of memory, threads, time, and of descriptors that are there already. All others fail with
// EPERM: what a library tries in passing (reading /sys for the number of processors) then takes its
// other way, and what an attacker tries does not work.
constexpr std::array k_allowed{
    SCMP_SYS(brk),
    SCMP_SYS(mmap),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(mprotect),
    SCMP_SYS(madvise),
    SCMP_SYS(read),
    SCMP_SYS(readv),
    SCMP_SYS(pread64),
    SCMP_SYS(write),
    SCMP_SYS(writev),
    SCMP_SYS(sendmsg),
    SCMP_SYS(recvmsg),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(close),
    SCMP_SYS(fstat),
    SCMP_SYS(lseek),
    SCMP_SYS(futex),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(set_tid_address),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(getpid),
    SCMP_SYS(gettid),
    SCMP_SYS(tgkill),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(nanosleep),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(getrandom),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(prlimit64),
};

void limit(decltype(RLIMIT_CORE) what, std::uint64_t value) {
  const rlimit both{value, value};
  (void)::setrlimit(what, &both); // cannot fail for a lower value
}

// Threads, but no processes: clone3 keeps its flags where a filter cannot see them, so glibc is
// told that there is none and takes clone.
bool add_thread_rules(scmp_filter_ctx filter) {
  const scmp_arg_cmp thread{0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD};
  return seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) == 0 &&
         seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, &thread) == 0;
}

// newfstatat(fd, "", AT_EMPTY_PATH) is how glibc asks for the size of an open file; with any other
// path Landlock and the lack of descriptors of folders are in the way.
bool add_rules(scmp_filter_ctx filter) {
  for (const int call : k_allowed) {
    if (seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0) != 0) return false;
  }
  return add_thread_rules(filter) &&
         seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 0) == 0;
}

std::string enter_seccomp() {
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
  if (filter == nullptr) return "seccomp: no filter";
  // Threads that are there already are held by it too.
  (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
  const bool added = add_rules(filter);
  const int loaded = added ? seccomp_load(filter) : -EINVAL;
  seccomp_release(filter);
  return loaded == 0 ? std::string() : std::string("seccomp: ") + std::strerror(-loaded);
}

// Every right that the first version of Landlock knows, and no rule that gives one back.
std::string enter_landlock() {
  landlock_ruleset_attr attributes{};
  attributes.handled_access_fs =
      LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |
      LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
      LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
      LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
      LANDLOCK_ACCESS_FS_MAKE_SYM;
  const Descriptor rules(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0)));
  if (!rules.valid()) return std::string("Landlock: ") + std::strerror(errno);
  if (::syscall(SYS_landlock_restrict_self, rules.get(), 0) != 0) {
    return std::string("Landlock: ") + std::strerror(errno);
  }
  return {};
}

} // namespace

Sandbox enter_sandbox(std::uint64_t memory) {
  Sandbox sandbox;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_DUMPABLE, 0);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_DATA, memory); // mapped files do not count, they are the page cache's
  std::string missing = enter_landlock();
  sandbox.landlock = missing.empty();
  if (!missing.empty()) sandbox.missing.push_back(std::move(missing));
  missing = enter_seccomp();
  sandbox.seccomp = missing.empty();
  if (!missing.empty()) sandbox.missing.push_back(std::move(missing));
  return sandbox;
}

} // namespace modeld::daemon
