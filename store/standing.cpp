// SPDX-License-Identifier: Apache-2.0
#include "store/standing.hpp"

#include "schema/json.hpp"
#include "store/layout.hpp"
#include "store/manifests.hpp"
#include "store/state.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>

// standing/<id>.json, version 1:
//   {"format":"modeld.standing","version":1,"id":"...","target":"ollama","root":"/...",
//    "form":"hardlink" or "","copy":false,"symlink":true,"uid":n,"created":n}

namespace modeld::store {
namespace {

constexpr std::string_view k_format = "modeld.standing";
constexpr std::uint64_t k_version_1 = 1;
constexpr std::uint64_t k_max_record = 64U << 10;

std::string path_of(std::string_view id) {
  return fmt::format("{}/{}.json", layout::k_standing, id);
}

bool flag_of(const boost::json::object& from, std::string_view name) {
  const auto* value = from.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

Result<std::vector<StandingLink>> read_all(const Disk& disk) {
  std::vector<StandingLink> links;
  if (!disk.exists(layout::k_standing)) return links;
  MODELD_ASSIGN(const auto paths, list_manifests(disk, layout::k_standing, 0));
  for (const std::string& path : paths) {
    const auto text = disk.read_text(path, k_max_record);
    if (!text) continue; // ended meanwhile, or for fsck to tell
    auto link = StandingLink::from_json(*text);
    if (link && path_of(link->id) == path) links.push_back(std::move(*link));
  }
  return links;
}

} // namespace

std::string StandingLink::to_json() const {
  const boost::json::object object{
      {"format", k_format}, {"version", k_version_1},
      {"id", id},           {"target", slug(target)},
      {"root", root},       {"form", form ? slug(*form) : std::string_view()},
      {"copy", allow_copy}, {"symlink", allow_symlink},
      {"uid", uid},         {"created", created}};
  return boost::json::serialize(object) + '\n';
}

Result<StandingLink> StandingLink::from_json(std::string_view text) {
  MODELD_ASSIGN(const auto value, parse_json(text, "a standing link"));
  if (!value.is_object()) return fail(Errc::malformed, "parsing a standing link: no object");
  const auto& object = value.get_object();
  MODELD_ASSIGN(const auto format, json_string(object, "format"));
  MODELD_ASSIGN(const auto version, json_uint(object, "version"));
  if (format != k_format || version != k_version_1) {
    return fail(Errc::malformed, fmt::format("parsing a standing link: format '{}' version {}, "
                                             "expected '{}' version {}",
                                             format, version, k_format, k_version_1));
  }
  StandingLink link;
  MODELD_ASSIGN(link.id, json_string(object, "id"));
  MODELD_ASSIGN(const auto target, json_string(object, "target"));
  const auto known = show_target_from_slug(target);
  if (!known) {
    return fail(Errc::malformed, fmt::format("reading member 'target': no target '{}'", target));
  }
  link.target = *known;
  MODELD_ASSIGN(link.root, json_string(object, "root"));
  MODELD_ASSIGN(const auto form, json_string(object, "form"));
  link.form = link_form_from_slug(form);
  link.allow_copy = flag_of(object, "copy");
  link.allow_symlink = flag_of(object, "symlink");
  MODELD_ASSIGN(const auto uid, json_uint(object, "uid"));
  link.uid = static_cast<std::uint32_t>(uid);
  MODELD_ASSIGN(const auto created, json_uint(object, "created"));
  link.created = static_cast<UnixTime>(created);
  return link;
}

Result<std::vector<StandingLink>> list_standing(Store& store) {
  return read_all(store.internals().disk);
}

Result<StandingLink> put_standing(Store& store, StandingLink link) {
  Store::State& s = store.internals();
  const std::lock_guard manifests(s.manifests);
  MODELD_ASSIGN(const auto all, read_all(s.disk));
  const auto same = std::find_if(all.begin(), all.end(), [&link](const StandingLink& other) {
    return other.target == link.target && other.root == link.root;
  });
  link.id = same == all.end() ? random_id() : same->id;
  link.created = same == all.end() ? now() : same->created;
  MODELD_TRY(s.disk.make_folders(layout::k_standing));
  MODELD_TRY(s.disk.replace_file(path_of(link.id), link.to_json(), 0644));
  return link;
}

Result<void> delete_standing(Store& store, std::string_view id) {
  Store::State& s = store.internals();
  MODELD_TRY(check_name(id, "standing link"));
  const std::lock_guard manifests(s.manifests);
  if (!s.disk.exists(path_of(id))) {
    return fail(Errc::not_found, fmt::format("ending standing link '{}': no such link", id));
  }
  MODELD_TRY(s.disk.unlink(path_of(id)));
  return s.disk.sync_folder(layout::k_standing);
}

} // namespace modeld::store
