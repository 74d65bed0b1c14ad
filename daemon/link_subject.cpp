// SPDX-License-Identifier: Apache-2.0
#include "daemon/link_subject.hpp"

#include "daemon/blob_access.hpp"
#include "daemon/selection.hpp"
#include "daemon/snapshot_worker.hpp"
#include "daemon/variant_work.hpp"
#include "daemon/worker_process.hpp"
#include "fetch/shard_name.hpp"
#include "schema/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace modeld::daemon {
namespace {

using store::ShowSubject;

// Branches and tags that mean the place.
Result<std::vector<std::string>> revisions_of(const store::Store& store, const Place& place) {
  MODELD_ASSIGN(const auto refs, store.list_refs());
  std::vector<std::string> names;
  for (const store::Ref& ref : refs) {
    if (ref.canonical == place.repo && ref.commit == place.commit) names.push_back(ref.revision);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<store::GgufFacts> facts_of(Services& services, Job& job, const std::string& path,
                                  const Sha256Digest& blob, std::uint64_t size) {
  const Snapshot one{RepoId{"facts"}, {}, {{path, size, {}, blob}}};
  WorkerRequest request = snapshot_request(services, one);
  request.task = WorkerRequest::Task::facts;
  MODELD_ASSIGN(const auto text, read_from_worker(
                                     request,
                                     [&](std::size_t index) {
                                       return open_snapshot_file(services.store, one, index);
                                     },
                                     job.progress()));
  MODELD_ASSIGN(const auto parsed, parse_json(text, "a worker's answer"));
  if (!parsed.is_object()) return fail(Errc::malformed, "reading a worker's answer: no object");
  const auto& answer = parsed.get_object();
  store::GgufFacts facts;
  MODELD_ASSIGN(facts.architecture, json_string(answer, "architecture"));
  MODELD_ASSIGN(facts.parameters, json_uint(answer, "parameters"));
  MODELD_ASSIGN(facts.file_type, json_string(answer, "file_type"));
  MODELD_ASSIGN(facts.chat_template, json_string(answer, "chat_template"));
  MODELD_ASSIGN(facts.license, json_string(answer, "license"));
  return facts;
}

} // namespace

Result<ShowSubject> whole_subject(const store::Store& store, const Place& place) {
  ShowSubject subject;
  MODELD_ASSIGN(auto snapshot, store.find_snapshot(place.repo, place.commit));
  subject.snapshot = snapshot ? *std::move(snapshot) : Snapshot{place.repo, place.commit, {}};
  subject.listing = subject.snapshot.listing();
  MODELD_ASSIGN(auto variants, store.list_variants());
  for (store::Variant& variant : variants) {
    if (variant.repo != place.repo || variant.commit != place.commit) continue;
    MODELD_ASSIGN(const auto good, store.find_variant(variant.key)); // not where it is damaged
    if (good) subject.variants.push_back(std::move(variant));
  }
  MODELD_ASSIGN(subject.revisions, revisions_of(store, place));
  return subject;
}

Result<std::optional<ShowSubject>> selected_subject(store::Store& store, const Place& place,
                                                    std::string_view selector) {
  MODELD_ASSIGN(const auto selection, parse_selection(selector, {}));
  MODELD_ASSIGN(auto subject, whole_subject(store, place));
  MODELD_ASSIGN(const auto found, find_selected(store, place, selection));
  if (!found) return std::optional<ShowSubject>{};
  if (!found->key.empty()) {
    std::erase_if(subject.variants,
                  [&](const store::Variant& variant) { return variant.key.hex() != found->key; });
    subject.snapshot.files.clear();
    return std::optional(std::move(subject));
  }
  MODELD_ASSIGN(const auto choice, choose_files(subject.snapshot, selection));
  std::set<std::string> wanted;
  for (const ListedFile& part : choice ? choice->parts : std::vector<ListedFile>{}) {
    wanted.insert(part.path);
  }
  subject.variants.clear();
  std::erase_if(subject.snapshot.files,
                [&](const SnapshotFile& file) { return !wanted.contains(file.path); });
  return std::optional(std::move(subject));
}

Result<std::vector<Place>> places_of(const store::Store& store, const Peer& peer) {
  std::set<std::pair<RepoId, GitOid>> all;
  MODELD_ASSIGN(const auto snapshots, store.list_snapshots());
  for (const store::SnapshotInfo& info : snapshots) {
    if (!info.damaged) all.emplace(info.repo, info.commit);
  }
  MODELD_ASSIGN(const auto variants, store.list_variants());
  for (const store::Variant& variant : variants) {
    all.emplace(variant.repo, variant.commit);
  }
  std::vector<Place> places;
  for (const auto& [repo, commit] : all) {
    MODELD_ASSIGN(const bool allowed, may_read(store, repo, peer));
    if (allowed) places.push_back({repo, commit});
  }
  return places;
}

Result<void> add_facts(Services& services, Job& job, ShowSubject& subject) {
  const auto add = [&](const std::string& path, const Sha256Digest& blob,
                       std::uint64_t size) -> Result<void> {
    const bool part = fetch::parse_shard_name(path).has_value();
    if (!path.ends_with(".gguf") || part) return {};
    MODELD_ASSIGN(auto facts, facts_of(services, job, path, blob, size));
    subject.facts.emplace_back(path, std::move(facts));
    return {};
  };
  for (const SnapshotFile& file : subject.snapshot.files) {
    MODELD_TRY(add(file.path, file.sha256, file.size));
  }
  for (const store::Variant& variant : subject.variants) {
    if (subject.snapshot.find(variant.file_name) != nullptr) continue;
    MODELD_TRY(add(variant.file_name, variant.result, variant.size));
  }
  return {};
}

} // namespace modeld::daemon
