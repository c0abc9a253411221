// Package sqlite reads the database of an agent while the agent writes it, and records its rows.
//
// Each row that is new, or whose content has changed, is a Line frame of one JSON object:
//
//	{"table":"messages","row":{"id":7,"session_id":"s1","role":"user","content_json":[...]}}
//
// Columns keep their order. A text or a BLOB is a string, with U+FFFD for bytes that are not UTF-8;
// a BLOB that is no text at all is null. The columns that the description lists as json are
// written as the JSON that they hold. The description is the configuration's (tables), or that of
// the format's decoder. A table or column of it that the database does not have is left out.
// A database is one recording, whose key is its path.
//
// # The agent is not touched
//
// SQLite itself would lock the database, and create a -wal and a -shm file where they are missing,
// even with mode=ro. So the files are opened for reading only, and SQLite sees them through a file
// system in memory (snapshot): the pages of the main file, overlaid with the committed frames of
// the write-ahead log, whose checksums are verified. No lock is taken, so no commit, checkpoint or
// VACUUM of the agent waits. Instead each read is verified afterwards: a snapshot is valid as long
// as the main file, the log's salt and the rollback journal are as they were; rows from
// an invalid one are discarded and read again from the next. Without a log each commit invalidates it:
// up to maxCopy the database is then copied to memory first. A writer with a rollback journal that never pauses for as long as that
// copy takes, some milliseconds, is read when it does.
//
// # Nothing lost
//
// A row has a bucket by the hash of its key, and a bucket has the sum of the hashes of its rows.
// A scan reads all tables, and records the rows of those buckets whose sum has changed, but not the
// versions that this process remembers; after a restart, where the newest rows of a bucket explain
// its change, only those. The sums are the State of the recording, and so survive
// a restart: they depend on nothing that VACUUM, a migration, a restored backup or another file in
// the same place can change but the rows themselves. A row may be recorded twice, after a restart
// or a crash; ids of messages are hashes of facts, so this changes no table. A deleted row is not
// reported: the conversation happened. A version that was replaced between two reads is not seen.
//
// A scan reads the database by rowid, at most chunkRows rows a time, and merges the tables by their
// order columns: so rows come about as the agent wrote them.
//
// Between two scans the rows of the highest rowids are read: so new rows and those that the agent
// is streaming are recorded at once, however large the database is.
//
// # Cost
//
// An unchanged database costs two calls of stat each interval. Reading may take a tenth of the
// time: after a scan of 2 s the next begins 18 s later. Memory is bounded: a page cache of 2 MiB, maxCopy,
// chunks of chunkBytes, maxRecent versions of rows for each database.
package sqlite
