// SPDX-License-Identifier: Apache-2.0
#include "tests/hub/repositories.hpp"

#include <algorithm>

namespace modeld::test {
namespace {

constexpr std::size_t k_shortest_commit = 7;

} // namespace

std::shared_ptr<const HubCommit> HubRepository::find(std::string_view revision) const {
  std::string name(revision == "HEAD" ? "main" : revision);
  const auto by_id = [this](const std::string& hex) { return commits.at(hex); };
  if (auto it = branches.find(name); it != branches.end()) return by_id(it->second);
  if (auto it = tags.find(name); it != tags.end()) return by_id(it->second);
  if (auto it = other_refs.find(name); it != other_refs.end()) return by_id(it->second);
  if (name.starts_with("refs/heads/")) return find(name.substr(11));
  if (name.starts_with("refs/tags/")) return find(name.substr(10));
  if (name.size() < k_shortest_commit) return nullptr;
  const auto it = commits.lower_bound(name);
  if (it == commits.end() || !it->first.starts_with(name)) return nullptr;
  const auto next = std::next(it);
  const bool unique = next == commits.end() || !next->first.starts_with(name);
  return unique ? it->second : nullptr;
}

std::vector<std::string> HubRepository::ref_names() const {
  std::vector<std::string> names{"HEAD"};
  for (const auto& [name, commit] : branches) {
    names.push_back(name);
    names.push_back("refs/heads/" + name);
  }
  for (const auto& [name, commit] : tags) {
    names.push_back(name);
    names.push_back("refs/tags/" + name);
  }
  for (const auto& [name, commit] : other_refs) {
    names.push_back(name);
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  return names;
}

void Repositories::add(const std::string& id, std::string_view branch,
                       std::shared_ptr<const HubCommit> commit) {
  HubRepository& repository = repositories_[id];
  repository.id = id;
  const std::string hex = commit->id().hex();
  repository.commits[hex] = std::move(commit);
  auto& names = branch.starts_with("refs/") ? repository.other_refs : repository.branches;
  names[std::string(branch)] = hex;
}

HubRepository* Repositories::find(const std::string& id) {
  const auto it = repositories_.find(id);
  return it == repositories_.end() ? nullptr : &it->second;
}

const HubRepository* Repositories::find(const std::string& id) const {
  const auto it = repositories_.find(id);
  return it == repositories_.end() ? nullptr : &it->second;
}

std::optional<std::string> Repositories::new_name(const std::string& id) const {
  const auto it = renamed_.find(id);
  return it == renamed_.end() ? std::nullopt : std::optional(it->second);
}

bool Repositories::knows(std::string_view token) const {
  return tokens_.empty() || tokens_.count(std::string(token)) > 0;
}

bool Repositories::opens(std::string_view token, const std::string& id) const {
  const auto it = tokens_.find(std::string(token));
  return it != tokens_.end() && it->second.count(id) > 0;
}

} // namespace modeld::test
