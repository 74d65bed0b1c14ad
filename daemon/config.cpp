// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.hpp"

#include "daemon/paths.hpp"
#include "daemon/setting_text.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

namespace modeld::daemon {
namespace {

constexpr std::size_t k_max_file = 1U << 20; // a configuration file is a page or two

const Setting* find_setting(std::string_view name) {
  for (const Setting& setting : all_settings()) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

bool is_section(std::string_view name) {
  for (const Setting& setting : all_settings()) {
    if (setting.name.substr(0, setting.name.find('.')) == name) return true;
  }
  return false;
}

std::string place(std::string_view file, const toml::node& node) {
  return fmt::format("reading '{}' line {}", file, node.source().begin.line);
}

Result<void> set_from_node(Config& config, const Setting& setting, const toml::node& node,
                           const std::string& where) {
  Result<void> done;
  if (const auto text = node.value_exact<std::string>()) {
    done = set_from_text(config, setting, *text);
  } else if (const auto number = node.value_exact<std::int64_t>()) {
    done = set_from_number(config, setting, *number);
  } else {
    done = fail(Errc::invalid_argument,
                fmt::format("'{}' must be {}", setting.name, allowed_text(setting)));
  }
  if (!done) return fail(std::move(done).error().context(where));
  return {};
}

Result<void> apply_section(Config& config, std::string_view file, std::string_view section,
                           const toml::table& table) {
  for (const auto& [key, node] : table) {
    const std::string name = fmt::format("{}.{}", section, key.str());
    const Setting* setting = find_setting(name);
    if (setting == nullptr) {
      return fail(Errc::invalid_argument,
                  fmt::format("{}: no setting '{}'", place(file, node), name),
                  fmt::format("the nearest is '{}'; modeld --print-config shows all",
                              nearest_setting(name)));
    }
    MODELD_TRY(set_from_node(config, *setting, node, place(file, node)));
  }
  return {};
}

Result<void> apply_text(Config& config, std::string_view text, std::string_view file) {
  const toml::parse_result parsed = [&] { return toml::parse(text, file); }();
  for (const auto& [key, node] : parsed) {
    const toml::table* table = node.as_table();
    if (table == nullptr || !is_section(key.str())) {
      return fail(Errc::invalid_argument,
                  fmt::format("{}: no section '{}'", place(file, node), key.str()),
                  "sections are [store], [server], [hub], [jobs], [mirror] and [log]");
    }
    MODELD_TRY(apply_section(config, file, key.str(), *table));
  }
  return {};
}

Result<void> apply_text_checked(Config& config, std::string_view text, std::string_view file) {
  try {
    return apply_text(config, text, file);
  } catch (const toml::parse_error& error) {
    return fail(Errc::invalid_argument,
                fmt::format("reading '{}' line {}: {}", file, error.source().begin.line,
                            error.description()));
  }
}

Result<void> apply_file(Config& config, const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(from_errno(errno, fmt::format("opening '{}'", path.string())));
  std::string text(k_max_file + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return fail(from_errno(errno, fmt::format("reading '{}'", path.string())));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > k_max_file) {
    return fail(Errc::invalid_argument,
                fmt::format("reading '{}': longer than {} bytes", path.string(), k_max_file));
  }
  return apply_text_checked(config, text, path.string());
}

Result<void> apply_environment(Config& config) {
  for (const Setting& setting : all_settings()) {
    if (setting.environment.empty()) continue;
    const char* value = std::getenv(std::string(setting.environment).c_str());
    if (value == nullptr || *value == '\0') continue;
    if (auto done = set_from_text(config, setting, value); !done) {
      return fail(std::move(done).error().context(
          fmt::format("reading the environment variable {}", setting.environment)));
    }
  }
  return {};
}

Result<void> check_level(const Config& config) {
  for (const std::string_view level : {"error", "warning", "info", "debug"}) {
    if (config.log.level == level) return {};
  }
  return fail(Errc::invalid_argument,
              fmt::format("'log.level' is '{}', allowed are error, warning, info and debug",
                          config.log.level));
}

// 1, ON, YES and TRUE in any case, as the Hub's own tools have it.
Result<void> check_offline(Config& config) {
  std::string value = config.hub.offline;
  std::transform(value.begin(), value.end(), value.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (value == "1" || value == "on" || value == "yes" || value == "true") {
    config.hub.offline = "yes";
  } else if (value.empty() || value == "0" || value == "off" || value == "no" || value == "false") {
    config.hub.offline = "no";
  } else {
    return fail(Errc::invalid_argument,
                fmt::format("'hub.offline' is '{}', allowed are yes and no", config.hub.offline));
  }
  return {};
}

Config with_defaults() {
  Config config;
  config.store.root = default_root();
  config.server.socket = default_listen_socket();
  config.server.socket_mode = is_system_user() ? 0666 : 0600;
  return config;
}

} // namespace

Result<Config> parse_config(std::string_view text, std::string_view name) {
  Config config = with_defaults();
  MODELD_TRY(apply_text_checked(config, text, name));
  MODELD_TRY(check_level(config));
  MODELD_TRY(check_offline(config));
  return config;
}

Result<Config> load_config(const ConfigSources& sources) {
  Config config = with_defaults();
  std::error_code ignored;
  if (!sources.file.empty()) {
    MODELD_TRY(apply_file(config, sources.file));
  } else if (std::filesystem::exists(sources.otherwise, ignored)) {
    MODELD_TRY(apply_file(config, sources.otherwise));
  }
  MODELD_TRY(apply_environment(config));
  if (!sources.root.empty()) config.store.root = sources.root;
  if (!sources.socket.empty()) config.server.socket = sources.socket;
  MODELD_TRY(check_level(config));
  MODELD_TRY(check_offline(config));
  return config;
}

std::string print_config(const Config& config) {
  std::string out;
  std::string_view section;
  Config copy = config;
  for (const Setting& setting : all_settings()) {
    const auto dot = setting.name.find('.');
    if (setting.name.substr(0, dot) != section) {
      section = setting.name.substr(0, dot);
      out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", section);
    }
    out += fmt::format("# {}", setting.meaning);
    if (setting.least != setting.most) out += fmt::format(" Allowed: {}.", allowed_text(setting));
    if (!setting.environment.empty()) out += fmt::format(" Environment: {}.", setting.environment);
    out += fmt::format("\n{} = {}\n", setting.name.substr(dot + 1), value_text(copy, setting));
  }
  return out;
}

} // namespace modeld::daemon
