// Package pipeline moves frames from the sources through decoder processes and the
// assembler to delivery, and keeps the account of every byte.
//
// Frames enter at Feed and stream, which implement source.Sink and source.Stream. Commit
// batches leave at Sink, with the checkpoint that holds once the exporters have them: each of
// live traffic, and of a backlog one in each flush interval.
//
// # The life of a frame, and the files in its order
//
//	source ─Deliver─► lane ══gRPC══► decoder process
//	                   │ ◄══════════ result
//	                   ▼
//	                  core: account, assemble, collect a commit batch
//	                   ▼
//	                  Sink ─► exporters ─► commit of the batch's checkpoint
//
//	feed.go        one source: opens, detaches and forgets its streams
//	stream.go      one stream: admits a batch of frames against the memory budgets
//	               (budget.go) and queues it as a command
//	command.go     the commands: decode, flush, open, close, end, forget; how each is
//	               encoded for the decoder process, applied by the core, discarded
//	lane.go        one worker: sends queued commands as requests, receives the results
//	format.go      one decoder process: starts it, watches it, restarts it
//	inbox.go       the way into the core: results of commands, calls of other goroutines
//	core.go        the loop that owns all accounts: opens, flushes, closes, drains streams
//	account.go     counts frames, bounds (window.go) and dates (clock.go) messages, passes them
//	               to the assembler
//	response.go    adds the HTTP response's request and timing, as its listener recorded them
//	commit.go      collects rows, closes the commit batch, submits it to the Sink
//	slabs.go       the memory of the rows, from one commit batch to the next
//	replay.go      has a stream delivered again, after a crash or for a late link
//	quarantine.go  finds the record that ends the decoder process, and withholds it
//	pipeline.go    puts the parts together
//
// # Goroutines
//
// A source calls Feed and stream from its own goroutines. Each lane has a sender and a
// receiver for as long as its process runs; each format has one goroutine that supervises
// the process. The core is one goroutine. It owns the accounts, the assembler and the open
// commit batch, and it is the only one that waits for the Sink. The others reach it through
// the inbox only. A source, a lane and the core share one part of a stream, its cursor, under
// a mutex that is never held while waiting.
//
// # Invariants
//
// Order of acknowledgement. A frame's bytes stay in the buffer that the source read them
// into until every exporter has accepted the commit batch with its messages; then the
// checkpoint of exactly that moment is committed; only then does a restart resume behind
// the frame. The checkpoint is never ahead of the exporters. After a crash the frames since
// the last commit are decoded again, into the same rows.
//
// A decoder resumes from its last snapshot, which may lie before the position up to which
// its messages were accounted for; the messages of the frames between are dropped. So a
// snapshot need not be taken with every batch.
//
// Back-pressure. Deliver blocks while more than Settings.MaxInFlight bytes of frames are
// anywhere between a source and the exporters. A commit batch that holds all of them is
// closed although it is not full: it would wait for the sources, and they for it.
//
// Every command ends in exactly one of two ways: the core applies its result, or it is
// discarded because its process ended, its stream was rewound or the pipeline stopped.
package pipeline
