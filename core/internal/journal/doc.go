// Package journal records the frames of sources that cannot be read a second time: tap,
// clients, push. Everything behind it is a deterministic replay.
//
//	listeners ──Record──► pending (memory) ──write, fsync──► segments ──Reader──► pipeline
//	            streams                       writer          retention, sweeper
//
// # Files
//
// One journal serves all sources of a sidecar. Its directory has segments
// (NNN.seg) to which records are appended, and beside each full one an index
// (NNN.idx) that lists its streams with their positions. Every record has a checksum, seeded
// with the segment's number, so that a record inside of recorded traffic is not taken for
// one of the segment. A segment names each of its streams before their first record in it, so
// it can be understood, and deleted, without the others.
//
// # Positions
//
// The position of a frame is the count of its stream's bytes before it, over all
// segments and processes: len(Data) + Dropped + 1 for each frame, max(bytes, 1)
// for a gap. The 1 is for a delimiter: so an empty frame has a position of its own.
//
// # Durability
//
// Records are written and synced in groups: at once after a pause, every
// FsyncInterval under load, and early when a caller waits in Sync. Readers see synced
// records only, so that the checkpoint is never ahead of the journal, power cuts included. A
// power cut costs at most the records of one FsyncInterval. At Open the end of the newest
// segment is checked, and cut behind its last whole record.
//
// A disk that refuses to write or to sync (full, broken) ends nothing: the write is tried
// again for ever. After a failed fsync the kernel may have dropped the pages that were
// being written, so the segment is then copied to a new file, from its synced bytes
// and from memory. While it fails, records wait in memory up to
// MaxPending; then Record waits (Backpressure) or the frames are counted as a gap
// of their stream (DropOldest).
//
// # Limits
//
// A segment is removed when every stream is safe past it: its frames are with the
// exporters and, if it ended there, so is its end (source.Known). With Keep it stays
// for that long, to be decoded again (Copy), unless the room is needed. When MaxSize or
// MinFree is reached and nothing is safe, DropOldest evicts the oldest segment
// and Backpressure lets the sources wait. Of an evicted segment, and of one
// older than MaxAge, the index stays until the readers have delivered a frame
// without data over each gap, with reason ReasonDropped: so the loss is in the
// ledger, and survives restarts, and an eviction needs no room on the disk.
//
// A record that does not match its checksum is skipped, and the next one is found. The gap
// is delivered with ReasonCorrupt as far as the positions of later records or the index
// show its size.
//
// # Reading
//
// There is a reader for each pair of source and format, so that a decoder that
// does not advance delays nothing else. It goes through the segments in one pass
// for all of its streams, with one buffer, and a batch of each stream in it; a
// stream that has to be delivered again moves the whole pass back to the segment
// in question, in which the others' records are skipped by position. A decoder
// without snapshots needs its whole stream again after a restart: then the
// stream's segments stay until it is closed.
//
// A stream that cannot be closed yet (source.ErrAwaited) is closed again later. It delays
// nothing meanwhile, and Drained does not wait for it.
//
// # Known limitations
//
// A source that is no longer configured has no reader: its segments stay until
// MaxAge or MaxSize removes them. Of records in a corrupt range whose stream has
// nothing later and no index entry, only the number of bytes is known; it is
// reported as trouble.
package journal
