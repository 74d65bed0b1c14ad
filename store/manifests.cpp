// SPDX-License-Identifier: Apache-2.0
#include "store/manifests.hpp"
#include "store/index.hpp"

#include "schema/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

// snapshots/<org>/<name>/repo.json, version 1:
//   {"format":"modeld.repo","version":1,"repo":"org/name","canonical":"org/name","gated":false,
//    "users":[uid,...],"refs":[{"revision":"main","commit":"<40 hex>","checked":n},...]}
// pins/<name>.json, version 1:
//   {"format":"modeld.pin","version":1,"name":"...","repo":"org/name","commit":"<40 hex>",
//    "recipes":["Q4_K_M;via=AUTO",...],"uid":n,"created":n}

namespace modeld::store {
namespace {

constexpr std::uint64_t k_version_1 = 1;

Result<boost::json::object> open_manifest(std::string_view text, std::string_view format,
                                          std::string_view what) {
  MODELD_ASSIGN(const auto value, parse_json(text, what));
  if (!value.is_object()) {
    return fail(Errc::malformed, fmt::format("parsing {}: expected an object", what));
  }
  const auto& object = value.get_object();
  MODELD_ASSIGN(const auto found, json_string(object, "format"));
  MODELD_ASSIGN(const auto version, json_uint(object, "version"));
  if (found != format || version != k_version_1) {
    return fail(Errc::malformed, fmt::format("parsing {}: format '{}' version {}, expected '{}' "
                                             "version {}",
                                             what, found, version, format, k_version_1));
  }
  return object;
}

Result<RepoId> repo_member(const boost::json::object& object, std::string_view name) {
  MODELD_ASSIGN(const auto text, json_string(object, name));
  return RepoId::parse(text);
}

Result<GitOid> commit_member(const boost::json::object& object) {
  MODELD_ASSIGN(const auto text, json_string(object, "commit"));
  return GitOid::parse(text);
}

Result<Ref> ref_from_json(const boost::json::value& value, const RepoRow& row) {
  if (!value.is_object()) {
    return fail(Errc::malformed, "reading member 'refs': expected objects");
  }
  const auto& object = value.get_object();
  Ref ref;
  ref.repo = row.repo;
  ref.canonical = row.canonical;
  MODELD_ASSIGN(ref.revision, json_string(object, "revision"));
  MODELD_ASSIGN(ref.commit, commit_member(object));
  MODELD_ASSIGN(const auto checked, json_uint(object, "checked"));
  ref.checked = static_cast<UnixTime>(checked);
  return ref;
}

} // namespace

std::string RepoRow::to_json() const {
  boost::json::array user_list(users.begin(), users.end());
  boost::json::array ref_list;
  for (const Ref& ref : refs) {
    ref_list.push_back(boost::json::object{
        {"revision", ref.revision}, {"commit", ref.commit.hex()}, {"checked", ref.checked}});
  }
  const boost::json::object object{
      {"format", "modeld.repo"},     {"version", k_version_1}, {"repo", repo.text},
      {"canonical", canonical.text}, {"gated", gated},         {"users", std::move(user_list)},
      {"refs", std::move(ref_list)}};
  return boost::json::serialize(object) + '\n';
}

Result<RepoRow> RepoRow::from_json(std::string_view text) {
  MODELD_ASSIGN(const auto object, open_manifest(text, "modeld.repo", "a repository's record"));
  RepoRow row;
  MODELD_ASSIGN(row.repo, repo_member(object, "repo"));
  MODELD_ASSIGN(row.canonical, repo_member(object, "canonical"));
  const auto* gated = object.if_contains("gated");
  if (gated == nullptr || !gated->is_bool()) {
    return fail(Errc::malformed, "reading member 'gated': expected true or false");
  }
  row.gated = gated->get_bool();
  MODELD_ASSIGN(const auto* users, json_array(object, "users"));
  for (const auto& user : *users) {
    boost::json::error_code ec;
    row.users.push_back(user.to_number<std::uint32_t>(ec));
    if (ec) return fail(Errc::malformed, "reading member 'users': expected user ids");
  }
  MODELD_ASSIGN(const auto* refs, json_array(object, "refs"));
  for (const auto& value : *refs) {
    MODELD_ASSIGN(auto ref, ref_from_json(value, row));
    row.refs.push_back(std::move(ref));
  }
  return row;
}

std::string pin_to_json(const Pin& pin) {
  boost::json::array recipes;
  for (const std::string& recipe : pin.recipes) {
    recipes.emplace_back(recipe);
  }
  const boost::json::object object{
      {"format", "modeld.pin"}, {"version", k_version_1},     {"name", pin.name},
      {"repo", pin.repo.text},  {"commit", pin.commit.hex()}, {"recipes", std::move(recipes)},
      {"uid", pin.uid},         {"created", pin.created}};
  return boost::json::serialize(object) + '\n';
}

Result<Pin> pin_from_json(std::string_view text) {
  MODELD_ASSIGN(const auto object, open_manifest(text, "modeld.pin", "a pin"));
  Pin pin;
  MODELD_ASSIGN(pin.name, json_string(object, "name"));
  MODELD_ASSIGN(pin.repo, repo_member(object, "repo"));
  MODELD_ASSIGN(pin.commit, commit_member(object));
  MODELD_ASSIGN(const auto* recipes, json_array(object, "recipes"));
  for (const auto& recipe : *recipes) {
    if (!recipe.is_string()) {
      return fail(Errc::malformed, "reading member 'recipes': expected strings");
    }
    pin.recipes.emplace_back(recipe.get_string());
  }
  MODELD_ASSIGN(const auto uid, json_uint(object, "uid"));
  pin.uid = static_cast<std::uint32_t>(uid);
  MODELD_ASSIGN(const auto created, json_uint(object, "created"));
  pin.created = static_cast<UnixTime>(created);
  return pin;
}

} // namespace modeld::store
