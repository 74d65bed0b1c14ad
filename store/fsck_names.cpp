// SPDX-License-Identifier: Apache-2.0
#include "store/fsck_run.hpp"
#include "store/layout.hpp"
#include "store/manifests.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

// Refs, readers, pins, and what concerns the whole root.

namespace modeld::store {

Result<void> FsckRun::check_names() {
  MODELD_TRY(check_repos());
  return check_pins();
}

/// Where there is a row it is written again from that, by check_repos().
Result<void> FsckRun::check_strange_repo(const std::string& path, const std::string& wrong) {
  const auto repo =
      repo_of_folder(folder_of(path).substr(std::string_view(layout::k_snapshots).size() + 1));
  if (repo) {
    auto index = state_.writer.lock();
    MODELD_ASSIGN(const auto there, index->find_repo(*repo));
    if (there) return {};
  }
  found("FS-25", path, wrong + "; no row either", "moved to quarantine/",
        [&] { return set_aside(path); });
  return {};
}

Result<void> FsckRun::check_repos() {
  for (const std::string& path : files_below(layout::k_snapshots, 2)) {
    if (!path.ends_with("/repo.json")) continue;
    const auto text = state_.disk.read_text(path, k_max_manifest);
    const auto row = text ? RepoRow::from_json(*text) : fail(text.error());
    if (!row || layout::repo_manifest(row->repo) != path) {
      MODELD_TRY(check_strange_repo(path, row ? "it is the record of " + row->repo.text
                                              : row.error().message));
      continue;
    }
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
    const auto parsed = text ? RepoRow::from_json(*text) : fail(text.error());
    found("FS-25", path, parsed ? "differs from the index" : parsed.error().message,
          "written again from the index", [&] { return write_manifest(path, row.to_json()); });
  }
  return {};
}

Result<void> FsckRun::check_pins() {
  const auto paths = files_below(layout::k_pins, 0);
  std::vector<Pin> pins;
  {
    auto index = state_.writer.lock();
    MODELD_ASSIGN(pins, index->list_pins());
  }
  for (const Pin& pin : pins) {
    const std::string path = layout::pin_manifest(pin.name);
    const auto text = state_.disk.read_text(path, k_max_manifest);
    bool names_snapshot = false;
    {
      auto index = state_.writer.lock();
      MODELD_ASSIGN(const auto info, index->snapshot_info(pin.repo, pin.commit));
      names_snapshot = info.has_value();
    }
    if (!names_snapshot) {
      found("FS-27", path,
            fmt::format("it names {}@{}, which is not here", pin.repo.text, pin.commit.hex()),
            "row removed", [&]() -> Result<void> {
              if (state_.disk.exists(path)) MODELD_TRY(set_aside(path));
              return change_rows([&](Index& index) { return index.delete_pin(pin.name); });
            });
      continue;
    }
    if (text && *text == pin_to_json(pin)) continue;
    const auto parsed = text ? pin_from_json(*text) : fail(text.error());
    found("FS-27", path, parsed ? "differs from the index" : parsed.error().message,
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

void FsckRun::check_reserve() {
  const std::uint64_t wanted = state_.options.reserve_file;
  if (wanted == 0) return;
  const auto is_full = [this, wanted] {
    struct stat info {};
    return fstatat(state_.disk.fd(), layout::k_reserve, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(info.st_mode) && static_cast<std::uint64_t>(info.st_size) == wanted;
  };
  if (is_full()) return;
  const auto size = state_.disk.size_of(layout::k_reserve);
  found("FS-40", layout::k_reserve,
        size ? fmt::format("it has {} bytes, expected {}", *size, wanted) : size.error().message,
        "made again", [&]() -> Result<void> {
          if (!size && state_.disk.exists(layout::k_reserve)) {
            MODELD_TRY(set_aside(layout::k_reserve));
          }
          store_.refill_reserve();
          return is_full() ? Result<void>() : fail(Errc::no_space, "the disk has no room for it");
        });
}

Result<void> FsckRun::check_root() {
  const auto marker = state_.disk.read_text(layout::k_marker, 4096);
  if (!marker || marker->find(state_.id) == std::string::npos) {
    found("FS-32", layout::k_marker, marker ? "another store's id" : marker.error().message,
          "written again",
          [&] { return write_manifest(layout::k_marker, marker_text(state_.id)); });
  }
  check_reserve();
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
