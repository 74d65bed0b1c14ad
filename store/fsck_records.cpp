// SPDX-License-Identifier: Apache-2.0
#include "store/fsck_run.hpp"
#include "store/layout.hpp"
#include "store/manifests.hpp"

#include <algorithm>
#include <mutex>

// Records that an index can still write, before it is given up for one made out of the records.

namespace modeld::store {
namespace {

/// Why a record cannot be used; empty where it can.
template <class Parse>
std::string problem_of(const Disk& disk, const std::string& path, Parse parse) {
  const auto text = disk.read_text(path, k_max_manifest);
  if (!text) return text.error().message;
  const auto parsed = parse(*text);
  return parsed ? std::string() : parsed.error().message;
}

} // namespace

Result<FsckReport> save_records(Store& store) {
  const FsckOptions options{true, false};
  return FsckRun(store, options, nullptr).save_records();
}

void FsckRun::save_record(std::string_view id, const std::string& path, const std::string& problem,
                          const std::string& text, std::optional<UnixTime> time) {
  if (problem.empty()) return;
  found(id, path, problem, "written again from the old index", [&]() -> Result<void> {
    MODELD_TRY(write_manifest(path, text));
    return time ? state_.disk.set_time(path, *time) : Result<void>();
  });
}

Result<FsckReport> FsckRun::save_records() {
  const std::lock_guard manifests(state_.manifests);
  std::vector<std::pair<Snapshot, UnixTime>> snapshots;
  std::vector<Variant> variants;
  std::vector<Pin> pins;
  std::vector<RepoRow> repos;
  {
    auto index = state_.writer.lock();
    MODELD_ASSIGN(const auto list, index->list_snapshots());
    for (const SnapshotInfo& info : list) {
      MODELD_ASSIGN(auto snapshot, index->find_snapshot(info.repo, info.commit));
      // A row without files, or with a name that none of ours has, is no snapshot.
      const bool sound =
          snapshot && !snapshot->files.empty() && Snapshot::from_json(snapshot->to_json());
      if (sound) snapshots.emplace_back(*std::move(snapshot), info.added);
    }
    MODELD_ASSIGN(variants, index->list_variants());
    MODELD_ASSIGN(pins, index->list_pins());
    MODELD_ASSIGN(const auto names, index->list_repos());
    for (const RepoId& name : names) {
      MODELD_ASSIGN(auto repo, index->find_repo(name));
      if (repo && RepoId::parse(repo->repo.text)) repos.push_back(*std::move(repo));
    }
  }
  for (const auto& [snapshot, added] : snapshots) {
    const std::string path = layout::snapshot_manifest(snapshot.repo, snapshot.commit);
    save_record("FS-10", path, problem_of(state_.disk, path, Snapshot::from_json),
                snapshot.to_json(), added);
  }
  for (const Variant& variant : variants) {
    const std::string path = layout::variant_manifest(variant.key);
    save_record("FS-19", path, problem_of(state_.disk, path, Variant::from_json),
                variant.to_json());
  }
  for (const RepoRow& repo : repos) {
    const std::string path = layout::repo_manifest(repo.repo);
    save_record("FS-25", path, problem_of(state_.disk, path, RepoRow::from_json), repo.to_json());
  }
  for (const Pin& pin : pins) {
    if (!check_name(pin.name, "pin")) continue;
    const std::string path = layout::pin_manifest(pin.name);
    save_record("FS-27", path, problem_of(state_.disk, path, pin_from_json), pin_to_json(pin));
  }
  return std::move(report_);
}

} // namespace modeld::store
