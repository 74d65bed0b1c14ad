// SPDX-License-Identifier: Apache-2.0
#include "daemon/link_script.hpp"

#include "schema/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

// In single quotes nothing has a meaning but the quote itself.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + '\'';
}

Result<std::string_view> command_of(std::string_view form) {
  if (form.empty() || form == "symlink") return "ln -s --";
  if (form == "hardlink") return "ln --";
  if (form == "reflink") return "cp --no-clobber --reflink=always --";
  if (form == "copy") return "cp --no-clobber --reflink=auto --";
  return fail(
      Errc::invalid_argument,
      fmt::format("reading --form: it is '{}', allowed are reflink, hardlink, symlink and copy",
                  form));
}

Result<std::string> line_of(const boost::json::object& file, std::string_view command) {
  MODELD_ASSIGN(const auto path, json_string(file, "path"));
  MODELD_ASSIGN(const auto source, json_string(file, "source"));
  MODELD_ASSIGN(const auto text, json_string(file, "text"));
  MODELD_ASSIGN(const auto target, json_string(file, "target"));
  const auto folder = quoted(path.substr(0, path.rfind('/')));
  std::string line = fmt::format("mkdir -p -- {}\n", folder);
  if (!source.empty()) {
    line += fmt::format("{} {} {}\n", command, quoted(source), quoted(path));
  } else if (!target.empty()) {
    line += fmt::format("ln -s -- {} {}\n", quoted(target), quoted(path));
  } else {
    line += fmt::format("printf %s {} > {}\n", quoted(text), quoted(path));
  }
  return line;
}

} // namespace

Result<std::string> link_script(const boost::json::object& plan, std::string_view form) {
  MODELD_ASSIGN(const auto command, command_of(form));
  MODELD_ASSIGN(const auto* files, json_array(plan, "plan"));
  MODELD_ASSIGN(const auto repo, json_string(plan, "repo"));
  MODELD_ASSIGN(const auto commit, json_string(plan, "commit"));
  // -e: stops at the first failure. -C: > never writes over a file.
  std::string script =
      fmt::format("set -eC\n# modelctl pin {}@{} keeps it from collection\n", repo, commit);
  for (const auto& value : *files) {
    if (!value.is_object()) continue;
    MODELD_ASSIGN(const auto line, line_of(value.get_object(), command));
    script += line;
  }
  script.pop_back();
  return script;
}

} // namespace modeld::daemon
