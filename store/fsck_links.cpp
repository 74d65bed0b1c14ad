// SPDX-License-Identifier: Apache-2.0
#include "store/fsck_run.hpp"
#include "store/layout.hpp"
#include "store/manifests.hpp"
#include "store/show_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

// What was shown in other programs' folders, and the records of it.

namespace modeld::store {

/// What shows a blob that is lost or damaged, and links to such a file: a finding about the blob
/// says it already, and they come back with it.
std::set<std::string> FsckRun::waiting_files(const LinkRecord& record) const {
  namespace fs = std::filesystem;
  std::set<std::string> waiting;
  for (const LinkedFile& file : record.files) {
    if (file.blob && !has_blob(*file.blob)) waiting.insert(file.path);
  }
  for (const LinkedFile& file : record.files) {
    if (file.blob || file.form != LinkForm::symlink || waiting.empty()) continue;
    std::error_code ec;
    const fs::path target = fs::read_symlink(file.path, ec);
    const auto leads_to = (fs::path(file.path).parent_path() / target).lexically_normal();
    if (!ec && waiting.contains(leads_to.string())) waiting.insert(file.path);
  }
  return waiting;
}

Result<void> FsckRun::check_links() {
  MODELD_ASSIGN(const auto records, read_link_records(state_.disk));
  MODELD_TRY(check_link_records(records));
  for (const LinkRecord& record : records) {
    MODELD_TRY(check_cancel());
    const auto root = Disk::open(record.root, state_.disk.watcher());
    if (!root) {
      found("FS-33", record.root, root.error().message, "modelctl unlink forgets it");
      continue;
    }
    const ShownFiles files(store_, *root);
    const auto waiting = waiting_files(record);
    for (const LinkedFile& file : record.files) {
      if (waiting.contains(file.path)) continue;
      const std::string wrong = files.problem(file);
      if (wrong.empty()) continue;
      const bool mendable = file.blob && (wrong == "it is gone" || wrong == "a dead link");
      found("FS-33", file.path, wrong, mendable ? "made again" : "",
            mendable ? Fix([&]() -> Result<void> {
              MODELD_ASSIGN(const bool made, files.mend(file));
              return made ? Result<void>() : fail(Errc::not_found, "its blob is not here");
            })
                     : Fix());
    }
  }
  return {};
}

Result<void> FsckRun::check_link_records(const std::vector<LinkRecord>& records) {
  std::vector<LinkRecord> rows;
  {
    auto index = state_.writer.lock();
    MODELD_ASSIGN(rows, index->list_links());
  }
  std::set<std::string> known;
  for (const LinkRecord& record : records) {
    known.insert(layout::link_manifest(record.id));
    const bool listed = std::any_of(
        rows.begin(), rows.end(), [&record](const LinkRecord& row) { return row.id == record.id; });
    if (listed) continue;
    found("FS-34", layout::link_manifest(record.id), "no row", "row written",
          [&] { return change_rows([&record](Index& index) { return index.put_link(record); }); });
  }
  for (const LinkRecord& row : rows) {
    const std::string path = layout::link_manifest(row.id);
    if (known.contains(path)) continue;
    // Rows alone do not know all files that were made, so they cannot write the record again.
    found("FS-34", path, state_.disk.exists(path) ? "it cannot be read" : "no such file",
          "the row is forgotten; what was shown stays where it is", [&]() -> Result<void> {
            if (state_.disk.exists(path)) MODELD_TRY(set_aside(path));
            return change_rows([&row](Index& index) { return index.delete_link(row.id); });
          });
  }
  if (!state_.disk.exists(layout::k_links)) return {};
  const auto paths = files_below(layout::k_links, 0);
  for (const std::string& path : paths) {
    const bool has_row = std::any_of(rows.begin(), rows.end(), [&path](const LinkRecord& row) {
      return layout::link_manifest(row.id) == path;
    });
    if (known.contains(path) || has_row) continue;
    found("FS-34", path, "it cannot be read", "moved to quarantine/",
          [&] { return set_aside(path); });
  }
  return {};
}

} // namespace modeld::store
