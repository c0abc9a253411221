// Package truth scores observers of agents against conversations of which the truth is known: the calls, whose work each
// was, the texts, the tokens and the times. (Package gen counts the traffic of one format.) `go run ./bench/cmd/truth`
// scores Earshot, and other observers that are named to it.
//
// A conversation is one of two kinds. A Scenario is invented once and written by the writer of each format that
// can express it, which knows the protocol and no decoder; its truth is read from the scenario. A case of a decoder's
// testdata that has a file truth.json beside its input has a truth that a person wrote from that input.
//
// # An observer
//
// An observer is a command. It is called with the name of a format and the folder of one conversation, which has the
// traffic as files under the paths at which the agent writes them (files/…, formats that are files), or as frames, one
// a line, as `earshot record` writes them (NN.frames.jsonl, a stream each). It prints a Conversation as JSON:
//
//	{"calls":  [{"id": "call_1", "name": "Bash", "failed": true, "start": "2026-03-04T09:00:02Z", "end": "…"}],
//	 "links":  [{"call": "call_1", "holds": "call_2"}, {"call": "call_1", "holds": "text:All is dry."}],
//	 "tokens": {"input": 10, "output": 4, "cache_read": 900, "cache_write": 0, "reasoning": 0},
//	 "texts":  [{"role": "user", "text": "Is it dry?"}]}
//
// A call has its id in the protocol; where a protocol has none, truth has none, and the calls of a name are
// compared in their order. A link means that a call, or an answer of the model, was made in the work that another call
// handed on. Classes of tokens do not overlap; the tokens are those of the whole conversation. The roles are user,
// assistant and tool: the prompts, the answers and the results. A member that an observer leaves out is not scored.
//
// # Scores
//
// A call is right if its id, its name and whether it failed are. Precision is the share of the observer's calls (links)
// that are right, recall the share of the true ones that it has. The error of tokens is the sum over the classes of the
// difference, absolute and as a share of the true sum. A text is missing if it was observed less often than it is true,
// repeated if more often. A time is off by more than 1 ms, or not there; times that the protocol does not have are not
// scored.
package truth
