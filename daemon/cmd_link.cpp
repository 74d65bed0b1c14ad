// SPDX-License-Identifier: Apache-2.0
#include "daemon/accounts.hpp"
#include "daemon/commands.hpp"
#include "daemon/human_text.hpp"
#include "daemon/link_script.hpp"
#include "daemon/program_place.hpp"
#include "daemon/request.hpp"
#include "daemon/watch.hpp"
#include "schema/json.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

struct Options {
  std::string ref;
  std::string to;
  std::string root;
  std::string form;
  std::string reader;
  bool all = false;
  bool list = false;
  bool print = false;
  bool allow_copy = false;
  bool no_symlinks = false;
};

std::string text_of(const boost::json::object& from, std::string_view name) {
  return json_string(from, name).value_or("");
}

Result<boost::json::object> body_of(const Options& options) {
  boost::json::object body;
  if (options.all) {
    body["all"] = true;
  } else {
    MODELD_TRY(check_ref(options.ref));
    body["ref"] = options.ref;
  }
  MODELD_ASSIGN(const auto place,
                parse_place(options.root.empty() ? options.to : options.to + '=' + options.root));
  body["target"] = place.program;
  body["root"] = place.root;
  body["allow_copy"] = options.allow_copy;
  body["no_symlinks"] = options.no_symlinks;
  if (options.print) body["plan"] = true;
  if (!options.form.empty()) body["form"] = options.form;
  if (!options.reader.empty()) {
    auto reader = user_id(options.reader);
    if (!reader) return fail(std::move(reader).error().context("reading --for"));
    body["reader"] = *reader;
  }
  return body;
}

// A folder that stands for a commit may hold a part of it; a reader that is offline cannot know.
void report_partial(Output& out, const boost::json::object& view) {
  const auto* partial = view.if_contains("partial");
  if (partial == nullptr || !partial->is_bool() || !partial->get_bool()) return;
  const std::string ref = text_of(view, "repo") + '@' + text_of(view, "commit").substr(0, 12);
  const auto files = json_uint(view, "absent").value_or(0);
  const std::string what =
      files == 0 ? std::string("the rest of it is not here")
                 : fmt::format("{} {} ({}) of it {} not here", files, files == 1 ? "file" : "files",
                               human_bytes(json_uint(view, "absent_bytes").value_or(0)),
                               files == 1 ? "is" : "are");
  out.message(fmt::format("a part of {}: {}; modelctl pull {}@{} fetches all", ref, what,
                          text_of(view, "repo"), text_of(view, "commit")));
}

// What the program opens is the result; why it is shown in this way is said beside it.
void report(Output& out, const boost::json::object& result, const Options& options) {
  const auto views = json_array(result, "views");
  for (const auto& value : views ? **views : boost::json::array{}) {
    if (!value.is_object()) continue;
    const auto& view = value.get_object();
    out.message(fmt::format("{}: {}", text_of(view, "form"), text_of(view, "why")));
    report_partial(out, view);
    const auto already = json_array(view, "already_there");
    for (const auto& path : already ? **already : boost::json::array{}) {
      if (path.is_string()) {
        out.message(fmt::format("left as it is, somebody else made it: {}",
                                std::string_view(path.get_string())));
      }
    }
    const auto names = json_array(view, "names");
    for (const auto& name : names ? **names : boost::json::array{}) {
      if (name.is_string()) out.result(std::string_view(name.get_string()));
    }
  }
  const auto skipped = json_array(result, "skipped");
  for (const auto& value : skipped ? **skipped : boost::json::array{}) {
    const auto* error = value.is_object() ? value.get_object().if_contains("error") : nullptr;
    if (error == nullptr || !error->is_object()) continue;
    out.message(fmt::format("left out {}: {}", text_of(value.get_object(), "ref"),
                            text_of(error->get_object(), "message")));
  }
  if (options.all) out.message("kept in step from now on; modelctl unlink --all ends it");
}

std::string listing(const boost::json::object& body) {
  std::vector<std::vector<std::string>> rows{{"ID", "TO", "WHAT", "FOLDER"}};
  const auto add = [&rows](const boost::json::object& one, const std::string& what) {
    rows.push_back(
        {text_of(one, "id").substr(0, 12), text_of(one, "target"), what, text_of(one, "root")});
  };
  const auto standing = json_array(body, "standing");
  for (const auto& value : standing ? **standing : boost::json::array{}) {
    if (value.is_object()) add(value.get_object(), "everything");
  }
  const auto views = json_array(body, "views");
  for (const auto& value : views ? **views : boost::json::array{}) {
    if (!value.is_object()) continue;
    const auto& view = value.get_object();
    add(view, text_of(view, "repo") + '@' + text_of(view, "commit").substr(0, 12));
  }
  return rows.size() == 1 ? std::string() : table(rows);
}

Result<int> list_views(CommandContext& context) {
  Client client(context.socket, {});
  MODELD_ASSIGN(const auto answer, client.get("/v1/views"));
  if (context.out.json()) {
    context.out.result(answer.body);
    return 0;
  }
  const std::string text = listing(answer.body);
  if (text.empty())
    context.out.message("nothing is linked; modelctl link org/name --to PROGRAM shows a model");
  else
    context.out.text(text);
  return 0;
}

Result<int> link(CommandContext& context, const Options& options) {
  if (options.list) return list_views(context);
  if (options.to.empty() || options.all != options.ref.empty()) {
    return fail(Errc::invalid_argument, "linking: a ref or --all, and --to, are needed",
                "modelctl link org/name:Q4_K_M --to ollama");
  }
  if (options.print && options.all) {
    return fail(Errc::invalid_argument, "linking: --print goes with a ref, not with --all",
                "modelctl ls shows the refs");
  }
  MODELD_ASSIGN(const auto body, body_of(options));
  MODELD_ASSIGN(const auto token, caller_token());
  Client client(context.socket, token);
  MODELD_ASSIGN(auto answer, client.post("/v1/views", body));
  MODELD_ASSIGN(const auto result, finish(context, client, std::move(answer), Wait::yes));
  if (context.out.json()) {
    context.out.result(result);
  } else if (options.print) {
    report_partial(context.out, result);
    MODELD_ASSIGN(const auto script, link_script(result, options.form));
    context.out.result(std::string_view(script));
  } else {
    report(context.out, result, options);
  }
  return 0;
}

} // namespace

void add_link(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "link", "Show a model where another program looks for it, without a second copy");
  command->add_option("ref", options->ref, "org/name[@revision][:QUANTIZATION or file]");
  command->add_option("--to", options->to,
                      "huggingface, ollama, lmstudio, llamacpp, models-dir or folder, or "
                      "PROGRAM=FOLDER, or a path");
  command->add_option("--root", options->root, "The program's folder, as in PROGRAM=FOLDER");
  command->add_flag("-a,--all", options->all,
                    "Everything that is here, and whatever comes, until unlink --all");
  command->add_option("--form", options->form,
                      "reflink, hardlink, symlink or copy; without, the safest that works");
  command->add_flag("--copy", options->allow_copy, "Copy where nothing else works");
  command->add_flag("--no-symlinks", options->no_symlinks,
                    "For readers that do not follow them, or in containers");
  command->add_option("--for", options->reader,
                      "User who has to reach the files; says which folder is in the way");
  command->add_flag("--print", options->print,
                    "Only print what would be made, as a script for sh: for who may write there "
                    "when the daemon may not");
  command->add_flag("-l,--list", options->list, "List what is linked");
  command->callback([&context, options] {
    context.run = [&context, options] { return link(context, *options); };
  });
}

} // namespace modeld::daemon
