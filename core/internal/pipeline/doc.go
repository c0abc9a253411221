// Package pipeline moves frames from sources through decoder processes and the
// assembler to delivery, and keeps the account of it.
//
//	source ──Deliver──► lane ──gRPC──► decoder process
//	                     │◄─────────── results
//	                     ▼
//	                   core (one goroutine): account, assemble, collect an epoch
//	                     ▼
//	                   delivery ──► exporters ──► commit of the epoch's checkpoint
//
// Order of acknowledgement. A frame's bytes stay in the buffer that the source
// read them into until the epoch that holds its messages has been accepted by
// every exporter; then the checkpoint, which is of exactly that moment, is
// committed; only then does a restart resume behind the frame. The checkpoint is
// never ahead of the exporters. After a crash the frames since the last commit
// are decoded again and give the same rows.
//
// A decoder resumes from its last snapshot, which may lie before the position up
// to which its messages were taken; what the frames between give is dropped. So
// a snapshot need not be taken with every batch.
//
// Back-pressure. Deliver blocks while more than Settings.MaxInFlight bytes of
// frames are anywhere between a source and the exporters. An epoch that holds all of
// them is sealed although it is not full: it would wait for the sources, and they for
// it.
package pipeline
