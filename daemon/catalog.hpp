// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/http.hpp"
#include "schema/api.hpp"
#include "schema/model_ref.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// What the store has, as the API shows it, and who may see it.

namespace modeld::daemon {

/// A repository under its own name, at one commit.
struct Place {
  RepoId repo;
  GitOid commit;
};

/// What a ref means without asking the Hub: a commit, a branch or tag that was looked up before, or
/// the unique beginning of a commit that is here. Nothing where only the Hub can know; conflict
/// where a beginning fits several commits.
Result<std::optional<Place>> find_place(const store::Store& store, const ModelRef& ref);

/// The same for what must be here. not_found says how to get it.
Result<Snapshot> require_snapshot(const store::Store& store, const ModelRef& ref);

/// A snapshot whose files are all as they were when they were proved, by size and time; nothing
/// where it is not here, or damaged, or changed (then a job looks closer).
Result<std::optional<Snapshot>> find_sound(store::Store& store, const Place& place);

/// Root, and whoever runs the daemon.
bool is_admin(const Peer& peer);
/// Content that needed a token is only for those who showed one (design rule 5).
Result<void> check_may_read(const store::Store& store, const RepoId& repo, const Peer& peer);
Result<bool> may_read(const store::Store& store, const RepoId& repo, const Peer& peer);

/// For lists: what every entry needs is looked up once, so that ten thousand cost no more each than
/// one. Of one moment; does not outlive the store.
class Catalog {
public:
  static Result<Catalog> open(const store::Store& store, const Peer& peer);

  Result<bool> may_read(const RepoId& repo) const;
  api::Snapshot view(const store::SnapshotInfo& info) const;

private:
  Catalog(const store::Store& store, const Peer& peer) : store_(store), peer_(peer) {}

  const store::Store& store_;
  Peer peer_;
  std::optional<std::vector<RepoId>> gated_; ///< nothing: each has to be asked for
  std::map<std::pair<RepoId, GitOid>, std::vector<std::string>> revisions_;
};

Result<api::Snapshot> snapshot_view(const store::Store& store, const Snapshot& snapshot);
api::Variant variant_view(const store::Store& store, const store::Variant& variant);
/// A file of a snapshot, as what a runtime maps.
api::Variant file_view(const store::Store& store, const Snapshot& snapshot,
                       const SnapshotFile& file);

} // namespace modeld::daemon
