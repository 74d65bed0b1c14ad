-- The index of a store: what the manifests under snapshots/, variants/, pins/ and links/ say, in a form that
-- answers in microseconds. It holds nothing that those files could not rebuild, except jobs, leases,
-- times of use and who pays. user_version 4. Every statement that uses it is in store/index*.cpp.
-- Digests and git ids are raw bytes; times are seconds since 1970, mtime_ns nanoseconds.

CREATE TABLE written_by (version TEXT NOT NULL);

CREATE TABLE blobs (
  digest BLOB PRIMARY KEY CHECK (length(digest) = 32),
  size INTEGER NOT NULL CHECK (size >= 0),
  git_oid BLOB CHECK (git_oid IS NULL OR length(git_oid) = 20),
  mtime_ns INTEGER NOT NULL,                                     -- a change tells of a writer
  damaged INTEGER NOT NULL DEFAULT 0                             -- 1: in quarantine, not served
) WITHOUT ROWID;
CREATE INDEX blobs_by_git_oid ON blobs (git_oid) WHERE git_oid IS NOT NULL;

CREATE TABLE uses (
  digest BLOB PRIMARY KEY REFERENCES blobs ON DELETE CASCADE,
  used INTEGER NOT NULL
) WITHOUT ROWID;

-- What is known of a repository's name. canonical: where the Hub redirected it to, or itself.
CREATE TABLE repos (
  repo TEXT PRIMARY KEY,
  canonical TEXT NOT NULL,
  gated INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE repo_users (
  repo TEXT NOT NULL REFERENCES repos ON DELETE CASCADE,
  uid INTEGER NOT NULL,
  PRIMARY KEY (repo, uid)
) WITHOUT ROWID;
CREATE TABLE refs (
  repo TEXT NOT NULL REFERENCES repos ON DELETE CASCADE,
  revision TEXT NOT NULL,
  commit_id BLOB NOT NULL CHECK (length(commit_id) = 20),
  checked INTEGER NOT NULL,
  PRIMARY KEY (repo, revision)
) WITHOUT ROWID;

-- files, bytes, used and damaged repeat what snapshot_files and blobs say: a list of ten thousand
-- snapshots must not visit every file.
CREATE TABLE snapshots (
  repo TEXT NOT NULL,
  commit_id BLOB NOT NULL CHECK (length(commit_id) = 20),
  files INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  added INTEGER NOT NULL,
  used INTEGER NOT NULL DEFAULT 0,
  damaged INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (repo, commit_id)
) WITHOUT ROWID;
CREATE TABLE snapshot_files (
  repo TEXT NOT NULL,
  commit_id BLOB NOT NULL,
  path TEXT NOT NULL,
  size INTEGER NOT NULL,
  git_oid BLOB NOT NULL CHECK (length(git_oid) = 20),            -- as the Hub lists it
  digest BLOB NOT NULL REFERENCES blobs,
  PRIMARY KEY (repo, commit_id, path),
  FOREIGN KEY (repo, commit_id) REFERENCES snapshots ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX snapshot_files_by_digest ON snapshot_files (digest);
-- What the Hub lists of a snapshot and nobody asked for.
CREATE TABLE absent_files (
  repo TEXT NOT NULL,
  commit_id BLOB NOT NULL,
  path TEXT NOT NULL,
  size INTEGER NOT NULL CHECK (size >= 0),
  git_oid BLOB NOT NULL CHECK (length(git_oid) = 20),
  digest BLOB CHECK (digest IS NULL OR length(digest) = 32),     -- where the Hub lists it
  PRIMARY KEY (repo, commit_id, path),
  FOREIGN KEY (repo, commit_id) REFERENCES snapshots ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE variants (
  key BLOB PRIMARY KEY CHECK (length(key) = 32),
  repo TEXT NOT NULL,
  commit_id BLOB NOT NULL CHECK (length(commit_id) = 20),
  recipe TEXT NOT NULL,
  converter TEXT NOT NULL,
  imatrix BLOB CHECK (imatrix IS NULL OR length(imatrix) = 32),
  result BLOB NOT NULL REFERENCES blobs,
  size INTEGER NOT NULL,
  file_name TEXT NOT NULL,
  build_ms INTEGER NOT NULL,
  added INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX variants_by_ask ON variants (repo, commit_id, recipe, converter);
CREATE INDEX variants_by_result ON variants (result);
CREATE TABLE variant_sources (
  key BLOB NOT NULL REFERENCES variants ON DELETE CASCADE,
  path TEXT NOT NULL,
  digest BLOB NOT NULL CHECK (length(digest) = 32),
  PRIMARY KEY (key, path)
) WITHOUT ROWID;

-- Who pays for a blob that a snapshot or a variant names: the user whose request named it first.
-- Without a row it is free: it was here before there were quotas, or came in by itself.
CREATE TABLE charges (
  digest BLOB PRIMARY KEY REFERENCES blobs ON DELETE CASCADE,
  uid INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX charges_by_uid ON charges (uid);
CREATE TRIGGER uncharge_file AFTER DELETE ON snapshot_files
WHEN NOT EXISTS (SELECT 1 FROM snapshot_files WHERE digest = OLD.digest)
  AND NOT EXISTS (SELECT 1 FROM variants WHERE result = OLD.digest)
BEGIN DELETE FROM charges WHERE digest = OLD.digest; END;
CREATE TRIGGER uncharge_variant AFTER DELETE ON variants
WHEN NOT EXISTS (SELECT 1 FROM snapshot_files WHERE digest = OLD.result)
  AND NOT EXISTS (SELECT 1 FROM variants WHERE result = OLD.result)
BEGIN DELETE FROM charges WHERE digest = OLD.result; END;

CREATE TABLE pins (
  name TEXT PRIMARY KEY,
  repo TEXT NOT NULL,
  commit_id BLOB NOT NULL,
  uid INTEGER NOT NULL,
  created INTEGER NOT NULL,
  FOREIGN KEY (repo, commit_id) REFERENCES snapshots
) WITHOUT ROWID;
CREATE INDEX pins_by_snapshot ON pins (repo, commit_id);
CREATE TABLE pin_recipes (
  name TEXT NOT NULL REFERENCES pins ON DELETE CASCADE,
  recipe TEXT NOT NULL,
  PRIMARY KEY (name, recipe)
) WITHOUT ROWID;

-- What was shown in other runtimes' folders: links/<id>.json. Only files that are blobs are rows;
-- small files that were written there are in the manifest.
CREATE TABLE links (
  id TEXT PRIMARY KEY,
  target TEXT NOT NULL,
  root TEXT NOT NULL,
  repo TEXT NOT NULL,
  commit_id BLOB NOT NULL CHECK (length(commit_id) = 20),
  uid INTEGER NOT NULL,
  created INTEGER NOT NULL,
  standing INTEGER NOT NULL DEFAULT 0                            -- 1: made by itself, keeps nothing
) WITHOUT ROWID;
CREATE INDEX links_by_snapshot ON links (repo, commit_id);
CREATE TABLE link_files (
  id TEXT NOT NULL REFERENCES links ON DELETE CASCADE,
  path TEXT NOT NULL,
  digest BLOB NOT NULL REFERENCES blobs,
  form TEXT NOT NULL,
  PRIMARY KEY (id, path)
) WITHOUT ROWID;
CREATE INDEX link_files_by_digest ON link_files (digest);

CREATE TABLE jobs (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
  phase TEXT NOT NULL,
  request TEXT NOT NULL,
  result TEXT NOT NULL,
  error TEXT NOT NULL,
  done INTEGER NOT NULL,
  total INTEGER NOT NULL,
  uid INTEGER NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX jobs_by_created ON jobs (created);
CREATE INDEX jobs_unfinished ON jobs (created) WHERE state IN ('queued', 'running');
-- Blobs that a job brought and that nothing else names yet.
CREATE TABLE job_blobs (
  job TEXT NOT NULL REFERENCES jobs ON DELETE CASCADE,
  digest BLOB NOT NULL REFERENCES blobs ON DELETE CASCADE,
  PRIMARY KEY (job, digest)
) WITHOUT ROWID;
CREATE INDEX job_blobs_by_digest ON job_blobs (digest);

-- Of processes and deadlines; a connection's lease lives and dies with the daemon.
CREATE TABLE leases (
  id TEXT PRIMARY KEY,
  digest BLOB NOT NULL REFERENCES blobs ON DELETE CASCADE,
  pid INTEGER NOT NULL,                                          -- 0: by deadline
  start_ticks INTEGER NOT NULL,
  boot_id TEXT NOT NULL,
  deadline INTEGER NOT NULL,
  uid INTEGER NOT NULL,
  created INTEGER NOT NULL,
  note TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX leases_by_digest ON leases (digest);
