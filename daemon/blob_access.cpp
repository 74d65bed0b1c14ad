// SPDX-License-Identifier: Apache-2.0
#include "daemon/blob_access.hpp"

#include "store/quarantine.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <map>

namespace modeld::daemon {
namespace {

// Whether a user may read repositories, each asked about once.
class Readable {
public:
  Readable(const store::Store& store, const Peer& peer) : store_(store), peer_(peer) {}
  Result<bool> operator()(const RepoId& repo) {
    const auto at = known_.find(repo);
    if (at != known_.end()) return at->second;
    MODELD_ASSIGN(const bool allowed, may_read(store_, repo, peer_));
    known_.emplace(repo, allowed);
    return allowed;
  }

private:
  const store::Store& store_;
  Peer peer_;
  std::map<RepoId, bool> known_;
};

enum class Belongs { to_nothing, to_closed, to_open };

// Looks only into snapshots that are closed to the peer, which are few, before it looks for an
// open owner.
Result<Belongs> belongs(const store::Store& store, const Sha256Digest& digest, const Peer& peer) {
  Readable readable(store, peer);
  Belongs found = Belongs::to_nothing;
  MODELD_ASSIGN(const auto variants, store.list_variants());
  for (const store::Variant& variant : variants) {
    if (variant.result != digest) continue;
    MODELD_ASSIGN(const bool open, readable(variant.repo));
    if (open) return Belongs::to_open;
    found = Belongs::to_closed;
  }
  MODELD_ASSIGN(const auto snapshots, store.list_snapshots());
  for (const bool want_open : {false, true}) {
    if (want_open && found == Belongs::to_nothing) break;
    for (const store::SnapshotInfo& info : snapshots) {
      MODELD_ASSIGN(const bool open, readable(info.repo));
      if (open != want_open) continue;
      MODELD_ASSIGN(const auto snapshot, store.find_snapshot(info.repo, info.commit));
      if (!snapshot) continue;
      const bool has =
          std::any_of(snapshot->files.begin(), snapshot->files.end(),
                      [&digest](const SnapshotFile& file) { return file.sha256 == digest; });
      if (has && open) return Belongs::to_open;
      if (has) found = Belongs::to_closed;
    }
  }
  return found;
}

} // namespace

Result<store::BlobInfo> require_blob(const store::Store& store, std::string_view text,
                                     const Peer& peer) {
  MODELD_ASSIGN(const auto digest, Sha256Digest::parse(text));
  MODELD_ASSIGN(const auto blob, store.find_blob(digest));
  if (blob) {
    if (peer.uid == 0) return *blob;
    MODELD_ASSIGN(const Belongs owner, belongs(store, digest, peer));
    if (owner != Belongs::to_closed) return *blob;
  }
  return fail(Errc::not_found, fmt::format("looking for blob '{}': there is none", digest.hex()));
}

Result<void> require_unchanged(Services& services, const store::BlobInfo& blob) {
  if (store::looks_unchanged(services.store, blob.sha256)) return {};
  JobRequest request;
  request.kind = "scrub";
  request.ref = "scrub";
  request.key = "scrub what was changed";
  request.detail = {{"changed_only", true}};
  request.by_client = false;
  MODELD_ASSIGN(const auto job, services.jobs.submit(std::move(request)));
  return fail(Errc::busy,
              fmt::format("opening blob {}: its file was changed, job '{}' looks whether it still "
                          "is what it was",
                          blob.sha256.hex(), job->id()),
              "try again in a moment");
}

Result<Descriptor> open_blob(const store::Store& store, const store::BlobInfo& blob) {
  const auto path = store.blob_path(blob.sha256);
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) return fail(from_errno(errno, fmt::format("opening '{}'", path.string())));
  return file;
}

} // namespace modeld::daemon
