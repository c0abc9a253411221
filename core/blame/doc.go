// Package blame computes where the time of an agent's work was spent. It is pure: spans of
// one trace in, numbers out.
//
// # Buckets
//
// The wall time of a run or a delegation is split into buckets. Each instant is
// in exactly one, so the buckets of a span add up to its wall time to the
// nanosecond:
//
//	model_ttft    waiting for the first token of a model
//	model_stream  a model streaming; all of its time if no first token was recorded
//	tool          a tool, or the function of a workflow's step
//	sub_agent     another agent, whose own split has the detail
//	wait          waiting for a person: a permission, a paused run
//	retry         lost to attempts that failed and were repeated
//	idle          no known activity: framework, queue, hand-over
//
// # Which step an instant belongs to
//
// Steps overlap: tools run in parallel, a call starts while its response is still
// streaming. An instant belongs to the step that gates its successor. The algorithm walks
// from the end of the parent backwards: of the steps that are running, the one with the
// earliest end has the time back to its start (of two that end together the one that
// started first); at that start the walk continues with the steps that are running then;
// where no step runs, the time is idle back to the previous end of a step. So a tool that
// ran in parallel to a longer one has no time. The steps that have time are the critical
// path. The result does not depend on ids: equal steps are ordered by kind, name, agent
// and subtree.
//
// # Work in the background
//
// The caller of an asynchronous delegation continues. The delegation lasts as long as the
// run that it started, but it extends no other span, and it has no instant of its caller's
// time unless the caller demonstrably waited:
//
//   - the caller had no other step running when the work ended, and its next step followed:
//     the work has the time since the end of the caller's previous step, or
//   - the work's result arrived together with that of a call that has no records of its
//     own, at the same time: a tool that waits for agents. The work, as far as records
//     below the delegation show it, has the time since the start of that call.
//
// Work that outlives its caller's turn has none of the caller's time, and neither has work
// without a known end.
//
// # Calls that are reported together
//
// Many formats report the results of parallel calls together, when the last of them is
// done, so the recorded end of a call may be the end of another. Calls with results whose
// ends differ by no more than a hundredth of the duration of either are reported together.
// The children of a call show when its work ended: at the end of the last of them. Of
// calls that are reported together,
//
//   - a call with children ended when its work did: the rest is the hand-over, and none of
//     its time;
//   - a call without children has only the time in which no call with children was at
//     work: it may just have waited to be reported;
//   - of several calls without children it is unknown which took the time. The one that
//     gates has it under the names of all.
//
// # Within a step
//
// Within a step a wait precedes a retry, and a retry precedes the rest. The time before a
// step's last retry was lost to it. A pause of a run counts in its own steps and gaps;
// another agent that works meanwhile keeps its time. A delegation is transparent: its time
// is that of the run below it, and idle where that run was not active. If no run below it
// took any time, the other agent left no record, and all of the delegation's time is
// sub_agent.
//
// # What-if
//
// The duration of a span without a group of segments is computed by a replay in which each
// step waits for all steps that had ended when it started, and then takes its own time. A
// call that starts while a response is still streaming waits for as much of the response as
// there was. A step that ended meanwhile and gates nothing saves nothing. Background work
// starts at its recorded start, until the caller waits for it. The saving is at most the
// group's time on the critical path.
//
// # Clocks
//
// A run cannot start before the call that caused it, and its answer cannot arrive after
// the call's result. Where the times contradict that, the clock of the run's machine is
// skewed: the run is moved with all its descendants, by the smallest correction, and the
// move is recorded as a Shift.
package blame
