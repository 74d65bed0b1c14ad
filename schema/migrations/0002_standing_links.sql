-- Links that the daemon makes by itself, for whatever is in the store, do not keep it there.
ALTER TABLE links ADD COLUMN standing INTEGER NOT NULL DEFAULT 0;
