// SPDX-License-Identifier: Apache-2.0
#include "store/fsck_run.hpp"
#include "store/layout.hpp"
#include "store/manifests.hpp"
#include "store/pieces.hpp"
#include "store/standing.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>

// Folders that are there and can be listed, and what lies in them without being ours.

namespace modeld::store {
namespace {

constexpr std::string_view k_foreign = "not one of ours: nothing here reads or removes it";

/// Where records are: how many folders deep, and how their names end.
struct Place {
  const char* folder;
  int depth;
  std::string_view suffix;
};
constexpr std::array k_places{
    Place{layout::k_snapshots, 2, {}},     Place{layout::k_variants, 0, {}},
    Place{layout::k_pins, 0, ".json"},     Place{layout::k_links, 0, ".json"},
    Place{layout::k_standing, 0, ".json"}, Place{layout::k_pieces, 1, {}},
};

constexpr std::array<std::string_view, 17> k_root{"modeld.id",
                                                  "lock",
                                                  "index.sqlite",
                                                  "index.sqlite-wal",
                                                  "index.sqlite-shm",
                                                  "index.sqlite.old",
                                                  "reserve",
                                                  "blobs",
                                                  "snapshots",
                                                  "variants",
                                                  "pieces",
                                                  "pins",
                                                  "links",
                                                  "views",
                                                  "standing",
                                                  "tmp",
                                                  "quarantine"};

bool is_known(const FolderEntry& entry) {
  return entry.name == "lost+found" ||
         std::find(k_root.begin(), k_root.end(), entry.name) != k_root.end();
}

/// Made when they are needed first.
bool may_be_missing(std::string_view folder) {
  return folder == layout::k_links || folder == layout::k_standing || folder == layout::k_pieces;
}

} // namespace

std::vector<FolderEntry> FsckRun::entries(const std::string& path) {
  auto list = state_.disk.list(path);
  if (list) return *std::move(list);
  if (!bad_folders_.insert(path).second) return {};
  const int error = list.error().sys;
  Fix fix;
  std::string remedy =
      "it must be mounted, or its owner must let user " + std::to_string(geteuid()) + " read it";
  if (error == ENOENT) {
    remedy = "made";
    fix = [&] { return state_.disk.make_folders(path); };
  } else if (error == ENOTDIR) {
    remedy = "moved to quarantine/, and made";
    fix = [&]() -> Result<void> {
      MODELD_TRY(set_aside(path));
      return state_.disk.make_folders(path);
    };
  } else if (error == EACCES) {
    remedy = "mode set";
    fix = [&] { return state_.disk.set_mode(path, state_.options.folder_mode); };
  }
  found("FS-38", path, list.error().message, remedy, fix);
  list = state_.disk.list(path);
  return list ? *std::move(list) : std::vector<FolderEntry>{};
}

std::vector<std::string> FsckRun::files_below(const std::string& top, int depth) {
  std::vector<std::string> paths;
  if (may_be_missing(top) && !state_.disk.exists(top)) return paths;
  for (const FolderEntry& entry : entries(top)) {
    const std::string path = top + '/' + entry.name;
    const bool is_folder = leads_to_folder(state_.disk, path, entry);
    if (depth == 0 && !is_folder) paths.push_back(path);
    if (depth == 0 || !is_folder) continue;
    auto below = files_below(path, depth - 1);
    paths.insert(paths.end(), std::make_move_iterator(below.begin()),
                 std::make_move_iterator(below.end()));
  }
  return paths;
}

/// A folder in which nothing can be made stops pulls, builds and repairs.
void FsckRun::check_writable(const std::string& path) {
  entries(path);
  if (bad_folders_.contains(path)) return;
  if (faccessat(state_.disk.fd(), path.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return;
  struct stat info {};
  if (errno != EACCES || fstatat(state_.disk.fd(), path.c_str(), &info, 0) != 0) return;
  bad_folders_.insert(path);
  found("FS-38", path,
        fmt::format("user {} cannot write to it: mode {:04o}, it belongs to user {}", geteuid(),
                    info.st_mode & 07777, info.st_uid),
        "mode set", [&] { return state_.disk.set_mode(path, state_.options.folder_mode); });
}

void FsckRun::check_folder(const std::string& path, int depth, std::string_view suffix) {
  for (const FolderEntry& entry : entries(path)) {
    const std::string inside = path + '/' + entry.name;
    const bool is_folder = leads_to_folder(state_.disk, inside, entry);
    if (depth > 0 && is_folder) {
      check_folder(inside, depth - 1, suffix);
    } else if (depth > 0 || !entry.name.ends_with(suffix) ||
               (is_folder && !entry.name.ends_with(".json"))) {
      found("FS-29", inside, std::string(k_foreign));
    }
  }
}

void FsckRun::check_folders() {
  for (const FolderEntry& entry : entries(".")) {
    if (!is_known(entry)) found("FS-29", entry.name, std::string(k_foreign));
  }
  for (const FolderEntry& entry : entries("blobs")) {
    if (entry.name != "sha256") found("FS-29", "blobs/" + entry.name, std::string(k_foreign));
  }
  for (const Place& place : k_places) {
    if (may_be_missing(place.folder) && !state_.disk.exists(place.folder)) continue;
    check_folder(place.folder, place.depth, place.suffix);
  }
  for (const char* folder : {".", "blobs", layout::k_blobs, layout::k_snapshots, layout::k_variants,
                             layout::k_pins, layout::k_views, layout::k_tmp}) {
    check_writable(folder);
  }
  for (const char* folder :
       {layout::k_links, layout::k_standing, layout::k_pieces, layout::k_quarantine}) {
    if (state_.disk.exists(folder)) check_writable(folder);
  }
  check_pieces();
}

/// They only make a repair cheaper, so what is wrong with them is forgotten.
void FsckRun::check_pieces() {
  for (const std::string& path : files_below(layout::k_pieces, 1)) {
    const auto digest = Sha256Digest::parse(path.substr(path.rfind('/') + 1));
    std::string wrong;
    if (!digest || layout::pieces(*digest) != path) {
      wrong = "not a blob's name";
    } else if (const auto states = read_pieces(state_.disk, *digest); !states) {
      wrong = states.error().message;
    } else {
      auto index = state_.writer.lock();
      const auto row = index->find_blob(*digest);
      if (row && !*row) wrong = "there is no such blob";
      if (row && *row && states->size() != (*row)->info.size / k_piece_bytes) {
        wrong = fmt::format("it has {} pieces, its blob {}", states->size(),
                            (*row)->info.size / k_piece_bytes);
      }
    }
    if (wrong.empty()) continue;
    found("FS-37", path, wrong, "moved to quarantine/", [&] { return set_aside(path); });
  }
}

void FsckRun::check_standing() {
  for (const std::string& path : files_below(layout::k_standing, 0)) {
    if (!path.ends_with(".json")) continue;
    const auto text = state_.disk.read_text(path, k_max_manifest);
    const auto link = text ? StandingLink::from_json(*text) : fail(text.error());
    const bool good = link && path == fmt::format("{}/{}.json", layout::k_standing, link->id);
    if (good) continue;
    found("FS-39", path, link ? "it is the record of " + link->id : link.error().message,
          "moved to quarantine/; modelctl link --all makes it again",
          [&] { return set_aside(path); });
  }
}

} // namespace modeld::store
