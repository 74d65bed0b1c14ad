// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/human_text.hpp"
#include "daemon/program_place.hpp"
#include "daemon/request.hpp"
#include "daemon/signature.hpp"
#include "daemon/watch.hpp"
#include "schema/json.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

struct Options {
  std::string path;
  std::string from;
  std::string repo;
  std::string trusted;
  bool dry_run = false;
  bool may_link = false;
  bool assume_complete = false;
};

Result<boost::json::object> body_of(const Options& options) {
  boost::json::object body{{"dry_run", options.dry_run},
                           {"may_link", options.may_link},
                           {"assume_complete", options.assume_complete}};
  if (options.from == "bundle") {
    body["source"] = "bundle";
    body["path"] = absolute_path(options.path);
  } else if (!options.from.empty()) {
    MODELD_ASSIGN(
        const auto place,
        parse_place(options.path.empty() ? options.from : options.from + '=' + options.path));
    body["source"] = place.program;
    body["path"] = place.root;
  } else {
    body["path"] = absolute_path(options.path);
  }
  if (!options.repo.empty()) body["repo"] = options.repo;
  return body;
}

std::string text_of(const boost::json::object& from, std::string_view name) {
  return json_string(from, name).value_or("");
}

std::string report(const boost::json::object& result, bool dry_run) {
  std::vector<std::vector<std::string>> rows{{"", "MODEL", "FILES", "SIZE", "COPIED", ""}};
  const auto adopted = json_array(result, "adopted");
  for (const auto& value : adopted ? **adopted : boost::json::array{}) {
    if (!value.is_object()) continue;
    const auto& one = value.get_object();
    const auto* listed = one.if_contains("listed");
    const bool whole = listed != nullptr && listed->is_bool() && listed->get_bool();
    rows.push_back({whole ? (dry_run ? "would be listed" : "listed") : "kept",
                    text_of(one, "repo") + '@' + text_of(one, "commit").substr(0, 12),
                    fmt::format("{}", json_uint(one, "files").value_or(0)),
                    human_bytes(json_uint(one, "bytes").value_or(0)),
                    human_bytes(json_uint(one, "copied").value_or(0)), text_of(one, "note")});
  }
  return rows.size() == 1 ? std::string("no model was found") : table(rows);
}

Result<int> import(CommandContext& context, const Options& options) {
  if (options.path.empty() && options.from.empty()) {
    return fail(Errc::invalid_argument, "importing: a path or --from is needed",
                "modelctl import --from ollama, or modelctl import FILE.tar");
  }
  MODELD_ASSIGN(const auto body, body_of(options));
  if (!options.trusted.empty()) {
    MODELD_ASSIGN(const auto who, verify_file(absolute_path(options.path), options.trusted));
    context.out.message(fmt::format("signed by {}", who));
  }
  Client client(context.socket, {});
  MODELD_ASSIGN(auto answer, client.post("/v1/import", body));
  MODELD_ASSIGN(const auto result, finish(context, client, std::move(answer), Wait::yes));
  if (context.out.json()) {
    context.out.result(result);
  } else {
    context.out.text(report(result, options.dry_run));
  }
  return 0;
}

} // namespace

void add_import(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "import", "Take in what another program downloaded, or a bundle that export made");
  command->add_option(
      "path", options->path,
      "A folder or a bundle; without, where the program of --from keeps its models");
  command->add_option("--from", options->from,
                      "huggingface, ollama, lmstudio, folder or bundle; recognised without");
  command->add_option("--repo", options->repo,
                      "Name of what is in a plain folder; local/FOLDER without");
  command->add_option(
      "--verify", options->trusted,
      "Only with a good signature beside the bundle: allowed_signers of OpenSSH, or "
      "a public key of minisign");
  command->add_flag("-n,--dry-run", options->dry_run, "Only look, and check digests");
  command->add_flag("--link", options->may_link,
                    "Share the other program's files, which become read-only, instead of copying "
                    "where blocks cannot be shared");
  command->add_flag(
      "--assume-complete", options->assume_complete,
      "List snapshots of a Hugging Face cache that does not say what they should have");
  command->callback([&context, options] {
    context.run = [&context, options] { return import(context, *options); };
  });
}

} // namespace modeld::daemon
