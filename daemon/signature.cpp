// SPDX-License-Identifier: Apache-2.0
#include "daemon/signature.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <vector>

extern char** environ; // NOLINT(readability-redundant-declaration)

namespace modeld::daemon {
namespace {

struct Ran {
  int status = -1;
  std::string out; ///< and what it says about errors
};

bool is_minisign(const std::string& key) {
  std::ifstream in(key);
  std::string line;
  std::getline(in, line);
  return line.starts_with("untrusted comment:");
}

// Runs a program to its end, with a file as its input, or ours where that is empty; what it says on
// stderr is kept, or goes to a terminal where it may ask something.
enum class Messages { keep, show };
Result<Ran> run_program(const std::vector<std::string>& command, const std::string& input,
                        Messages messages = Messages::keep) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(from_errno(errno, "making a pipe"));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (!input.empty()) {
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input.c_str(), O_RDONLY, 0);
  }
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (messages == Messages::keep) {
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  }
  std::vector<char*> arguments;
  for (const std::string& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  Ran ran;
  std::array<char, 4096> piece{};
  for (ssize_t n = 0; error == 0 && (n = ::read(ends[0], piece.data(), piece.size())) != 0;) {
    if (n > 0) ran.out.append(piece.data(), static_cast<std::size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  ::close(ends[0]);
  if (error != 0) {
    return fail(from_errno(error, fmt::format("running '{}'", command[0]))
                    .with_hint(fmt::format("install {}, or sign and check by hand", command[0])));
  }
  while (::waitpid(child, &ran.status, 0) < 0 && errno == EINTR) {
  }
  ran.status = WIFEXITED(ran.status) ? WEXITSTATUS(ran.status) : 1;
  return ran;
}

tl::unexpected<Error> refused(std::string_view doing, const std::string& file, const Ran& ran) {
  return fail(Errc::digest_mismatch,
              fmt::format("{} '{}': {}", doing, file, ran.out.substr(0, ran.out.find('\n'))));
}

Result<std::string> verify_openssh(const std::string& file, const std::string& trusted,
                                   const std::string& signature) {
  MODELD_ASSIGN(const Ran who,
                run_program({"ssh-keygen", "-Y", "find-principals", "-s", signature, "-f", trusted},
                            "/dev/null"));
  if (who.status != 0) return refused("checking who signed", file, who);
  const std::string name = who.out.substr(0, who.out.find('\n'));
  MODELD_ASSIGN(const Ran good, run_program({"ssh-keygen", "-Y", "verify", "-f", trusted, "-I",
                                             name, "-n", k_signature_namespace, "-s", signature},
                                            file));
  if (good.status != 0) return refused("checking the signature of", file, good);
  return name;
}

} // namespace

Result<std::string> sign_file(const std::string& file, const std::string& key) {
  const bool minisign = is_minisign(key);
  const std::string signature = file + (minisign ? ".minisig" : ".sig");
  ::unlink(signature.c_str());
  const std::vector<std::string> command =
      minisign ? std::vector<std::string>{"minisign", "-S", "-s", key, "-m", file, "-x", signature}
               : std::vector<std::string>{"ssh-keygen",          "-Y", "sign", "-f", key, "-n",
                                          k_signature_namespace, file};
  // minisign reads the password of a key from standard input, ssh-keygen from the terminal itself.
  const bool may_ask = minisign && ::fcntl(STDIN_FILENO, F_GETFD) >= 0;
  MODELD_ASSIGN(
      const Ran ran,
      run_program(command, may_ask ? "" : "/dev/null",
                  may_ask && ::isatty(STDIN_FILENO) == 1 ? Messages::show : Messages::keep));
  if (ran.status == 0 && ::access(signature.c_str(), F_OK) == 0) return signature;
  return fail(Errc::denied,
              fmt::format("signing '{}' with '{}': {}", file, key,
                          ran.out.empty()
                              ? fmt::format("'{}' ended with {}", command[0], ran.status)
                              : ran.out.substr(0, ran.out.find('\n'))),
              minisign ? "where the key has a password, give it on standard input" : "");
}

Result<std::string> verify_file(const std::string& file, const std::string& trusted) {
  if (::access(trusted.c_str(), R_OK) != 0) {
    return fail(from_errno(errno, fmt::format("reading '{}'", trusted)));
  }
  const bool minisign = is_minisign(trusted);
  const std::string signature = file + (minisign ? ".minisig" : ".sig");
  if (::access(signature.c_str(), R_OK) != 0) {
    return fail(from_errno(errno, fmt::format("reading the signature '{}'", signature)));
  }
  if (!minisign) return verify_openssh(file, trusted, signature);
  MODELD_ASSIGN(
      const Ran ran,
      run_program({"minisign", "-V", "-p", trusted, "-m", file, "-x", signature}, "/dev/null"));
  if (ran.status != 0) return refused("checking the signature of", file, ran);
  return trusted;
}

} // namespace modeld::daemon
