// SPDX-License-Identifier: Apache-2.0
#include "store/fsck_run.hpp"
#include "store/layout.hpp"
#include "store/manifests.hpp"

#include <fmt/format.h>

#include <algorithm>

// Refs, readers, pins, and what concerns the whole root.

namespace modeld::store {

Result<void> FsckRun::check_names() {
  MODELD_TRY(check_repos());
  return check_pins();
}

Result<void> FsckRun::check_repos() {
  MODELD_ASSIGN(const auto paths, list_manifests(state_.disk, layout::k_snapshots, 2));
  for (const std::string& path : paths) {
    if (!path.ends_with("/repo.json")) continue;
    const auto text = state_.disk.read_text(path, k_max_manifest);
    const auto row = text ? RepoRow::from_json(*text) : fail(text.error());
    if (!row || layout::repo_manifest(row->repo) != path) continue; // by its row, below
    auto index = state_.writer.lock();
    MODELD_ASSIGN(const auto there, index->find_repo(row->repo));
    if (there) continue;
    found("FS-26", path, "no row", "row written", [&]() -> Result<void> {
      MODELD_ASSIGN(auto txn, index->begin());
      MODELD_TRY(index->put_repo(*row));
      return txn.commit();
    });
  }
  std::vector<RepoRow> rows;
  {
    auto index = state_.writer.lock();
    MODELD_ASSIGN(const auto repos, index->list_repos());
    for (const RepoId& repo : repos) {
      MODELD_ASSIGN(auto row, index->find_repo(repo));
      if (row) rows.push_back(std::move(*row));
    }
  }
  for (const RepoRow& row : rows) {
    const std::string path = layout::repo_manifest(row.repo);
    const auto text = state_.disk.read_text(path, k_max_manifest);
    if (text && *text == row.to_json()) continue;
    found("FS-25", path, text ? "differs from the index" : text.error().message,
          "written again from the index", [&] { return write_manifest(path, row.to_json()); });
  }
  return {};
}

Result<void> FsckRun::check_pins() {
  MODELD_ASSIGN(const auto paths, list_manifests(state_.disk, layout::k_pins, 0));
  std::vector<Pin> pins;
  {
    auto index = state_.writer.lock();
    MODELD_ASSIGN(pins, index->list_pins());
  }
  for (const Pin& pin : pins) {
    const std::string path = layout::pin_manifest(pin.name);
    const auto text = state_.disk.read_text(path, k_max_manifest);
    if (text && *text == pin_to_json(pin)) continue;
    found("FS-27", path, text ? "differs from the index" : text.error().message,
          "written again from the index", [&] { return write_manifest(path, pin_to_json(pin)); });
  }
  for (const std::string& path : paths) {
    const bool known = std::any_of(pins.begin(), pins.end(), [&path](const Pin& pin) {
      return layout::pin_manifest(pin.name) == path;
    });
    if (known) continue;
    const auto text = state_.disk.read_text(path, k_max_manifest);
    const auto pin = text ? pin_from_json(*text) : fail(text.error());
    if (!pin || layout::pin_manifest(pin->name) != path) {
      found("FS-27", path,
            pin ? "it is the record of pin '" + pin->name + "'" : pin.error().message,
            "moved to quarantine/", [&] { return set_aside(path); });
      continue;
    }
    auto index = state_.writer.lock();
    MODELD_ASSIGN(const auto snapshot, index->snapshot_info(pin->repo, pin->commit));
    if (!snapshot) {
      found("FS-28", path, "no row, and its snapshot is not here", "moved to quarantine/",
            [&] { return set_aside(path); });
      continue;
    }
    found("FS-28", path, "no row", "row written", [&]() -> Result<void> {
      MODELD_ASSIGN(auto txn, index->begin());
      MODELD_TRY(index->put_pin(*pin));
      return txn.commit();
    });
  }
  return {};
}

Result<void> FsckRun::check_root() {
  const auto marker = state_.disk.read_text(layout::k_marker, 4096);
  if (!marker || marker->find(state_.id) == std::string::npos) {
    found("FS-32", layout::k_marker, marker ? "another store's id" : marker.error().message,
          "written again",
          [&] { return write_manifest(layout::k_marker, marker_text(state_.id)); });
  }
  auto index = state_.writer.lock();
  for (const char* sql : {"PRAGMA integrity_check(1)", "PRAGMA foreign_key_check"}) {
    auto query = index->db().query(sql);
    const auto row = query.step();
    if (row && (!*row || query.text(0) == "ok")) continue;
    found("FS-30", layout::k_index, row ? query.text(0) : row.error().message,
          "run modelctl fsck --rebuild");
  }
  return {};
}

} // namespace modeld::store
