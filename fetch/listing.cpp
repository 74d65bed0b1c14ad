// SPDX-License-Identifier: Apache-2.0
#include "fetch/listing.hpp"

#include "schema/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace modeld::fetch {
namespace {

namespace json = boost::json;

// 2^53: what every JSON reader on the way can hold; no file is near it.
constexpr std::uint64_t k_max_size = 1ull << 53;

Result<const json::object*> as_object(const json::value& value, std::string_view what) {
  if (const auto* object = value.if_object()) return object;
  return fail(Errc::malformed, fmt::format("reading {}: expected an object", what));
}

bool flag(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  if (value == nullptr || value->is_null()) return false;
  return !value->is_bool() || value->get_bool(); // "gated" is false, "auto" or "manual"
}

Result<ListedFile> parse_file(const json::object& entry) {
  ListedFile file;
  MODELD_ASSIGN(file.path, json_string(entry, "path"));
  MODELD_TRY(check_repo_path(file.path));
  MODELD_ASSIGN(file.size, json_uint(entry, "size"));
  MODELD_ASSIGN(const std::string oid, json_string(entry, "oid"));
  MODELD_ASSIGN(file.git_oid, GitOid::parse(oid));
  const auto* lfs = entry.if_contains("lfs");
  if (lfs == nullptr || lfs->is_null()) return file;
  MODELD_ASSIGN(const json::object* object, as_object(*lfs, "member 'lfs'"));
  MODELD_ASSIGN(const std::string sha256, json_string(*object, "oid"));
  MODELD_ASSIGN(file.sha256, Sha256Digest::parse(sha256));
  MODELD_ASSIGN(file.size, json_uint(*object, "size"));
  return file;
}

/// Names the entry in an error without repeating bytes that a terminal would obey.
std::string printable(const json::object& entry) {
  const auto* path = entry.if_contains("path");
  if (path == nullptr || !path->is_string()) return "?";
  std::string text;
  for (const char c : path->get_string()) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      text += fmt::format("\\x{:02x}", byte);
    } else {
      text.push_back(c);
    }
  }
  return text.substr(0, 300);
}

} // namespace

Result<std::string> parse_user(std::string_view text) {
  MODELD_ASSIGN(const json::value value, parse_json(text, "who a token belongs to"));
  MODELD_ASSIGN(const json::object* object, as_object(value, "who a token belongs to"));
  return json_string(*object, "name");
}

Result<Resolved> parse_repo_info(std::string_view text) {
  MODELD_ASSIGN(const json::value value, parse_json(text, "repository info"));
  MODELD_ASSIGN(const json::object* object, as_object(value, "repository info"));
  Resolved resolved;
  MODELD_ASSIGN(const std::string id, json_string(*object, "id"));
  MODELD_ASSIGN(resolved.repo, RepoId::parse(id));
  MODELD_ASSIGN(const std::string sha, json_string(*object, "sha"));
  if (auto commit = GitOid::parse(sha)) {
    resolved.commit = *commit;
  } else {
    return fail(Errc::malformed,
                fmt::format("reading repository info: sha is '{}', expected 40 hexadecimal digits",
                            sha.substr(0, 80)));
  }
  resolved.is_private = flag(*object, "private");
  resolved.gated = flag(*object, "gated");
  return resolved;
}

Result<std::size_t> append_tree_page(std::string_view text, std::vector<ListedFile>& files) {
  MODELD_ASSIGN(const json::value value, parse_json(text, "a page of the listing"));
  const auto* entries = value.if_array();
  if (entries == nullptr)
    return fail(Errc::malformed, "reading a page of the listing: expected an array");
  for (const json::value& item : *entries) {
    MODELD_ASSIGN(const json::object* entry, as_object(item, "an entry of the listing"));
    MODELD_ASSIGN(const std::string type, json_string(*entry, "type"));
    if (type == "directory") continue;
    if (type != "file") {
      return fail(
          Errc::malformed,
          fmt::format("reading a page of the listing: type '{}', expected file or directory",
                      type.substr(0, 40)));
    }
    auto file = parse_file(*entry);
    if (!file) {
      Error error = std::move(file).error();
      error.code = Errc::malformed;
      if (error.message.starts_with("reading path"))
        error.message = error.message.substr(error.message.find("': ") + 3);
      return fail(std::move(error).context(fmt::format("listing file '{}'", printable(*entry))));
    }
    if (file->size > k_max_size) {
      return fail(Errc::malformed, fmt::format("listing file '{}': size {}, allowed are {}",
                                               file->path, file->size, k_max_size));
    }
    files.push_back(std::move(*file));
  }
  return entries->size();
}

Result<void> finish_listing(std::vector<ListedFile>& files) {
  std::sort(files.begin(), files.end(),
            [](const ListedFile& a, const ListedFile& b) { return a.path < b.path; });
  for (std::size_t i = 1; i < files.size(); ++i) {
    if (files[i].path == files[i - 1].path) {
      return fail(Errc::malformed, fmt::format("listing file '{}': it comes twice", files[i].path));
    }
  }
  // A folder "a/" sorts behind "a" and perhaps "a-b", so look each file's folders up by name.
  for (const ListedFile& file : files) {
    for (auto slash = file.path.find('/'); slash != std::string::npos;
         slash = file.path.find('/', slash + 1)) {
      const std::string_view folder = std::string_view(file.path).substr(0, slash);
      const auto it = std::lower_bound(
          files.begin(), files.end(), folder,
          [](const ListedFile& one, std::string_view wanted) { return one.path < wanted; });
      if (it != files.end() && it->path == folder) {
        return fail(Errc::malformed, fmt::format("listing file '{}': '{}' is a file, not a folder",
                                                 file.path, folder));
      }
    }
  }
  return {};
}

} // namespace modeld::fetch
