// SPDX-License-Identifier: Apache-2.0
#include "store/fsck_run.hpp"
#include "store/layout.hpp"
#include "store/manifests.hpp"
#include "store/plain_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace modeld::store {

// ---- snapshots

Result<void> FsckRun::check_snapshots() {
  MODELD_TRY(check_snapshot_files());
  std::vector<SnapshotInfo> list;
  {
    auto index = state_.writer.lock();
    MODELD_ASSIGN(list, index->list_snapshots());
  }
  report_.snapshots = list.size();
  for (const SnapshotInfo& info : list) {
    MODELD_TRY(check_cancel());
    MODELD_TRY(check_snapshot_row(info));
  }
  return {};
}

Result<void> FsckRun::check_snapshot_row(const SnapshotInfo& info) {
  std::optional<Snapshot> snapshot;
  {
    auto index = state_.writer.lock();
    MODELD_ASSIGN(snapshot, index->find_snapshot(info.repo, info.commit));
  }
  if (!snapshot) return {};
  // A name or a path that none of ours has must not lead anywhere on the disk.
  const std::string text = snapshot->to_json();
  if (const auto sound = Snapshot::from_json(text); !sound) {
    return check_strange_row(info, sound.error().message);
  }
  const std::string path = layout::snapshot_manifest(info.repo, info.commit);
  // Its time is when the snapshot came, for an index that is made again.
  const Fix rewrite = [&]() -> Result<void> {
    MODELD_TRY(write_manifest(path, text));
    return state_.disk.set_time(path, info.added);
  };
  const auto found_text = state_.disk.read_text(path, k_max_manifest);
  if (!found_text && snapshot->files.empty() && snapshot->absent.empty()) {
    found("FS-10", path, found_text.error().message + ", and the index knows no file of it",
          "row removed", [&] {
            return change_rows(
                [&](Index& index) { return index.delete_snapshot(info.repo, info.commit); });
          });
    return {};
  }
  if (!found_text) {
    found("FS-10", path, found_text.error().message, "written again from the index", rewrite);
  } else if (const auto parsed = Snapshot::from_json(*found_text); !parsed) {
    found("FS-11", path, parsed.error().message, "written again from the index", rewrite);
  } else if (*found_text != text) {
    check_newer_manifest(path, *snapshot, *parsed, rewrite);
  }
  const bool damaged =
      std::any_of(snapshot->files.begin(), snapshot->files.end(), [&](const SnapshotFile& f) {
        return rows_.contains(f.sha256) && rows_.at(f.sha256).damaged;
      });
  if (info.files != snapshot->files.size() || info.bytes != snapshot->bytes() ||
      info.damaged != damaged) {
    found("FS-31", path,
          fmt::format("the index says {} files, {} bytes, {}; there are {} and {}, {}", info.files,
                      info.bytes, info.damaged ? "damaged" : "sound", snapshot->files.size(),
                      snapshot->bytes(), damaged ? "damaged" : "sound"),
          "corrected", [&] {
            return change_rows(
                [&](Index& index) { return index.correct_sums(info.repo, info.commit); });
          });
  }
  // Without a blob there is nothing to show; that is a finding of its own.
  const bool whole = std::all_of(snapshot->files.begin(), snapshot->files.end(),
                                 [&](const SnapshotFile& file) { return has_blob(file.sha256); });
  if (whole && !plain_view_complete(state_.disk, *snapshot)) {
    found("FS-16", layout::view(info.repo, info.commit), "incomplete", "made again",
          [&] { return make_view(*snapshot); });
  }
  return {};
}

/// A row that cannot be one of ours. Its manifest knows better, where there is one.
Result<void> FsckRun::check_strange_row(const SnapshotInfo& info, const std::string& wrong) {
  std::optional<Snapshot> manifest;
  std::string path = info.repo.text + '@' + info.commit.hex();
  if (RepoId::parse(info.repo.text)) {
    path = layout::snapshot_manifest(info.repo, info.commit);
    const auto text = state_.disk.read_text(path, k_max_manifest);
    auto parsed = text ? Snapshot::from_json(*text) : fail(text.error());
    if (parsed && layout::snapshot_manifest(parsed->repo, parsed->commit) == path) {
      manifest = *std::move(parsed);
    }
  }
  found("FS-12", path, "the row is none of ours: " + wrong,
        manifest ? "row written again from the manifest" : "row removed", [&] {
          return change_rows([&](Index& index) -> Result<void> {
            // What hangs on the row finds it again at the end.
            MODELD_TRY(index.db().execute("PRAGMA defer_foreign_keys=ON"));
            MODELD_TRY(index.delete_snapshot(info.repo, info.commit));
            return manifest ? index.put_snapshot(*manifest, info.added) : Result<void>();
          });
        });
  return {};
}

Result<void> FsckRun::make_view(const Snapshot& snapshot) {
  std::vector<Variant> variants;
  {
    auto index = state_.writer.lock();
    MODELD_ASSIGN(variants, index->variants_in(snapshot.repo, snapshot.commit));
  }
  std::erase_if(variants, [&](const Variant& v) { return !has_blob(v.result); });
  return build_plain_view(state_.disk, snapshot, variants, state_.temporary("view"));
}

/// A manifest that differs from the row: a pull of further files wrote it and got no further, or it
/// is wrong.
void FsckRun::check_newer_manifest(const std::string& path, const Snapshot& row,
                                   const Snapshot& manifest, const Fix& rewrite) {
  if (manifest == row) {
    found("FS-12", path, "the same as the index, but written in another form",
          "written again from the index", rewrite);
    return;
  }
  const auto both = row.merged_with(manifest);
  const bool ahead = both && *both == manifest &&
                     std::all_of(manifest.files.begin(), manifest.files.end(),
                                 [&](const SnapshotFile& file) { return has_blob(file.sha256); });
  if (!ahead) {
    found("FS-12", path, "differs from the index", "written again from the index", rewrite);
    return;
  }
  found("FS-12", path, "names more files than the index; all of them are here", "row completed",
        [this, manifest]() -> Result<void> {
          MODELD_TRY(make_view(manifest));
          return change_rows([&](Index& index) { return index.extend_snapshot(manifest); });
        });
}

Result<void> FsckRun::check_snapshot_files() {
  for (const std::string& path : files_below(layout::k_snapshots, 2)) {
    MODELD_TRY(check_cancel());
    if (path.ends_with("/repo.json")) continue;
    if (!path.ends_with(".json")) {
      found("FS-29", path, "not one of ours: nothing here reads or removes it");
      continue;
    }
    MODELD_TRY(check_snapshot_manifest(path));
  }
  return {};
}

Result<bool> FsckRun::is_listed(const std::string& path) {
  auto index = state_.writer.lock();
  MODELD_ASSIGN(const auto list, index->list_snapshots());
  return std::any_of(list.begin(), list.end(), [&path](const SnapshotInfo& info) {
    return layout::snapshot_manifest(info.repo, info.commit) == path;
  });
}

/// A manifest that no row speaks of.
Result<void> FsckRun::check_snapshot_manifest(const std::string& path) {
  const auto text = state_.disk.read_text(path, k_max_manifest);
  const auto snapshot = text ? Snapshot::from_json(*text) : fail(text.error());
  if (!snapshot) {
    // Where there is a row it is written again from that; see check_snapshot_row.
    MODELD_ASSIGN(const bool listed, is_listed(path));
    if (listed) return {};
    found("FS-11", path, snapshot.error().message, "moved to quarantine/",
          [&] { return set_aside(path); });
    return {};
  }
  if (layout::snapshot_manifest(snapshot->repo, snapshot->commit) != path) {
    found("FS-15", path,
          fmt::format("it is the manifest of {}@{}", snapshot->repo.text, snapshot->commit.hex()),
          "moved to quarantine/", [&] { return set_aside(path); });
    return {};
  }
  {
    auto index = state_.writer.lock();
    MODELD_ASSIGN(const auto row, index->snapshot_info(snapshot->repo, snapshot->commit));
    if (row) return {};
  }
  const auto missing = std::find_if(snapshot->files.begin(), snapshot->files.end(),
                                    [&](const SnapshotFile& f) { return !has_blob(f.sha256); });
  if (missing != snapshot->files.end()) {
    found("FS-14", path, fmt::format("no row, and '{}' is not here", missing->path),
          fmt::format("modelctl pull {}@{} fetches what is missing", snapshot->repo.text,
                      snapshot->commit.hex()));
    return {};
  }
  found("FS-13", path, "no row; all its files are here", "row written", [&]() -> Result<void> {
    MODELD_TRY(make_view(*snapshot));
    return change_rows(
        [&](Index& index) { return index.put_snapshot(*snapshot, time_of(state_.disk, path)); });
  });
  return {};
}

// ---- variants

Result<void> FsckRun::check_variants() {
  for (const std::string& path : files_below(layout::k_variants, 0)) {
    MODELD_TRY(check_cancel());
    MODELD_TRY(check_variant_manifest(path));
  }
  std::vector<Variant> variants;
  {
    auto index = state_.writer.lock();
    MODELD_ASSIGN(variants, index->list_variants());
  }
  report_.variants = variants.size();
  for (const Variant& variant : variants) {
    MODELD_TRY(check_variant_row(variant));
  }
  return {};
}

Result<void> FsckRun::check_variant_row(const Variant& variant) {
  const std::string path = layout::variant_manifest(variant.key);
  const Fix rewrite = [&] { return write_manifest(path, variant.to_json()); };
  const auto text = state_.disk.read_text(path, k_max_manifest);
  if (!text) {
    found("FS-19", path, text.error().message, "written again from the index", rewrite);
  } else if (const auto parsed = Variant::from_json(*text); !parsed) {
    found("FS-20", path, parsed.error().message, "written again from the index", rewrite);
  } else if (*parsed != variant) {
    found("FS-21", path, "differs from the index", "written again from the index", rewrite);
  }
  const std::string place = layout::view(variant.repo, variant.commit) + '/' + variant.file_name;
  if (has_blob(variant.result) && !variant_is_shown(state_.disk, variant)) {
    found("FS-24", place, "missing, or another file", "linked",
          [&] { return link_variant(state_.disk, variant, state_.temporary("link")); });
  }
  return {};
}

Result<void> FsckRun::check_variant_manifest(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const auto key = name.ends_with(".json") ? Sha256Digest::parse(name.substr(0, name.size() - 5))
                                           : fail(Errc::malformed, "no digest");
  if (!key) {
    found("FS-29", path, "not one of ours: nothing here reads or removes it");
    return {};
  }
  {
    auto index = state_.writer.lock();
    MODELD_ASSIGN(const auto row, index->find_variant(*key));
    if (row) return {};
  }
  const auto text = state_.disk.read_text(path, k_max_manifest);
  const auto variant = text ? Variant::from_json(*text) : fail(text.error());
  const Fix aside = [&] { return set_aside(path); };
  if (!variant) {
    found("FS-20", path, variant.error().message, "moved to quarantine/", aside);
  } else if (variant->key != *key) {
    found("FS-15", path, "it is the manifest of " + variant->key.hex(), "moved to quarantine/",
          aside);
  } else if (!has_blob(variant->result)) {
    found("FS-23", path, fmt::format("no row, and blob {} is not here", variant->result.hex()),
          "moved to quarantine/", aside);
  } else {
    found("FS-22", path, "no row; its bytes are here", "row written", [&]() -> Result<void> {
      MODELD_TRY(link_variant(state_.disk, *variant, state_.temporary("link")));
      return change_rows([&](Index& index) { return index.put_variant(*variant); });
    });
  }
  return {};
}

// ---- views

std::vector<std::string> FsckRun::view_folders() {
  std::vector<std::string> folders{layout::k_views};
  for (int depth = 0; depth < 3; ++depth) {
    std::vector<std::string> below;
    for (const std::string& folder : folders) {
      for (const FolderEntry& entry : entries(folder)) {
        const std::string path = folder + '/' + entry.name;
        if (leads_to_folder(state_.disk, path, entry)) {
          below.push_back(path);
        } else {
          found("FS-17", path, "not a folder that we made");
        }
      }
    }
    folders = std::move(below);
  }
  return folders;
}

Result<void> FsckRun::check_views() {
  for (const std::string& path : view_folders()) {
    MODELD_TRY(check_cancel());
    const auto commit = GitOid::parse(path.substr(path.rfind('/') + 1));
    const auto repo =
        repo_of_folder(folder_of(path).substr(std::string(layout::k_views).size() + 1));
    if (!commit || !repo) {
      found("FS-17", path, "not a folder that we made");
      continue;
    }
    MODELD_TRY(check_view(*repo, *commit, path));
  }
  return {};
}

Result<void> FsckRun::check_view(const RepoId& repo, const GitOid& commit,
                                 const std::string& path) {
  std::set<std::string> expected;
  bool known = false;
  {
    auto index = state_.writer.lock();
    MODELD_ASSIGN(const auto snapshot, index->find_snapshot(repo, commit));
    if (snapshot) {
      known = true;
      for (const SnapshotFile& file : snapshot->files) {
        expected.insert(file.path);
      }
    }
    MODELD_ASSIGN(const auto variants, index->variants_in(repo, commit));
    for (const Variant& variant : variants) {
      expected.insert(variant.file_name);
    }
  }
  MODELD_ASSIGN(const auto files, list_tree(state_.disk, path));
  if (!known && expected.empty()) {
    const bool ours = std::all_of(files.begin(), files.end(), [&](const std::string& file) {
      return is_blob_link(state_.disk, path + '/' + file);
    });
    found("FS-18", path, "neither a snapshot nor a variant is here", ours ? "removed" : "",
          ours ? Fix([&] { return state_.disk.remove_tree(path); }) : Fix());
    return {};
  }
  for (const std::string& file : files) {
    if (expected.contains(file)) continue;
    const std::string place = path + '/' + file;
    const bool ours = is_blob_link(state_.disk, place);
    found("FS-17", place, ours ? "no longer part of it" : "a file that we did not make",
          ours ? "moved to quarantine/" : "", ours ? Fix([&] { return set_aside(place); }) : Fix());
  }
  return {};
}

} // namespace modeld::store
