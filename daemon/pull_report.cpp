// SPDX-License-Identifier: Apache-2.0
#include "daemon/pull_report.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <map>

namespace modeld::daemon {
namespace {

using boost::json::array;
using boost::json::object;

constexpr std::size_t k_kept_paths = 1000; // of a list in a job's record

void add(array& list, const std::string& path) {
  if (list.size() < k_kept_paths) list.emplace_back(path);
}

} // namespace

object choice_report(std::string_view why, const std::vector<ListedFile>& listing,
                     const std::vector<ListedFile>& chosen) {
  std::uint64_t bytes = 0;
  std::uint64_t left_bytes = 0;
  array left;
  for (const ListedFile& file : listing) {
    const auto at =
        std::lower_bound(chosen.begin(), chosen.end(), file.path,
                         [](const ListedFile& f, const std::string& p) { return f.path < p; });
    if (at != chosen.end() && at->path == file.path) {
      bytes += file.size;
    } else {
      left_bytes += file.size;
      add(left, file.path);
    }
  }
  return {{"why", why},
          {"files", chosen.size()},
          {"bytes", bytes},
          {"left", listing.size() - chosen.size()},
          {"left_bytes", left_bytes},
          {"left_paths", std::move(left)}};
}

object moved_report(std::string_view revision, const GitOid& from, const GitOid& to,
                    const std::vector<ListedFile>& before, const std::vector<ListedFile>& after) {
  array added;
  array removed;
  array changed;
  if (!before.empty()) {
    std::map<std::string_view, const ListedFile*> old;
    for (const ListedFile& file : before) {
      old[file.path] = &file;
    }
    for (const ListedFile& file : after) {
      const auto at = old.find(file.path);
      if (at == old.end()) {
        add(added, file.path);
        continue;
      }
      if (at->second->git_oid != file.git_oid) add(changed, file.path);
      old.erase(at);
    }
    for (const auto& [path, file] : old) {
      add(removed, file->path);
    }
  }
  return {{"revision", revision},
          {"from", from.hex()},
          {"to", to.hex()},
          {"added", std::move(added)},
          {"removed", std::move(removed)},
          {"changed", std::move(changed)}};
}

object renamed_report(const RepoId& from, const RepoId& to) {
  return {{"from", from.text}, {"to", to.text}};
}

} // namespace modeld::daemon
