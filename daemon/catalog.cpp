// SPDX-License-Identifier: Apache-2.0
#include "daemon/catalog.hpp"

#include "store/quarantine.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>

namespace modeld::daemon {
namespace {

constexpr std::size_t k_least_prefix = 7; // as git abbreviates

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// A repository that was renamed is listed under its new name.
Result<RepoId> own_name(const store::Store& store, const RepoId& repo, const GitOid& commit) {
  MODELD_ASSIGN(const auto direct, store.find_snapshot(repo, commit));
  if (direct) return repo;
  MODELD_ASSIGN(const auto refs, store.list_refs());
  for (const store::Ref& ref : refs) {
    if (ref.repo == repo) return ref.canonical;
  }
  return repo;
}

Result<std::optional<Place>> find_prefix(const store::Store& store, const ModelRef& ref) {
  if (ref.revision.size() < k_least_prefix || !is_hex(ref.revision)) return std::optional<Place>{};
  MODELD_ASSIGN(const auto commits, store.find_commits(ref.repo, ref.revision));
  if (commits.empty()) return std::optional<Place>{};
  if (commits.size() > 1) {
    return fail(Errc::conflict,
                fmt::format("reading '{}': {} commits start with '{}', for example {} and {}",
                            ref.str(), commits.size(), ref.revision, commits[0].hex(),
                            commits[1].hex()),
                "write more digits of the commit");
  }
  return std::optional<Place>(Place{ref.repo, commits.front()});
}

} // namespace

Result<std::optional<Place>> find_place(const store::Store& store, const ModelRef& ref) {
  if (is_commit(ref.revision)) {
    MODELD_ASSIGN(const auto commit, GitOid::parse(ref.revision));
    MODELD_ASSIGN(const auto repo, own_name(store, ref.repo, commit));
    return std::optional<Place>(Place{repo, commit});
  }
  MODELD_ASSIGN(const auto known, store.find_ref(ref.repo, ref.revision_or_main()));
  if (known) return std::optional<Place>(Place{known->canonical, known->commit});
  return find_prefix(store, ref);
}

Result<Snapshot> require_snapshot(const store::Store& store, const ModelRef& ref) {
  MODELD_ASSIGN(const auto place, find_place(store, ref));
  if (place) {
    MODELD_ASSIGN(auto snapshot, store.find_snapshot(place->repo, place->commit));
    if (snapshot) return *std::move(snapshot);
  }
  return fail(Errc::not_found, fmt::format("looking for '{}': no such snapshot is here", ref.str()),
              fmt::format("modelctl pull {} fetches it; modelctl ls shows what is here",
                          ModelRef{ref.repo, ref.revision, {}}.str()));
}

Result<std::optional<Snapshot>> find_sound(store::Store& store, const Place& place) {
  auto snapshot = store.find_snapshot(place.repo, place.commit);
  if (!snapshot && snapshot.error().code == Errc::corrupt) return std::optional<Snapshot>{};
  if (!snapshot) return fail(std::move(snapshot).error());
  if (!*snapshot) return std::optional<Snapshot>{};
  for (const SnapshotFile& file : (*snapshot)->files) {
    if (!store::looks_unchanged(store, file.sha256)) return std::optional<Snapshot>{};
  }
  return std::move(*snapshot);
}

bool is_admin(const Peer& peer) {
  return peer.uid == 0 || peer.uid == ::geteuid();
}

Result<bool> may_read(const store::Store& store, const RepoId& repo, const Peer& peer) {
  if (peer.uid == 0) return true;
  return store.may_read(repo, peer.uid);
}

Result<void> check_may_read(const store::Store& store, const RepoId& repo, const Peer& peer) {
  MODELD_ASSIGN(const bool allowed, may_read(store, repo, peer));
  if (allowed) return {};
  return fail(Errc::denied,
              fmt::format("reading '{}': it needs a token, and user {} has shown none that works",
                          repo.text, peer.uid),
              "set HF_TOKEN, or log in with the Hub's own tools, and ask again");
}

Result<Catalog> Catalog::open(const store::Store& store, const Peer& peer) {
  Catalog catalog(store, peer);
  MODELD_ASSIGN(catalog.gated_, store.gated_repos());
  MODELD_ASSIGN(auto refs, store.list_refs());
  for (store::Ref& ref : refs) {
    catalog.revisions_[{ref.canonical, ref.commit}].push_back(std::move(ref.revision));
  }
  return catalog;
}

Result<bool> Catalog::may_read(const RepoId& repo) const {
  if (gated_ && !std::binary_search(gated_->begin(), gated_->end(), repo)) return true;
  return daemon::may_read(store_, repo, peer_);
}

api::Snapshot Catalog::view(const store::SnapshotInfo& info) const {
  api::Snapshot view;
  view.repo = info.repo.text;
  view.commit = info.commit.hex();
  view.path = store_.snapshot_folder(info.repo, info.commit).string();
  view.files = info.files;
  view.bytes = info.bytes;
  view.added = info.added;
  view.used = info.used;
  view.damaged = info.damaged;
  view.absent = info.absent;
  view.absent_bytes = info.absent_bytes;
  const auto revisions = revisions_.find({info.repo, info.commit});
  if (revisions != revisions_.end()) view.revisions = revisions->second;
  return view;
}

Result<api::Snapshot> snapshot_view(const store::Store& store, const Snapshot& snapshot) {
  MODELD_ASSIGN(const auto info, store.snapshot_info(snapshot.repo, snapshot.commit));
  if (!info) {
    return fail(Errc::not_found, fmt::format("looking for '{}@{}': no such snapshot is here",
                                             snapshot.repo.text, snapshot.commit.hex()));
  }
  MODELD_ASSIGN(const auto catalog, Catalog::open(store, {}));
  return catalog.view(*info);
}

api::Variant variant_view(const store::Store& store, const store::Variant& variant) {
  api::Variant view;
  view.key = variant.key.hex();
  view.repo = variant.repo.text;
  view.commit = variant.commit.hex();
  view.recipe = variant.recipe;
  view.path = store.variant_path(variant).string();
  view.sha256 = variant.result.hex();
  view.size = variant.size;
  view.added = variant.added;
  view.build_ms = variant.build_ms;
  return view;
}

api::Variant file_view(const store::Store& store, const Snapshot& snapshot,
                       const SnapshotFile& file) {
  api::Variant view;
  view.repo = snapshot.repo.text;
  view.commit = snapshot.commit.hex();
  view.path = (store.snapshot_folder(snapshot.repo, snapshot.commit) / file.path).string();
  view.sha256 = file.sha256.hex();
  view.size = file.size;
  return view;
}

} // namespace modeld::daemon
