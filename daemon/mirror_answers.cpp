// SPDX-License-Identifier: Apache-2.0
#include "daemon/mirror_answers.hpp"

#include "daemon/blob_access.hpp"
#include "daemon/byte_range.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

namespace modeld::daemon {
namespace {

using boost::json::array;
using boost::json::object;

// A file is an LFS object where the list has another git id than its content: the pointer's.
Result<bool> is_lfs(const HubView& view, const ListedFile& file) {
  // Of absent files the list itself says it.
  if (!file.sha256 || view.snapshot.find(file.path) == nullptr) return file.sha256.has_value();
  MODELD_ASSIGN(const auto blob, view.store.find_blob(*file.sha256));
  return !blob || !blob->git_oid || *blob->git_oid != file.git_oid;
}

std::string pointer_text(const ListedFile& file) {
  return fmt::format("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n",
                     file.sha256->hex(), file.size);
}

/// A file that is here, as the list has it.
std::optional<ListedFile> find_listed(const Snapshot& snapshot, std::string_view path) {
  if (const ListedFile* file = snapshot.find_absent(path)) return *file;
  const SnapshotFile* file = snapshot.find(path);
  if (file == nullptr) return std::nullopt;
  return ListedFile{file->path, file->size, file->git_oid, file->sha256};
}

/// Exists, but not here: an answer that no client takes for "no such file".
Response absent_here(const HubView& view, std::string_view path) {
  Response response = hub_error(
      504, {},
      fmt::format("'{}' of {} is not here: modelctl pull {}@{} fetches it", path,
                  view.snapshot.repo.text, view.snapshot.repo.text, view.snapshot.commit.hex()));
  response.headers.emplace_back("X-Repo-Commit", view.snapshot.commit.hex());
  return response;
}

Result<object> tree_entry(const HubView& view, const ListedFile& file) {
  object entry{
      {"type", "file"}, {"oid", file.git_oid.hex()}, {"size", file.size}, {"path", file.path}};
  MODELD_ASSIGN(const bool lfs, is_lfs(view, file));
  if (lfs) {
    entry["lfs"] = object{{"oid", file.sha256->hex()},
                          {"size", file.size},
                          {"pointerSize", pointer_text(file).size()}};
  }
  return entry;
}

object folder_entry(const std::string& path) {
  // Clients want forty digits; nobody looks such a tree up.
  return {{"type", "directory"}, {"oid", std::string(40, '0')}, {"size", 0}, {"path", path}};
}

Response hub_json(boost::json::value value) {
  Response response;
  response.body = boost::json::serialize(value);
  return response;
}

Response entry_not_found(const HubView& view) {
  Response response = hub_error(404, "EntryNotFound", "Entry not found");
  response.headers.emplace_back("X-Repo-Commit", view.snapshot.commit.hex());
  return response;
}

// `paths=a&paths=b` of Python, or {"paths":[...]} of JavaScript.
std::vector<std::string> asked_paths(const Request& request) {
  std::vector<std::string> paths;
  boost::json::error_code ec;
  const auto parsed = boost::json::parse(request.body, ec);
  if (!ec && parsed.is_object() && parsed.get_object().contains("paths")) {
    const auto& list = parsed.get_object().at("paths");
    for (const auto& path : list.is_array() ? list.get_array() : array{}) {
      if (path.is_string()) paths.emplace_back(path.get_string());
    }
    return paths;
  }
  std::string_view rest = request.body;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('&'), rest.size());
    std::string field(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!field.starts_with("paths=")) continue;
    std::replace(field.begin(), field.end(), '+', ' ');
    if (auto path = percent_decode(std::string_view(field).substr(6))) {
      paths.push_back(*std::move(path));
    }
  }
  return paths;
}

bool matches_etag(std::string_view header, const std::string& etag) {
  return header == "*" || header.find('"' + etag + '"') != std::string_view::npos;
}

} // namespace

Response hub_error(int status, std::string_view code, std::string_view message) {
  Response response = hub_json(object{{"error", message}});
  response.status = status;
  if (!code.empty()) response.headers.emplace_back("X-Error-Code", code);
  std::string line(message);
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  response.headers.emplace_back("X-Error-Message", line);
  return response;
}

Result<Response> hub_info(const HubView& view) {
  array siblings;
  for (const ListedFile& file : view.snapshot.listing()) {
    object sibling{{"rfilename", file.path}, {"size", file.size}, {"blobId", file.git_oid.hex()}};
    MODELD_ASSIGN(const bool lfs, is_lfs(view, file));
    if (lfs) {
      sibling["lfs"] = object{{"sha256", file.sha256->hex()},
                              {"size", file.size},
                              {"pointerSize", pointer_text(file).size()}};
    }
    siblings.push_back(std::move(sibling));
  }
  const std::string& id = view.snapshot.repo.text;
  return hub_json(object{{"_id", view.snapshot.commit.hex().substr(0, 24)},
                         {"id", id},
                         {"modelId", id},
                         {"sha", view.snapshot.commit.hex()},
                         {"private", false},
                         {"gated", false},
                         {"disabled", false},
                         {"tags", array{}},
                         {"downloads", 0},
                         {"likes", 0},
                         {"lastModified", "1970-01-01T00:00:00.000Z"},
                         {"createdAt", "1970-01-01T00:00:00.000Z"},
                         {"siblings", std::move(siblings)}});
}

Result<Response> hub_tree(const HubView& view, std::string_view folder) {
  const std::string prefix = folder.empty() ? std::string() : std::string(folder) + '/';
  array entries;
  std::set<std::string> folders;
  for (const ListedFile& file : view.snapshot.listing()) {
    if (!file.path.starts_with(prefix)) continue;
    for (auto at = file.path.find('/', prefix.size()); at != std::string::npos;
         at = file.path.find('/', at + 1)) {
      if (folders.insert(file.path.substr(0, at)).second) {
        entries.push_back(folder_entry(file.path.substr(0, at)));
      }
    }
    MODELD_ASSIGN(auto entry, tree_entry(view, file));
    entries.push_back(std::move(entry));
  }
  if (entries.empty() && !folder.empty()) return entry_not_found(view);
  return hub_json(std::move(entries));
}

Result<Response> hub_paths_info(const HubView& view, const Request& request) {
  constexpr std::size_t k_most = 1000; // as the Hub has it
  const auto paths = asked_paths(request);
  if (paths.size() > k_most) return hub_error(413, {}, "Too many paths");
  array entries;
  for (const std::string& path : paths) {
    const auto file = find_listed(view.snapshot, path);
    if (!file) continue;
    MODELD_ASSIGN(auto entry, tree_entry(view, *file));
    entries.push_back(std::move(entry));
  }
  return hub_json(std::move(entries));
}

Result<Response> hub_refs(const store::Store& store, const RepoId& repo) {
  MODELD_ASSIGN(const auto refs, store.list_refs());
  array branches;
  for (const store::Ref& ref : refs) {
    if (ref.repo != repo || ref.revision.starts_with("refs/")) continue;
    branches.push_back(object{{"name", ref.revision},
                              {"ref", "refs/heads/" + ref.revision},
                              {"targetCommit", ref.commit.hex()}});
  }
  return hub_json(
      object{{"branches", std::move(branches)}, {"converts", array{}}, {"tags", array{}}});
}

Result<Response> hub_file(const HubView& view, std::string_view path, const Request& request) {
  const auto file = find_listed(view.snapshot, path);
  if (!file) return entry_not_found(view);
  if (view.snapshot.find(path) == nullptr) return absent_here(view, path);
  MODELD_ASSIGN(const bool lfs, is_lfs(view, *file));
  const std::string etag = lfs ? file->sha256->hex() : file->git_oid.hex();
  Response response;
  response.content_type = "application/octet-stream";
  const auto add = [&response](const char* name, std::string value) {
    response.headers.emplace_back(name, std::move(value));
  };
  add("X-Repo-Commit", view.snapshot.commit.hex());
  add("ETag", fmt::format("\"{}\"", etag));
  add("X-Linked-ETag", fmt::format("\"{}\"", etag));
  add("X-Linked-Size", fmt::format("{}", file->size));
  add("Accept-Ranges", "bytes");
  if (matches_etag(request.header("if-none-match"), etag)) {
    response.status = 304;
    return response;
  }
  const ByteRange range = parse_range(request.header("range"), file->size);
  if (file->size == 0 && range.kind != ByteRange::Kind::whole) {
    add("Content-Range", "bytes */0"); // an empty file has no range, but JavaScript asks for one
  } else if (range.kind == ByteRange::Kind::unsatisfiable) {
    response = hub_error(416, {}, "Range not satisfiable");
    add("Content-Range", fmt::format("bytes */{}", file->size));
    add("X-Repo-Commit", view.snapshot.commit.hex());
    return response;
  } else if (range.kind == ByteRange::Kind::part) {
    response.status = 206;
    add("Content-Range",
        fmt::format("bytes {}-{}/{}", range.offset, range.offset + range.size - 1, file->size));
  }
  MODELD_ASSIGN(auto opened, open_blob(view.store, {*file->sha256, file->size, {}}));
  view.store.touch(*file->sha256);
  response.body = FileBody{std::move(opened), range.offset, range.size};
  return response;
}

Result<Response> hub_raw(const HubView& view, std::string_view path) {
  const auto file = find_listed(view.snapshot, path);
  if (!file) return entry_not_found(view);
  if (view.snapshot.find(path) == nullptr) return absent_here(view, path);
  MODELD_ASSIGN(const bool lfs, is_lfs(view, *file));
  Response response;
  response.content_type = "text/plain";
  response.headers.emplace_back("X-Repo-Commit", view.snapshot.commit.hex());
  if (lfs) {
    response.body = pointer_text(*file);
  } else {
    MODELD_ASSIGN(auto opened, open_blob(view.store, {*file->sha256, file->size, {}}));
    response.body = FileBody{std::move(opened), 0, file->size};
  }
  return response;
}

} // namespace modeld::daemon
