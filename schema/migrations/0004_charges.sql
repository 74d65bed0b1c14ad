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
