// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/request.hpp"
#include "fetch/environment.hpp"
#include "fetch/stored_tokens.hpp"
#include "schema/json.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iostream>

// A token is kept in one file of the user's own, and sent to the daemon with each request that may
// need it. The daemon keeps none.

namespace modeld::daemon {
namespace {

namespace fs = std::filesystem;

// Does not show what is typed.
class SilentTerminal {
public:
  SilentTerminal() {
    if (::tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios silent = before_;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    changed_ = ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent) == 0;
  }
  ~SilentTerminal() {
    if (changed_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  SilentTerminal(const SilentTerminal&) = delete;
  SilentTerminal& operator=(const SilentTerminal&) = delete;

private:
  termios before_{};
  bool changed_ = false;
};

Result<fetch::Token> ask_for_token(CommandContext& context) {
  std::string line;
  if (::isatty(STDIN_FILENO) != 0) {
    context.out.message("paste a Hub token (it is not shown), then press Enter");
    const SilentTerminal silent;
    std::getline(std::cin, line);
  } else {
    std::getline(std::cin, line);
  }
  MODELD_ASSIGN(auto token, fetch::Token::parse(line));
  if (!token.empty()) return token;
  return fail(Errc::invalid_argument, "logging in: no token came on standard input",
              "make a token at the Hub under settings/tokens, and give it: modelctl login < FILE");
}

Result<std::string> login_file() {
  const std::string path = fetch::login_file_of(fetch::ProcessEnvironment());
  if (!path.empty()) return path;
  return fail(Errc::invalid_argument, "looking for the folder of the token: HOME is not set");
}

Result<void> write_private(const std::string& path, const std::string& text) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code ec;
  const bool made = fs::create_directories(folder, ec);
  if (ec) return fail(from_errno(ec.value(), fmt::format("making '{}'", folder.string())));
  if (made) fs::permissions(folder, fs::perms::owner_all, ec);
  const std::string temporary = fmt::format("{}.{}", path, ::getpid());
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return fail(from_errno(errno, fmt::format("writing '{}'", temporary)));
  const bool written =
      ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fchmod(file, 0600) == 0 && ::fsync(file) == 0;
  const int error = errno;
  ::close(file);
  if (written && ::rename(temporary.c_str(), path.c_str()) == 0) return {};
  const Error problem = from_errno(written ? errno : error, fmt::format("writing '{}'", path));
  ::unlink(temporary.c_str());
  return fail(problem);
}

Result<std::string> user_of(CommandContext& context, const std::string& token) {
  Client client(context.socket, token);
  MODELD_ASSIGN(const auto answer, client.get("/v1/hub/user"));
  return json_string(answer.body, "name");
}

struct LoginOptions {
  std::string stored;
  bool unchecked = false;
};

Result<fetch::Token> wanted_token(CommandContext& context, const LoginOptions& options) {
  if (options.stored.empty()) return ask_for_token(context);
  MODELD_ASSIGN(auto stored, fetch::find_stored_token(fetch::ProcessEnvironment(), options.stored));
  if (!stored.expires) return std::move(stored.token);
  return fail(
      Errc::invalid_argument,
      fmt::format("keeping the token '{}': it is of a login by browser, and only hf renews it",
                  options.stored),
      "hf auth switch makes it the one that is used here too; or make a token at the Hub "
      "under settings/tokens");
}

Result<int> login(CommandContext& context, const LoginOptions& options) {
  MODELD_ASSIGN(const auto path, login_file());
  MODELD_ASSIGN(const auto token, wanted_token(context, options));
  boost::json::object result{{"file", path}};
  if (!options.unchecked) {
    MODELD_ASSIGN(const auto name, user_of(context, token.reveal()));
    result["name"] = name;
  }
  MODELD_TRY(write_private(path, token.reveal() + '\n'));
  if (context.out.json()) {
    context.out.result(result);
  } else {
    const auto name = json_string(result, "name");
    context.out.message(
        name ? fmt::format("logged in as '{}'; the token is kept in '{}'", *name, path)
             : fmt::format("the token is kept in '{}', unchecked", path));
  }
  return 0;
}

Result<int> logout(CommandContext& context) {
  MODELD_ASSIGN(const auto path, login_file());
  const bool gone = ::unlink(path.c_str()) == 0;
  if (!gone && errno != ENOENT) return fail(from_errno(errno, fmt::format("removing '{}'", path)));
  if (context.out.json()) {
    context.out.result(boost::json::object{{"file", path}, {"removed", gone}});
  } else {
    context.out.message(gone ? fmt::format("'{}' is removed; the Hub still knows the token", path)
                             : fmt::format("there was no token in '{}'", path));
  }
  return 0;
}

Result<int> whoami(CommandContext& context) {
  MODELD_ASSIGN(const auto found, fetch::find_token(fetch::ProcessEnvironment()));
  if (found.token.empty()) {
    return fail(Errc::not_found, "looking for your token: there is none",
                "modelctl login keeps a token; HF_TOKEN in the environment is one too");
  }
  MODELD_ASSIGN(const auto name, user_of(context, found.token.reveal()));
  if (context.out.json()) {
    context.out.result(boost::json::object{{"name", name}, {"source", found.source}});
  } else {
    context.out.message(fmt::format("by the token of {}", found.source));
    context.out.result(name);
  }
  return 0;
}

} // namespace

void add_login(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<LoginOptions>();
  CLI::App* command = app.add_subcommand(
      "login", "Keep a Hub token for this user: typed, or one line on standard input");
  command
      ->add_option("--stored", options->stored,
                   "Take the token that hf keeps under this name instead (hf auth list)")
      ->type_name("NAME");
  command->add_flag("--no-check", options->unchecked,
                    "Do not ask the Hub whether it takes the token");
  command->callback([&context, options] {
    context.run = [&context, options] { return login(context, *options); };
  });
}

void add_logout(CLI::App& app, CommandContext& context) {
  app.add_subcommand("logout", "Forget the token that login kept")->callback([&context] {
    context.run = [&context] { return logout(context); };
  });
}

void add_whoami(CLI::App& app, CommandContext& context) {
  app.add_subcommand("whoami", "Print whose token goes to the Hub")->callback([&context] {
    context.run = [&context] { return whoami(context); };
  });
}

} // namespace modeld::daemon
