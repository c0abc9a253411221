// Package verdicts measures how often a verdict is right: it re-enacts incidents that people
// reported of their agents, with invented contents, in the formats that can show them, and
// compares the verdicts that are made with those that a person would make of the same facts.
// Run `go test ./bench/verdicts -run TestIncidents -v` for the table.
//
// An incident is a text file of incidents/before, written before the rules were tuned, of
// incidents/after, written when they were fixed, or of incidents/holdout-1 and holdout-2, each written
// in one go, the first without a look at the rules, and the second before the first had mended them,
// or of holdout-3 and holdout-4, and holdout-5 and holdout-6, of which the first was written without a look at the
// rules, and the second when what it found was mended:
//
//	thread: where it was reported
//	formats: claude-code opencode        it is one case in each
//	history: Bash {"command":"make test"} 42 540s 900s     42 calls in the past, of 540 s to 900 s
//	2s call c1 Bash {"command":"make test"}                an event, by the time since the beginning
//	5s@kid text I look.                                    in a delegate's run
//	until 30m
//	expect tool_running Bash 22m30s                        the verdict that the facts allow, its subject, from when
//
// Events: user, text, final (the last answer of a turn), call, result, error, delegate
// (a call whose id names the run), background (likewise, and no one waits), begin (the delegate's
// prompt), retry, limit, ask (permission for a call), allow, pause, fail (the run), close (its
// connection), ping (a sign of life of a server), progress (of a call), resume, cancel, interrupt
// (by the person), think (aloud), compact, refuse (an answer that is an error) and again (the request after it). A
// retry that begins with a duration waits for so long. A line "history of the transcript" makes all before it backlog that is old; "clock 3h"
// puts the agent's clock ahead; "jump 60s 2h" sets it ahead, or back, in the midst; "asleep 10s 2h" is a machine that sleeps.
//
// Every verdict must be made within 30 s of its time, on its subject and with its name. Any
// other verdict in the incident is a false one. No real time passes.
package verdicts
