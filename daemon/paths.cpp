// SPDX-License-Identifier: Apache-2.0
#include "daemon/paths.hpp"

#include <fmt/format.h>

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace modeld::daemon {
namespace {

constexpr const char* k_system_socket = "/run/modeld/modeld.sock";

// XDG base directory specification: a variable that is not an absolute path is ignored.
std::string xdg(const char* variable, const std::string& otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value == '/' ? value : otherwise;
}

std::string home() {
  const char* value = std::getenv("HOME");
  if (value != nullptr && *value == '/') return value;
  const passwd* entry = getpwuid(geteuid());
  return entry != nullptr ? entry->pw_dir : "/";
}

std::string user_socket() {
  return xdg("XDG_RUNTIME_DIR", fmt::format("/run/user/{}", geteuid())) + "/modeld/modeld.sock";
}

} // namespace

bool is_system_user() {
  if (geteuid() == 0) return true;
  const passwd* entry = getpwuid(geteuid());
  return entry != nullptr && std::string_view(entry->pw_name) == "modeld";
}

std::string default_root() {
  if (is_system_user()) return "/var/lib/modeld";
  return xdg("XDG_DATA_HOME", home() + "/.local/share") + "/modeld";
}

std::string default_listen_socket() {
  return is_system_user() ? k_system_socket : user_socket();
}

std::string default_socket() {
  if (geteuid() == 0) return k_system_socket;
  struct stat status {};
  const std::string own = user_socket();
  if (stat(own.c_str(), &status) == 0 || stat(k_system_socket, &status) != 0) return own;
  return k_system_socket;
}

std::string default_config() {
  if (is_system_user()) return "/etc/modeld/modeld.toml";
  return xdg("XDG_CONFIG_HOME", home() + "/.config") + "/modeld/modeld.toml";
}

} // namespace modeld::daemon
