// Package assemble turns messages into spans. It is pure: no clock, no input or output, no
// goroutine. Messages carry the time, and the caller reports silence (Idle, CloseStream).
//
// Messages of decoders enter by Apply, in the order of their stream, and get their trace and
// span. Spans leave through the Emitter, and with each Commit the state of the groups that
// changed, valid with exactly the messages applied before. The files follow the way of a
// message, and depend on each other in this order only:
//
//	assemble.go, exchange.go, idle.go   entry points: Apply, Commit, SetResponse, Idle
//	chain.go, copies.go, correlate.go,  linking across sessions
//	hop.go
//	handle.go, chat.go, calls.go,       handlers: they change state and mark the changes
//	linker.go, names.go, ending.go,
//	anomalies.go, provisional.go
//	group.go, run.go                    state, as a store keeps it
//	emit.go                             emits the marked changes, the one place that does
//	render.go, signature.go             state as spans, ids and versions
//
// The package link below decides which call caused which run, on values.
//
// A session is a group of runs; a run is one invocation of one agent, and its spans are the
// run itself, a chat for each response of a model, a tool or a delegation for each call, and
// below a delegation the run that it caused:
//
//	run (invoke_agent)                      one trace per top-level run
//	├── chat                                from the last input to the end of the response
//	├── tool (execute_tool)                 from call to result
//	└── delegation (execute_tool)
//	    └── run (invoke_agent)              the child, of any stream
//
// Several streams may feed one session. A span is a function of its own run's messages, which
// are in one stream, in order; only its place in the tree depends on others. A child that is
// read before a message names its call is an orphan in a trace of its own. When the link is
// known, its stream is decoded again (Emitter.ReplayChildren): the spans are emitted under
// the right trace with a higher version, and the old ones get tombstones. So the order in
// which files are read does not show in the tables.
//
// A call may also run another agent's program, whose own files or streams are a session of
// another format, or write to an agent that has a session of its own. The decoders of both
// sides print a correlation id or prompt (correlate.go), and the run moves below the call in
// the same way, with the runs below its own calls. If its stream cannot be decoded again, it
// stays in a trace of its own, with a link to the call. The stream of a run that is known to
// be a child is kept for a while after its end (Awaits).
//
// A recording of the protocol between two programs is linked to the records of both without a name
// that they print alike (hop.go): by ids that one passes to the other, or by the arguments and the time.
//
// Views of one conversation are merged behind all this (reconcile.go, view.go). Where they have names of their
// own, the strongest one leads (leading.go).
//
// An agent whose messages do not name it has the name that its session states, or that
// callers and delegates have for it (names.go). A name that becomes known late changes rows
// that were emitted before: their stream is decoded again.
//
// A flush makes provisional spans (provisional.go): they show the work that is going on until the
// stream goes on, and nothing that follows is built on them, so that pauses do not show.
//
// A start is fixed when its span begins, because it is part of the row's identity: a row that
// was emitted under another start, provisional or of an inferred time, gets a tombstone.
// Transcripts whose times run backwards (a fifth of Claude Code's do) therefore get spans of
// zero length rather than negative ones. A run without an end in the protocol ends at its
// last event.
package assemble
