// SPDX-License-Identifier: Apache-2.0
#include "store/fsck.hpp"

#include "store/fsck_run.hpp"
#include "store/layout.hpp"
#include "store/manifests.hpp"

#include <fmt/format.h>

#include <array>

namespace modeld::store {
namespace {

constexpr std::array k_rules{
    FsckRule{"FS-01", "a blob that something names is lost"},
    FsckRule{"FS-02", "a row of a blob that nothing names has no file"},
    FsckRule{"FS-03", "a blob's file has no row"},
    FsckRule{"FS-04", "a blob has the wrong size"},
    FsckRule{"FS-05", "a blob's bytes are not those of its name"},
    FsckRule{"FS-06", "a blob's mode is not as configured"},
    FsckRule{"FS-07", "a blob's time changed, its bytes did not"},
    FsckRule{"FS-08", "a name under blobs/ is no digest, or lies in the wrong folder"},
    FsckRule{"FS-09", "a blob is a link, a folder or a device"},
    FsckRule{"FS-10", "a snapshot has no manifest"},
    FsckRule{"FS-11", "a snapshot's manifest cannot be read"},
    FsckRule{"FS-12", "a snapshot's manifest and rows differ"},
    FsckRule{"FS-13", "a manifest of a complete snapshot has no row"},
    FsckRule{"FS-14", "a manifest without row names blobs that are not here"},
    FsckRule{"FS-15", "a manifest lies under another name than its own"},
    FsckRule{"FS-16", "a snapshot's view lacks files or shows others"},
    FsckRule{"FS-17", "a view has a file that we did not make"},
    FsckRule{"FS-18", "a view shows neither a snapshot nor a variant"},
    FsckRule{"FS-19", "a variant has no manifest"},
    FsckRule{"FS-20", "a variant's manifest cannot be read"},
    FsckRule{"FS-21", "a variant's manifest and row differ"},
    FsckRule{"FS-22", "a manifest of a variant that is here has no row"},
    FsckRule{"FS-23", "a manifest without row names a variant whose bytes are not here"},
    FsckRule{"FS-24", "a variant is not shown in its view"},
    FsckRule{"FS-25", "a repository's record is missing, unreadable or differs"},
    FsckRule{"FS-26", "a repository's record has no row"},
    FsckRule{"FS-27", "a pin's record is missing, unreadable or differs"},
    FsckRule{"FS-28", "a pin's record has no row"},
    FsckRule{"FS-29", "a foreign file lies among the records"},
    FsckRule{"FS-30", "the index fails its own checks"},
    FsckRule{"FS-31", "a snapshot's sums in the index are wrong"},
    FsckRule{"FS-32", "the marker is missing or another store's"},
    FsckRule{"FS-33", "a file shown to another program is gone, leads nowhere or was changed"},
    FsckRule{"FS-34", "the record of a link is missing, unreadable or has no row"},
    FsckRule{"FS-35", "a blob is damaged or lost, and waits for a repair"},
    FsckRule{"FS-36", "a blob cannot be read"},
    FsckRule{"FS-37", "what helps to repair a blob is unreadable, wrong, or of no blob"},
    FsckRule{"FS-38", "a folder of the store is missing, unreadable, or something else"},
    FsckRule{"FS-39", "the record of a standing link cannot be read"},
    FsckRule{"FS-40", "the space that is kept for a full disk is missing or too small"},
    FsckRule{"FS-41", "a file or a folder has another group or mode than configured"},
};

} // namespace

std::vector<FsckRule> fsck_rules() {
  return {k_rules.begin(), k_rules.end()};
}

Result<FsckReport> fsck(Store& store, const FsckOptions& options, Progress* progress) {
  return FsckRun(store, options, progress).run();
}

Result<FsckReport> FsckRun::run() {
  // Manifests and their rows change together under this; a pull waits for the end of the check.
  const std::lock_guard manifests(state_.manifests);
  const Changed changed(state_);
  MODELD_TRY(check_root());
  check_folders();
  MODELD_TRY(check_blobs());
  MODELD_TRY(check_snapshots());
  MODELD_TRY(check_variants());
  MODELD_TRY(check_views());
  MODELD_TRY(check_names());
  MODELD_TRY(check_links());
  check_standing();
  MODELD_TRY(check_access());
  return std::move(report_);
}

void FsckRun::found(std::string_view id, std::string path, std::string message, std::string remedy,
                    const Fix& fix) {
  FsckFinding finding{id, std::move(path), std::move(message), std::move(remedy), false};
  if (options_.repair && fix) {
    const auto done = fix();
    finding.repaired = done.has_value();
    if (!done) finding.remedy += fmt::format(" (failed: {})", done.error().message);
  }
  report_.findings.push_back(std::move(finding));
}

Result<void> FsckRun::check_cancel() const {
  if (progress_ == nullptr || !progress_->cancel) return {};
  return fail(Errc::cancelled, "checking the store: cancelled");
}

Result<void> FsckRun::set_aside(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const FolderEntry quarantine{layout::k_quarantine, false, true};
  if (state_.disk.exists(layout::k_quarantine) &&
      !leads_to_folder(state_.disk, layout::k_quarantine, quarantine)) {
    const std::string temporary = state_.temporary("aside");
    MODELD_TRY(state_.disk.rename(layout::k_quarantine, temporary));
    MODELD_TRY(state_.disk.make_folders(layout::k_quarantine));
    MODELD_TRY(state_.disk.rename(
        temporary, fmt::format("{0}/{0}.{1}", layout::k_quarantine, random_id().substr(0, 8))));
    if (path == layout::k_quarantine) return {};
  }
  MODELD_TRY(state_.disk.make_folders(layout::k_quarantine));
  MODELD_TRY(state_.disk.rename(
      path, fmt::format("{}/{}.{}", layout::k_quarantine, name, random_id().substr(0, 8))));
  return state_.disk.sync_folder(folder_of(path));
}

Result<void> FsckRun::write_manifest(const std::string& path, const std::string& text) {
  // What is no folder above it, or no file in its place, cannot be replaced and may hold something.
  for (auto slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    const FolderEntry entry{folder, false, true};
    if (state_.disk.exists(folder) && !leads_to_folder(state_.disk, folder, entry)) {
      MODELD_TRY(set_aside(folder));
    }
  }
  if (state_.disk.exists(path) && !state_.disk.size_of(path)) MODELD_TRY(set_aside(path));
  MODELD_TRY(state_.disk.make_folders(folder_of(path)));
  return state_.disk.replace_file(path, text, 0644);
}

Result<void> FsckRun::change_rows(const std::function<Result<void>(Index&)>& change) {
  auto index = state_.writer.lock();
  MODELD_ASSIGN(auto txn, index->begin());
  MODELD_TRY(change(*index));
  return txn.commit();
}

} // namespace modeld::store
