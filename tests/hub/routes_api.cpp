// SPDX-License-Identifier: Apache-2.0
// The JSON routes: repository info, tree, refs, paths-info, commits (hub-protocol.md 1.3 to 1.5).
// In info the digest of an LFS file is called "sha256", in tree and paths-info "oid".
#include "tests/hub/routes.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace modeld::test {
namespace {

namespace json = boost::json;

constexpr std::string_view k_date = "2026-01-01T00:00:00.000Z";
constexpr std::size_t k_max_paths = 1000;

Answer json_answer(const json::value& value) {
  Answer answer;
  answer.set("Content-Type", "application/json; charset=utf-8");
  answer.text = json::serialize(value);
  return answer;
}

Answer no_revision(std::string_view revision) {
  return error_answer(404, "RevisionNotFound", fmt::format("Invalid rev id: {}", revision));
}

json::object file_entry(const HubFile& file) {
  json::object entry{{"type", "file"},
                     {"oid", file.git_oid.hex()},
                     {"size", file.bytes.size()},
                     {"path", file.path}};
  if (file.sha256) {
    entry["lfs"] = {{"oid", file.sha256->hex()},
                    {"size", file.bytes.size()},
                    {"pointerSize", file.pointer.size()}};
  }
  return entry;
}

json::object folder_entry(const std::string& path, const GitOid& oid) {
  return {{"type", "directory"}, {"oid", oid.hex()}, {"size", 0}, {"path", path}};
}

void expand(json::object& entry, const GitOid& commit) {
  entry["lastCommit"] = {{"id", commit.hex()}, {"title", "Files"}, {"date", k_date}};
  entry["securityFileStatus"] = {{"status", "safe"}};
}

/// Files and folders under `below` ("" or "a/b/"), by path; only direct ones unless recursive.
std::vector<json::object> entries_of(const HubCommit& commit, const std::string& below,
                                     bool recursive) {
  std::vector<json::object> entries;
  const auto wanted = [&](std::string_view path) {
    if (!path.starts_with(below)) return false;
    return recursive || path.find('/', below.size()) == std::string_view::npos;
  };
  for (const auto& [path, oid] : commit.folders()) {
    if (wanted(path)) entries.push_back(folder_entry(path, oid));
  }
  for (const HubFile& file : commit.files()) {
    if (wanted(file.path)) entries.push_back(file_entry(file));
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const json::object& a, const json::object& b) {
                     return a.at("path").as_string() < b.at("path").as_string();
                   });
  return entries;
}

std::size_t number_or(const std::optional<std::string>& text, std::size_t otherwise) {
  std::size_t value = otherwise;
  if (text) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

bool is_true(const std::optional<std::string>& text) {
  return text && (*text == "true" || *text == "True" || *text == "1");
}

/// Paths and the expand flag of a paths-info body: JSON, or a form.
std::optional<std::pair<std::vector<std::string>, bool>> paths_of(const Request& request) {
  std::vector<std::string> paths;
  bool expanded = false;
  if (request.header("Content-Type").find("json") == std::string_view::npos) {
    for (auto& [name, value] : parse_form(request.body)) {
      if (name == "paths") paths.push_back(std::move(value));
      if (name == "expand") expanded = is_true(value);
    }
    return std::pair{paths, expanded};
  }
  json::error_code ec;
  const json::value body = json::parse(request.body, ec);
  if (ec || !body.is_object() || !body.as_object().contains("paths") ||
      !body.at("paths").is_array()) {
    return std::nullopt;
  }
  for (const json::value& path : body.at("paths").as_array()) {
    if (!path.is_string()) return std::nullopt;
    paths.emplace_back(path.as_string());
  }
  const json::value* flag = body.as_object().if_contains("expand");
  expanded = flag != nullptr && flag->is_bool() && flag->as_bool();
  return std::pair{paths, expanded};
}

json::object sibling(const HubFile& file, bool blobs) {
  json::object entry{{"rfilename", file.path}};
  if (!blobs) return entry;
  entry["size"] = file.bytes.size();
  entry["blobId"] = file.git_oid.hex();
  if (file.sha256) {
    entry["lfs"] = {{"sha256", file.sha256->hex()},
                    {"size", file.bytes.size()},
                    {"pointerSize", file.pointer.size()}};
  }
  return entry;
}

} // namespace

Answer Routes::info(const Request& request, const HubRepository& repository,
                    std::string_view revision) const {
  const auto commit = repository.find(revision);
  if (!commit) return no_revision(revision);
  json::array siblings;
  for (const HubFile& file : commit->files()) {
    siblings.push_back(sibling(file, is_true(request.query("blobs"))));
  }
  const std::string& id = repository.id;
  json::object body{
      {"_id", commit->id().hex().substr(0, 24)},
      {"id", id},
      {"modelId", id},
      {"author", id.substr(0, id.find('/'))},
      {"sha", commit->id().hex()},
      {"lastModified", k_date},
      {"createdAt", k_date},
      {"private", repository.is_private},
      {"gated", repository.gated.empty() ? json::value(false) : json::value(repository.gated)},
      {"disabled", false},
      {"downloads", 0},
      {"likes", 0},
      {"tags", json::array{}},
      {"siblings", std::move(siblings)}};
  return json_answer(body);
}

Answer Routes::tree(const Request& request, const HubRepository& repository,
                    std::string_view rest) const {
  const auto split = split_revision(repository, rest);
  if (!split) return error_answer(400, "", "Invalid path");
  const auto& [revision, path] = *split;
  const auto commit = repository.find(revision);
  if (!commit) return no_revision(revision);
  if (!path.empty() && commit->folders().count(path) == 0) {
    return error_answer(404, "EntryNotFound",
                        fmt::format("{} does not exist on \"{}\"", path, revision));
  }
  const bool recursive = is_true(request.query("recursive"));
  const bool expanded = is_true(request.query("expand"));
  auto entries = entries_of(*commit, path.empty() ? "" : path + '/', recursive);
  const std::size_t start = std::min(number_or(request.query("cursor"), 0), entries.size());
  const std::size_t limit = std::max<std::size_t>(
      1, std::min(number_or(request.query("limit"), context_.page_size), context_.page_size));
  const std::size_t end = start + std::min(limit, entries.size() - start);
  const bool redact =
      !repository.gated.empty() && !repositories_->opens(request.token(), repository.id);
  json::array page;
  for (std::size_t i = start; i < end; ++i) {
    if (expanded) expand(entries[i], commit->id());
    if (redact && entries[i].contains("lfs")) entries[i]["xetHash"] = std::string(64, '*');
    page.push_back(std::move(entries[i]));
  }
  Answer answer = json_answer(page);
  if (end < entries.size()) {
    answer.set("Link",
               fmt::format("<{}/api/models/{}/tree/{}?recursive={}&expand={}&limit={}&cursor={}>; "
                           "rel=\"next\"",
                           context_.endpoint, repository.id, rest, recursive, expanded, limit,
                           end));
  }
  return answer;
}

Answer Routes::refs(const Request& request, const HubRepository& repository) const {
  const auto list = [](const std::map<std::string, std::string>& names, std::string_view folder) {
    json::array entries;
    for (const auto& [name, commit] : names) {
      entries.push_back(
          {{"name", name}, {"ref", std::string(folder) + name}, {"targetCommit", commit}});
    }
    return entries;
  };
  json::object body{{"branches", list(repository.branches, "refs/heads/")},
                    {"converts", json::array{}},
                    {"tags", list(repository.tags, "refs/tags/")}};
  if (request.query("include_prs")) body["pullRequests"] = list(repository.other_refs, "");
  return json_answer(body);
}

Answer Routes::paths_info(const Request& request, const HubRepository& repository,
                          std::string_view revision) const {
  const auto commit = repository.find(revision);
  if (!commit) return no_revision(revision);
  const auto wanted = paths_of(request);
  if (!wanted) return error_answer(400, "", "Invalid body");
  const auto& [paths, expanded] = *wanted;
  if (paths.size() > k_max_paths) return error_answer(413, "", "Too many paths");
  json::array entries;
  for (const std::string& path : paths) {
    json::object entry;
    if (const HubFile* file = commit->find(path)) {
      entry = file_entry(*file);
    } else if (auto it = commit->folders().find(path); it != commit->folders().end()) {
      entry = folder_entry(path, it->second);
    } else {
      continue;
    }
    if (expanded) expand(entry, commit->id());
    entries.push_back(std::move(entry));
  }
  return json_answer(entries);
}

Answer Routes::commits(const HubRepository& repository, std::string_view revision) const {
  const auto commit = repository.find(revision);
  if (!commit) return no_revision(revision);
  Answer answer = json_answer(json::array{{{"id", commit->id().hex()},
                                           {"title", "Files"},
                                           {"message", ""},
                                           {"date", k_date},
                                           {"authors", json::array{}}}});
  answer.set("X-Total-Count", "1");
  return answer;
}

} // namespace modeld::test
