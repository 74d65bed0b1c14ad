// SPDX-License-Identifier: Apache-2.0
#include "daemon/usage_error.hpp"

#include "schema/nearest_name.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::daemon {
namespace {

// The names from the program to the command that was chosen.
struct Chosen {
  CLI::App* app = nullptr; ///< the innermost
  std::string name;        ///< "modelctl imatrix show"
  std::vector<const CLI::App*> path;
};

Chosen chosen_in(CLI::App& app) {
  Chosen chosen{&app, app.get_name(), {&app}};
  while (true) {
    const auto parsed = chosen.app->get_subcommands();
    if (parsed.empty()) return chosen;
    chosen.app = parsed.front();
    chosen.name += ' ' + chosen.app->get_name();
    chosen.path.push_back(chosen.app);
  }
}

Error wrong(const Chosen& chosen, std::string_view what, std::string hint) {
  return {Errc::invalid_argument, fmt::format("{}: {}", chosen.name, what), std::move(hint), {}, 0};
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    names.push_back(command->get_name());
  }
  return names;
}

// As they are typed, with their dashes.
std::vector<std::string> options_of(const Chosen& chosen) {
  std::vector<std::string> names;
  for (const CLI::App* app : chosen.path) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        names.push_back("--" + name);
      }
      for (const std::string& name : option->get_snames()) {
        names.push_back("-" + name);
      }
    }
  }
  return names;
}

std::string nearest(std::string_view name, const std::vector<std::string>& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  return std::string(nearest_name(name, views));
}

// "modelctl get [OPTIONS] ref"
std::string usage_of(const Chosen& chosen) {
  std::string usage = chosen.name;
  if (!chosen.app->get_subcommands(nullptr).empty()) usage += " COMMAND";
  usage += " [OPTIONS]";
  for (const CLI::Option* option : chosen.app->get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = option->get_name(true);
    usage += option->get_required() ? ' ' + name : " [" + name + ']';
    if (option->get_expected_max() > 1) usage += "...";
  }
  return usage;
}

std::string help_of(const Chosen& chosen) {
  return fmt::format("usage: {}; {} --help tells more", usage_of(chosen), chosen.name);
}

Error unknown_option(const Chosen& chosen, std::string_view word) {
  const std::string name(word.substr(0, word.find('=')));
  return wrong(chosen, fmt::format("there is no option '{}'", name),
               fmt::format("the nearest option is '{}'; {} --help shows all",
                           nearest(name, options_of(chosen)), chosen.name));
}

Error unknown_command(const Chosen& chosen, const std::string& word) {
  return wrong(chosen, fmt::format("there is no command '{}'", word),
               fmt::format("the nearest command is '{}'; {} --help lists all",
                           nearest(word, commands_of(*chosen.app)), chosen.name));
}

// Whether a command has to be named, and none was.
bool lacks_command(const Chosen& chosen) {
  return chosen.app->get_require_subcommand_min() > 0;
}

} // namespace

Error usage_error(CLI::App& app, const CLI::ParseError& error) {
  const Chosen chosen = chosen_in(app);
  const std::vector<std::string> rest = app.remaining(true);
  const auto is_option = [](const std::string& word) {
    return word.size() > 1 && word.front() == '-' && word != "--";
  };
  const auto option = std::find_if(rest.begin(), rest.end(), is_option);
  const auto plain = std::find_if_not(rest.begin(), rest.end(), is_option);
  if (lacks_command(chosen)) {
    if (plain != rest.end()) return unknown_command(chosen, *plain);
    if (option == rest.end()) {
      return wrong(chosen, "a command is missing",
                   fmt::format("{} --help lists the commands", chosen.name));
    }
  }
  if (option != rest.end()) return unknown_option(chosen, *option);
  if (plain != rest.end()) {
    return wrong(chosen, fmt::format("'{}' is one word too many", *plain), help_of(chosen));
  }
  std::string what = error.what();
  constexpr std::string_view k_required = " is required";
  if (error.get_name() == "RequiredError" && what.ends_with(k_required)) {
    what.resize(what.size() - k_required.size());
    what += " is missing";
  }
  // "--jobs: 1 required UINT missing"
  if (error.get_name() == "ArgumentMismatch" && what.ends_with(" missing")) {
    what = what.substr(0, what.find(':')) + ": a value is missing";
  }
  return wrong(chosen, what, help_of(chosen));
}

} // namespace modeld::daemon
