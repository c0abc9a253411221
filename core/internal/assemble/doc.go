// Package assemble turns messages into spans. It is pure: no clock, no input or
// output, no goroutine; time comes with the messages, and silence is told to it.
//
// A session is a group of runs; a run is one invocation of one agent, and its
// spans are the run itself, a chat for each response of a model, a tool or a
// delegation for each call, and below a delegation the run that it caused:
//
//	run (invoke_agent)                      one trace per top-level run
//	├── chat                                from the last input to the end of the response
//	├── tool (execute_tool)                 from call to result
//	└── delegation (execute_tool)
//	    └── run (invoke_agent)              the child, from whatever stream it comes
//
// Several streams may feed one session. What a span says is a function of its
// own run's messages, which come from one stream in order; only its place in the
// tree depends on others. A child that is heard before anything names its call
// begins as the root of a trace of its own. When the link comes, its stream is
// decoded again (Emitter.Relink): the spans come out under the right trace with a
// higher version, and the old ones are taken back. So the order in which files
// happen to be read does not show in the tables.
//
// A call may also run another agent's program, whose own files or streams are a session
// of another format, or write to an agent that has a session of its own. Decoders of both
// sides give a name under which the two find each other (meet.go), and the run moves below
// the call in the same way, with all that stands below its own calls. If its stream cannot
// be decoded again, it stays in a trace of its own, with a link to the call. One that is
// known to be a child has its stream kept for a while after its end (Awaits).
//
// An agent whose messages do not name it has the name that its session says, or that the
// callers and the called have for it (alias.go). One that becomes known late is put into
// rows that were given before by decoding their stream again.
//
// What a flush gives makes provisional spans (provisional.go): they show what is going on
// until the stream goes on, and nothing that follows is built on them, so that pauses do
// not show.
//
// Starts are fixed when a span begins, because they are part of the row's
// identity: a row that was given under another start, provisional or of a time that was
// inferred, is taken back. Transcripts whose times run backwards (a fifth of Claude Code's do)
// therefore get spans of zero length rather than negative ones. A run that ends
// without saying so ends at its last event.
package assemble
