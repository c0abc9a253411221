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
//	tool          a tool at work, or the function of a workflow's step
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
// the one that began first); there the question is asked again; where nothing
// runs, the time is idle back to the next end of a step. So a tool that ran beside
// a longer one has no time. The steps that have time are the critical path.
// Nothing depends on ids: steps that still tie are ordered by kind, name, agent and
// what is below them.
//
// # Work in the background
//
// The caller of an asynchronous delegation goes on. The delegation lasts as long as
// what it caused, but nothing else lasts longer because of it, and it has no instant
// of its caller's time unless the caller demonstrably waited:
//
//   - the caller had nothing else running when the work ended, and its next step came
//     behind: the work has the time from the end of the caller's step before, or
//   - the work's result came with that of a call of which nothing else shows, at the
//     same time: a tool that waits for agents. The work, as far as it shows below the
//     delegation, has the time from the beginning of that call.
//
// Work that outlives its caller's turn has none of it, nor has work of which nobody
// knows when it ended.
//
// # Calls that are reported together
//
// Many formats tell the results of calls together, when the last of them is done, so
// that the end of a call may be the end of another. Calls with results whose ends differ by no
// more than a hundredth of the duration of either are reported together. What is
// below a call shows when its work was done: when the last step below it ended.
// Of calls that are reported together,
//
//   - one that shows its work ended when that was done: the rest is the hand-over,
//     and none of its time;
//   - one that shows nothing has only the time in which none that shows its work was
//     at work: it may just have waited for its record;
//   - of several that show nothing it is not known which took the time. The one that
//     gates has it under the names of all.
//
// # Within a step
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
// it did. A step that ended meanwhile and gates nothing saves nothing. Work in the
// background begins when it began, whatever the caller did until it waited for it. No
// more is saved than the time on the critical path.
//
// # Clocks
//
// A run cannot begin before the call that caused it, and its answer cannot come
// after the call's result. Where the times say so, the clock of the run's machine
// is off: the run is moved with all below it, by as little as helps, and the
// move is recorded.
package blame
