// SPDX-License-Identifier: Apache-2.0
#include "store/links.hpp"

#include "schema/json.hpp"
#include "store/disk.hpp"
#include "store/layout.hpp"
#include "store/manifests.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <array>

// links/<id>.json, version 1:
//   {"format":"modeld.link","version":1,"id":"...","target":"huggingface","root":"/...",
//    "repo":"org/name","commit":"<40 hex>","uid":n,"created":n,"standing":true (or not there),
//    "files":[{"path":"/...","form":"hardlink","blob":"<64 hex>" or null,"content":"<64
//    hex>"},...]}

namespace modeld::store {
namespace {

constexpr std::string_view k_format = "modeld.link";
constexpr std::uint64_t k_version_1 = 1;
constexpr std::array<std::string_view, 5> k_forms{"reflink", "hardlink", "symlink", "copy",
                                                  "written"};

Result<LinkedFile> file_from_json(const boost::json::value& value) {
  if (!value.is_object()) return fail(Errc::malformed, "reading member 'files': expected objects");
  const auto& object = value.get_object();
  LinkedFile file;
  MODELD_ASSIGN(file.path, json_string(object, "path"));
  MODELD_ASSIGN(const auto form, json_string(object, "form"));
  const auto known = link_form_from_slug(form);
  if (!known) {
    return fail(Errc::malformed, fmt::format("reading member 'form': '{}', allowed are {}", form,
                                             fmt::join(k_forms, " ")));
  }
  file.form = *known;
  if (const auto* blob = object.if_contains("blob"); blob != nullptr && blob->is_string()) {
    MODELD_ASSIGN(file.blob, Sha256Digest::parse(blob->get_string()));
  }
  MODELD_ASSIGN(const auto content, json_string(object, "content"));
  MODELD_ASSIGN(file.content, Sha256Digest::parse(content));
  return file;
}

} // namespace

std::string_view slug(LinkForm form) {
  return k_forms[static_cast<std::size_t>(form)];
}

std::optional<LinkForm> link_form_from_slug(std::string_view text) {
  for (std::size_t i = 0; i < k_forms.size(); ++i) {
    if (k_forms[i] == text) return static_cast<LinkForm>(i);
  }
  return std::nullopt;
}

std::string LinkRecord::to_json() const {
  boost::json::array list;
  for (const LinkedFile& file : files) {
    list.push_back(boost::json::object{
        {"path", file.path},
        {"form", slug(file.form)},
        {"blob", file.blob ? boost::json::value(file.blob->hex()) : boost::json::value()},
        {"content", file.content.hex()}});
  }
  boost::json::object object{{"format", k_format},
                             {"version", k_version_1},
                             {"id", id},
                             {"target", target},
                             {"root", root},
                             {"repo", repo.text},
                             {"commit", commit.hex()},
                             {"uid", uid},
                             {"created", created},
                             {"files", std::move(list)}};
  if (standing) object["standing"] = true;
  return boost::json::serialize(object) + '\n';
}

Result<LinkRecord> LinkRecord::from_json(std::string_view text) {
  MODELD_ASSIGN(const auto value, parse_json(text, "a link's record"));
  if (!value.is_object()) {
    return fail(Errc::malformed, "parsing a link's record: expected an object");
  }
  const auto& object = value.get_object();
  MODELD_ASSIGN(const auto format, json_string(object, "format"));
  MODELD_ASSIGN(const auto version, json_uint(object, "version"));
  if (format != k_format || version != k_version_1) {
    return fail(Errc::malformed, fmt::format("parsing a link's record: format '{}' version {}, "
                                             "expected '{}' version {}",
                                             format, version, k_format, k_version_1));
  }
  LinkRecord link;
  MODELD_ASSIGN(link.id, json_string(object, "id"));
  MODELD_ASSIGN(link.target, json_string(object, "target"));
  MODELD_ASSIGN(link.root, json_string(object, "root"));
  MODELD_ASSIGN(const auto repo, json_string(object, "repo"));
  MODELD_ASSIGN(link.repo, RepoId::parse(repo));
  MODELD_ASSIGN(const auto commit, json_string(object, "commit"));
  MODELD_ASSIGN(link.commit, GitOid::parse(commit));
  MODELD_ASSIGN(const auto uid, json_uint(object, "uid"));
  link.uid = static_cast<std::uint32_t>(uid);
  MODELD_ASSIGN(const auto created, json_uint(object, "created"));
  link.created = static_cast<UnixTime>(created);
  const auto* standing = object.if_contains("standing");
  link.standing = standing != nullptr && standing->is_bool() && standing->get_bool();
  MODELD_ASSIGN(const auto* files, json_array(object, "files"));
  for (const auto& file : *files) {
    MODELD_ASSIGN(auto parsed, file_from_json(file));
    link.files.push_back(std::move(parsed));
  }
  return link;
}

Result<std::vector<LinkRecord>> read_link_records(const Disk& disk) {
  std::vector<LinkRecord> records;
  if (!disk.exists(layout::k_links)) return records;
  MODELD_ASSIGN(const auto paths, list_manifests(disk, layout::k_links, 0));
  for (const std::string& path : paths) {
    const auto text = disk.read_text(path, k_max_manifest);
    if (!text) continue; // hidden meanwhile, or for fsck to tell
    auto record = LinkRecord::from_json(*text);
    if (record && layout::link_manifest(record->id) == path) records.push_back(std::move(*record));
  }
  return records;
}

} // namespace modeld::store
