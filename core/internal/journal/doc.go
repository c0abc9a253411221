// Package journal keeps what cannot be read a second time: the frames that
// listeners hear. Everything behind it is a deterministic replay.
//
//	listeners ──Record──► pending (memory) ──write, fsync──► segments ──Reader──► pipeline
//
// # Files
//
// One journal serves all sources of a sidecar. Its directory has segments
// (NNN.seg) to which records are appended, and beside each that is full an index
// (NNN.idx) of what it has of which stream. Every record has a checksum, seeded
// with the segment's number: what looks like a record inside of recorded traffic
// is none. A segment names each of its streams before their first record in it, so
// it can be understood, and deleted, without the others.
//
// # Positions
//
// The position of a frame is the count of its stream's bytes before it, over all
// segments and processes: len(Data) + Dropped + 1 for each frame, max(bytes, 1)
// for a gap. The 1 stands for a delimiter; it gives empty frames a place.
//
// # Durability
//
// Records are written and synced in groups: at once after a pause, every
// FsyncInterval under load, and early for whoever waits in Sync. Readers see what
// is synced and nothing else, so that the checkpoint is never ahead of the journal,
// power cuts included. A power cut costs at most what was recorded within
// FsyncInterval. At Open the end of the newest segment is checked, and cut behind
// its last whole record.
//
// A disk that refuses to write or to sync (full, broken) ends nothing: it is tried
// again for ever. After a failed fsync nothing is known of the pages that were
// being written, so the segment is then copied to a new file, from what was synced
// and from memory. While it fails, what is recorded waits in memory up to
// MaxPending; then Record waits (Backpressure) or the frames are counted as a gap
// of their stream (DropOldest).
//
// # Limits
//
// A segment goes when every stream is safe past it: its frames are with the
// exporters and, if it ended there, so is its end (source.Known). With Keep it stays
// for that long, to be decoded again (Copy), unless the room is needed. When MaxSize or
// MinFree is reached and nothing is safe, DropOldest gives up the oldest segment
// and Backpressure lets the sources wait. Of a segment that is given up, and of one
// older than MaxAge, the index stays until the readers have delivered a frame
// without data over each hole, with reason ReasonDropped: so the loss is in the
// ledger, and survives restarts, and giving up needs no room on the disk.
//
// A record that does not match its checksum is skipped, what follows is found
// again, and the hole is delivered with ReasonCorrupt as far as the positions of
// later records or the index tell it.
//
// # Reading
//
// There is a reader for each pair of source and format, so that a decoder that
// does not move holds up nothing else. It goes through the segments in one pass
// for all of its streams, with one buffer, and a batch of each stream in it; a
// stream that has to be delivered again moves the whole pass back to the segment
// in question, in which the others' records are skipped by position. A decoder
// without snapshots needs its whole stream again after a restart: then the
// stream's segments stay until it is closed.
//
// A stream that cannot be closed yet (source.ErrAwaited) is closed again later. It holds
// up nothing meanwhile, and is not waited for.
//
// # Known limitations
//
// A source that is no longer configured has no reader: its segments stay until
// MaxAge or MaxSize takes them. Of records in a corrupt range whose stream has
// nothing later and no index entry, only the number of bytes is known; it is
// reported as trouble.
package journal
