// SPDX-License-Identifier: Apache-2.0
// modeld-test-hub: the local Hub as a program, for the demo, shell tests and people.
#include "tests/hub/test_hub.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <set>
#include <stdexcept>

namespace {

namespace json = boost::json;
using modeld::test::HubConfig;
using modeld::test::Repositories;
using modeld::test::TestHub;

constexpr const char* k_layout = R"(Repositories:
  --root ROOT             each folder ROOT/org/name is a repository with one commit on main
  --repo org/name=DIR     adds DIR as the newest commit of main; give it again for more commits
  --repo org/name@REF=DIR the same on another branch, or on refs/pr/N
Large files are LFS objects, by size (--lfs-threshold) or by name (.safetensors, .gguf, ...).
The same files always give the same commit id.

When it serves, one line of JSON goes to stdout (and to --ready-file, complete once it exists):
  {"endpoint":"http://127.0.0.1:PORT","data_endpoint":...,"commits":[{"repo","ref","commit"}]}
Put the endpoint into HF_ENDPOINT. Ctrl-C or SIGTERM ends it.)";

struct Options {
  HubConfig hub;
  std::string root;
  std::string ready_file;
  std::string script;
  std::string ca_file;
  bool list_faults = false;
  std::vector<std::string> repos, next, tags, renames, privates, gated, disabled, tokens;
};

/// "a=b" in two.
std::pair<std::string, std::string> halves(const std::string& text) {
  const auto equal = text.find('=');
  if (equal == std::string::npos) throw std::invalid_argument("'" + text + "': '=' is missing");
  return {text.substr(0, equal), text.substr(equal + 1)};
}

/// "org/name@ref" in two; the ref may be absent.
std::pair<std::string, std::string> id_and_ref(const std::string& text) {
  const auto at = text.find('@');
  if (at == std::string::npos) return {text, "main"};
  return {text.substr(0, at), text.substr(at + 1)};
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--address", options.hub.address, "address to listen on")->capture_default_str();
  app.add_option("--port", options.hub.port, "port of the site; 0: a free one");
  app.add_option("--data-port", options.hub.data_port, "port of the storage; 0: a free one");
  app.add_option("--prefix", options.hub.prefix, "path in front of every route, such as /hf");
  app.add_option("--page-size", options.hub.page_size, "entries on a page of a listing")
      ->capture_default_str();
  app.add_option("--signed-ttl", options.hub.signed_ttl, "seconds that a signed address is good")
      ->capture_default_str();
  app.add_option("--lfs-threshold", options.hub.lfs.threshold, "bytes from which on a file is LFS")
      ->capture_default_str();
  app.add_option("--root", options.root, "folder of repositories");
  app.add_option("--repo", options.repos, "org/name[@REF]=DIR");
  app.add_option("--next", options.next, "org/name[@REF]=DIR: moves the branch at each SIGUSR1");
  app.add_option("--tag", options.tags, "org/name@TAG=REVISION");
  app.add_option("--rename", options.renames, "old/name=new/name");
  app.add_option("--private", options.privates, "org/name that only a --token opens");
  app.add_option("--gated", options.gated, "org/name whose files only a --token opens");
  app.add_option("--disabled", options.disabled, "org/name that nobody may read");
  app.add_option("--token", options.tokens,
                 "TOKEN=org/name,org/name: a user's token and what it opens");
  app.add_option("--script", options.script, "JSON file of faults; see --list-faults");
  app.add_flag("--list-faults", options.list_faults, "print the faults that a script can name");
  app.add_flag("--tls", options.hub.tls, "serve https with a certificate made for this run");
  app.add_option("--ca-file", options.ca_file, "write that certificate here, for clients to trust");
  app.add_option("--ready-file", options.ready_file, "write the line of JSON here too");
}

void add_commit(TestHub& hub, const std::string& text) {
  const auto [name, folder] = halves(text);
  const auto [id, ref] = id_and_ref(name);
  if (!std::filesystem::is_directory(folder)) {
    throw std::invalid_argument("'" + folder + "' is not a folder");
  }
  hub.add_folder(id, folder, ref);
}

void load_repositories(TestHub& hub, const Options& options) {
  namespace fs = std::filesystem;
  if (!options.root.empty()) {
    for (const auto& org : fs::directory_iterator(options.root)) {
      if (!org.is_directory()) continue;
      for (const auto& repo : fs::directory_iterator(org.path())) {
        if (!repo.is_directory()) continue;
        hub.add_folder(org.path().filename().string() + '/' + repo.path().filename().string(),
                       repo.path());
      }
    }
  }
  for (const std::string& text : options.repos) {
    add_commit(hub, text);
  }
}

modeld::test::HubRepository& need(Repositories& repositories, const std::string& id) {
  auto* found = repositories.find(id);
  if (found == nullptr) throw std::invalid_argument("'" + id + "' is not one of the repositories");
  return *found;
}

void load_access(Repositories& repositories, const Options& options) {
  for (const std::string& text : options.tags) {
    const auto [name, revision] = halves(text);
    const auto [id, tag] = id_and_ref(name);
    auto& repository = need(repositories, id);
    const auto commit = repository.find(revision);
    if (!commit) throw std::invalid_argument("'" + revision + "' is not a revision of " + id);
    repository.tags[tag] = commit->id().hex();
  }
  for (const std::string& text : options.renames) {
    const auto [from, to] = halves(text);
    repositories.rename(from, to);
  }
  for (const std::string& id : options.privates)
    need(repositories, id).is_private = true;
  for (const std::string& id : options.gated)
    need(repositories, id).gated = "manual";
  for (const std::string& id : options.disabled)
    need(repositories, id).disabled = true;
  for (const std::string& text : options.tokens) {
    const auto equal = text.find('=');
    std::set<std::string> opens;
    std::string rest = equal == std::string::npos ? "" : text.substr(equal + 1);
    while (!rest.empty()) {
      const auto comma = rest.find(',');
      opens.insert(rest.substr(0, comma));
      rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    }
    repositories.add_token(text.substr(0, equal), std::move(opens));
  }
}

std::string ready_line(TestHub& hub) {
  json::array commits;
  hub.change([&](Repositories& repositories) {
    for (const auto& [id, repository] : repositories.all()) {
      for (const auto* refs : {&repository.branches, &repository.tags, &repository.other_refs}) {
        for (const auto& [ref, commit] : *refs) {
          commits.push_back({{"repo", id}, {"ref", ref}, {"commit", commit}});
        }
      }
    }
  });
  return json::serialize(json::object{{"endpoint", hub.endpoint()},
                                      {"data_endpoint", hub.data_endpoint()},
                                      {"commits", std::move(commits)}});
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("opening '" + path + "' failed");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A script is {"rules":[RULE...]}: the first rule that matches a request changes its answer.
void load_script(TestHub& hub, const std::string& path) {
  if (path.empty()) return;
  if (auto added = hub.script().add_json(read_file(path)); !added) {
    throw std::invalid_argument(added.error().message);
  }
}

void write_file(const std::string& path, const std::string& line) {
  const std::string unfinished = path + ".tmp";
  {
    std::ofstream file(unfinished);
    file << line << '\n';
    if (!file.flush()) throw std::runtime_error("writing '" + path + "' failed");
  }
  std::filesystem::rename(unfinished, path);
}

int list_faults() {
  std::cout
      << R"(A script: {"rules":[{"match":{"origin":"hub|data","method":"GET","path":"part of the target",
"ranged":true,"covers":BYTE,"from":1,"times":1},"fault":"cut","at":1000}]}; times 0: for ever.
)";
  for (const auto& [name, meaning] : modeld::test::fault_names()) {
    std::cout << "  " << name << ": " << meaning << '\n';
  }
  return 0;
}

int run(const Options& options, const sigset_t& signals) {
  TestHub hub(options.hub);
  load_repositories(hub, options);
  hub.change([&](Repositories& repositories) { load_access(repositories, options); });
  load_script(hub, options.script);
  if (!options.ca_file.empty()) write_file(options.ca_file, hub.ca_pem());
  const std::string line = ready_line(hub);
  std::cout << line << std::endl;
  if (!options.ready_file.empty()) write_file(options.ready_file, line);
  auto next = options.next.begin();
  int received = 0;
  while (sigwait(&signals, &received) == 0 && received == SIGUSR1) {
    if (next != options.next.end()) add_commit(hub, *next++);
  }
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"A local Hugging Face Hub that serves folders by the real protocol."};
  app.footer(k_layout);
  add_options(app, options);
  CLI11_PARSE(app, argc, argv);
  // A shell starts background programs with SIGINT ignored, and ignored signals never arrive.
  std::signal(SIGINT, SIG_DFL);
  // Blocked before any thread starts, so that only sigwait() sees them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    return options.list_faults ? list_faults() : run(options, signals);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
}
