// SPDX-License-Identifier: Apache-2.0
#include "store/remove.hpp"

#include "store/collect.hpp"
#include "store/show.hpp"

#include <fmt/format.h>

namespace modeld::store {
namespace {

/// Blobs that only this model's names keep.
std::vector<Sha256Digest> blobs_of(const Snapshot& snapshot, const std::vector<Variant>& variants) {
  std::vector<Sha256Digest> blobs;
  for (const SnapshotFile& file : snapshot.files) {
    blobs.push_back(file.sha256);
  }
  for (const Variant& variant : variants) {
    blobs.push_back(variant.result);
  }
  return blobs;
}

Result<void> check_pins(const Store& store, const RepoId& repo, const GitOid& commit) {
  MODELD_ASSIGN(const auto pins, store.list_pins());
  for (const Pin& pin : pins) {
    if (pin.repo != repo || pin.commit != commit) continue;
    return fail(Errc::conflict,
                fmt::format("removing '{}@{}': pinned as '{}'", repo.text, commit.hex(), pin.name),
                fmt::format("run modelctl unpin {}", pin.name));
  }
  return {};
}

} // namespace

Result<RemoveReport> remove_model(Store& store, const RepoId& repo, const GitOid& commit,
                                  bool force) {
  MODELD_ASSIGN(const auto all, store.list_variants());
  std::vector<Variant> variants;
  for (const Variant& variant : all) {
    if (variant.repo == repo && variant.commit == commit) variants.push_back(variant);
  }
  const auto found = store.find_snapshot(repo, commit);
  // A damaged snapshot can be removed as well; nobody can be reading it.
  const bool damaged = !found && found.error().code == Errc::corrupt;
  if (!found && !damaged) return fail(found.error());
  const Snapshot snapshot = found && *found ? **found : Snapshot{repo, commit, {}};
  MODELD_TRY(check_pins(store, repo, commit));
  RemoveReport report;
  MODELD_ASSIGN(report.users, users_of(store, blobs_of(snapshot, variants)));
  if (!report.users.empty() && !force) {
    return fail(Errc::conflict,
                fmt::format("removing '{}@{}': in use by {}", repo.text, commit.hex(),
                            fmt::join(report.users, ", ")),
                "end what uses it, or pass --force: readers keep their bytes until they end");
  }
  MODELD_ASSIGN(const auto links, list_links(store));
  for (const LinkRecord& link : links) {
    if (link.repo != repo || link.commit != commit) continue;
    MODELD_ASSIGN(const auto left, hide(store, link.id));
    report.hidden.push_back(link.target + ' ' + link.root);
    report.left.insert(report.left.end(), left.begin(), left.end());
  }
  for (const Variant& variant : variants) {
    MODELD_TRY(store.remove_variant(variant.key));
  }
  if (damaged || *found) {
    MODELD_TRY(store.remove_snapshot(repo, commit));
  } else if (variants.empty()) {
    return fail(Errc::not_found,
                fmt::format("removing '{}@{}': no such snapshot", repo.text, commit.hex()));
  }
  return report;
}

} // namespace modeld::store
