// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/human_text.hpp"
#include "daemon/request.hpp"
#include "daemon/signature.hpp"
#include "schema/json.hpp"
#include "schema/model_ref.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace modeld::daemon {
namespace {

struct Options {
  std::string ref;
  std::string out;
  std::string key;
  bool force = false;
};

// A file that is complete, or not there; or standard output.
class Target {
public:
  explicit Target(std::string path) : path_(std::move(path)) {}
  ~Target() {
    if (fd_ > STDOUT_FILENO) ::close(fd_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  Result<void> open(bool force) {
    if (path_ == "-") {
      fd_ = STDOUT_FILENO;
      return {};
    }
    if (!force && ::access(path_.c_str(), F_OK) == 0) {
      return fail(Errc::conflict, fmt::format("writing '{}': it is there already", path_),
                  "choose another name with -o, or --force");
    }
    temporary_ = fmt::format("{}.part-{}", path_, ::getpid());
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd_ >= 0) return {};
    const int sys = errno;
    temporary_.clear();
    return fail(from_errno(sys, fmt::format("writing '{}'", path_)));
  }

  Result<void> write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail(from_errno(errno, fmt::format("writing '{}'", path_)));
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
  }

  Result<void> finish() {
    if (temporary_.empty()) return {};
    if (::fsync(fd_) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
      return fail(from_errno(errno, fmt::format("writing '{}'", path_)));
    }
    temporary_.clear();
    return {};
  }

private:
  std::string path_;
  std::string temporary_;
  int fd_ = -1;
};

// "name-0123456789ab.tar", or with the quantization in between.
Result<std::string> default_name(Client& client, const ModelRef& ref) {
  MODELD_ASSIGN(
      const auto answer,
      client.get("/v1/snapshots/" + url_part(ModelRef{ref.repo, ref.revision, {}}.str())));
  MODELD_ASSIGN(const auto* snapshot, object_member(answer.body, "snapshot"));
  MODELD_ASSIGN(const auto commit, json_string(*snapshot, "commit"));
  const bool plain = !ref.selector.empty() && ref.selector.find('/') == std::string::npos;
  return fmt::format("{}-{}{}.tar", ref.repo.name(), plain ? ref.selector + '-' : std::string(),
                     commit.substr(0, 12));
}

Result<int> export_bundle(CommandContext& context, const Options& options) {
  MODELD_ASSIGN(const auto ref, ModelRef::parse(options.ref));
  Client client(context.socket, {});
  std::string name = options.out;
  if (name.empty()) {
    MODELD_ASSIGN(name, default_name(client, ref));
  }
  if (name == "-" && !options.key.empty()) {
    return fail(Errc::invalid_argument, "exporting: what goes to standard output cannot be signed",
                "choose a file with -o");
  }
  if (name == "-" && context.out.json()) {
    return fail(Errc::invalid_argument,
                "exporting: one standard output cannot have the bundle and --json",
                "choose a file with -o");
  }
  if (name == "-" && ::isatty(STDOUT_FILENO) == 1) {
    return fail(Errc::invalid_argument, "exporting: a bundle is not for a terminal",
                "choose a file with -o");
  }
  Target target(name);
  MODELD_TRY(target.open(options.force));
  const Interrupt interrupt;
  std::uint64_t done = 0;
  auto shown = std::chrono::steady_clock::now();
  const auto streamed =
      client.stream("/v1/bundles/" + url_part(options.ref), interrupt,
                    [&](std::string_view piece, std::uint64_t total) -> Result<void> {
                      MODELD_TRY(target.write(piece));
                      done += piece.size();
                      const auto now = std::chrono::steady_clock::now();
                      if (context.out.terminal() && now - shown > std::chrono::milliseconds(200)) {
                        shown = now;
                        context.out.progress(fmt::format("exporting {} of {}", human_bytes(done),
                                                         human_bytes(total)));
                      }
                      return {};
                    });
  context.out.progress({});
  if (!streamed) {
    return fail(Error(streamed.error()).context(fmt::format("exporting '{}'", options.ref)));
  }
  MODELD_TRY(target.finish());
  if (name == "-") return 0;
  if (!options.key.empty()) {
    MODELD_ASSIGN(const auto signature, sign_file(name, options.key));
    context.out.message(fmt::format("signed: {}", signature));
  }
  if (context.out.json()) {
    context.out.result(boost::json::object{{"path", name}, {"bytes", done}});
  } else {
    context.out.result(name);
  }
  return 0;
}

} // namespace

void add_export(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "export",
      "Write a snapshot and what was built from it as one tar, for a machine without a network");
  command
      ->add_option("ref", options->ref,
                   "org/name[@revision]; with :QUANTIZATION only that goes along")
      ->required();
  command->add_option("-o,--output", options->out, "The file; - for standard output");
  command->add_option("--sign", options->key,
                      "Private key of OpenSSH or minisign; writes a signature beside the file");
  command->add_flag("--force", options->force, "Replace the file where it is there");
  command->callback([&context, options] {
    context.run = [&context, options] { return export_bundle(context, *options); };
  });
}

} // namespace modeld::daemon
