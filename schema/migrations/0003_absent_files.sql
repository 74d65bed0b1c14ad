-- Snapshots may hold a part of what the Hub lists.
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
