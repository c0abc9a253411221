// Package blame says where the time of an agent's work went. It is pure: spans of
// one trace in, numbers out.
//
// # Buckets
//
// The wall time of a run or a delegation is split into buckets. Each instant is
// in exactly one, so the buckets of a span add up to its wall time to the
// nanosecond:
//
//	model_ttft    waiting for the first token of a model
//	model_stream  a model answering; all of its time where no first token was seen
//	tool          a tool at work
//	sub_agent     another agent at work, whose own split says more
//	wait          a person's turn: a permission, a paused run
//	retry         lost to attempts that failed and were made again
//	idle          nothing known was going on: framework, queue, hand-over
//
// # Who has an instant
//
// Steps overlap: tools run side by side, a call starts while its answer is still
// streaming. An instant belongs to the step that gates what comes next. From the
// end of the parent backwards: of the steps that are running, the one whose own
// end comes first has the time back to its beginning (of two that end together
// the one that began first, then the smaller id); there the question is asked
// again; where nothing runs, the time is idle back to the next end of a step. So
// a tool that ran beside a longer one has no time, and neither has work in the
// background that outlasts what waits for something else. The steps that have
// time are the critical path.
//
// Within a step a wait comes before a retry, and a retry before the rest. What
// comes before a step's last retry was lost to it. A pause of a run counts in its
// own steps and gaps; another agent that works meanwhile keeps its time. A
// delegation is looked through: its time is that of the run below it, and idle
// where that was not running. If no run below it took any time, the other agent
// worked unseen, and all of the delegation's time is sub_agent.
//
// # Without it
//
// What a span would have taken without some of its time is a replay in which each
// step waits for all steps that had ended when it began, and then for as long as
// it did. A step that ended meanwhile and gates nothing saves nothing.
//
// # Clocks
//
// A run cannot begin before the call that caused it, and its answer cannot come
// after the call's result. Where the times say so, the clock of the run's machine
// is off: the run is moved with all below it, by as little as helps, and the
// move is recorded.
package blame
