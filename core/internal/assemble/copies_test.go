package assemble_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

const (
	orchard = "0a0a0a0a-0000-4000-8000-00000000000a" // the original
	meadow  = "0b0b0b0b-0000-4000-8000-00000000000b" // its fork
	hedge   = "0c0c0c0c-0000-4000-8000-00000000000c" // a fork of the fork
)

// turnOf are the records of a turn with a call, as a session's file has them.
func turnOf(session string, n int) []string {
	at := func(s int) string { return fmt.Sprintf("2026-05-0%dT08:00:%02d.000Z", n, s) }
	line := func(id, kind, at, rest string) string {
		return fmt.Sprintf(`{"parentUuid":null,"isSidechain":false,"cwd":"/srv/trees","sessionId":%q,"version":"2.1.60","type":%q,"uuid":"c0%d%s-0000-4000-8000-000000000000","timestamp":%q,%s}`,
			session, kind, n, id, at, rest)
	}
	usage := func(out int) string {
		return fmt.Sprintf(`"usage":{"input_tokens":%d,"output_tokens":%d}`, 10*n, out)
	}
	return []string{
		line("00a1", "user", at(0), fmt.Sprintf(`"promptId":"b0%d00000-0000-4000-8000-000000000000","message":{"role":"user","content":"Count row %d."}`, n, n)),
		line("00a2", "assistant", at(2), fmt.Sprintf(`"requestId":"req_%d1","message":{"id":"msg_%d1","type":"message","role":"assistant","model":"claude-opus-4-1","content":[{"type":"tool_use","id":"toolu_%d","name":"Bash","input":{"command":"wc -l row%d"}}],"stop_reason":"tool_use",%s}`, n, n, n, n, usage(7))),
		line("00a3", "user", at(4), fmt.Sprintf(`"promptId":"b0%d00000-0000-4000-8000-000000000000","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":"%d"}]}`, n, n, n)),
		line("00a4", "assistant", at(6), fmt.Sprintf(`"requestId":"req_%d2","message":{"id":"msg_%d2","type":"message","role":"assistant","model":"claude-opus-4-1","content":[{"type":"text","text":"It has %d trees."}],"stop_reason":"end_turn",%s}`, n, n, n, usage(9))),
	}
}

func transcript(session string, turns ...int) recording {
	rec := recording{format: "claude-code", origin: "/srv/.claude/projects/-srv-trees/" + session + ".jsonl"}
	for _, n := range turns {
		rec.add(turnOf(session, n)...)
	}
	return rec
}

func (rec *recording) add(lines ...string) {
	for _, l := range lines {
		rec.frames = append(rec.frames, frame.Frame{Kind: frame.Line, Data: []byte(l), At: int64(len(rec.frames)), Pos: int64(len(rec.frames)), End: int64(len(rec.frames) + 1)})
	}
}

// counts are the turns, calls and tokens of each session.
func (r *reader) counts() string {
	messages, spans := r.valid()
	var b strings.Builder
	for _, s := range [...]string{orchard, meadow, hedge} {
		var runs, calls, chats, prompts int
		var used, spent uint64
		for _, x := range spans {
			switch {
			case x.Session != s:
			case x.Kind == msg.SpanRun:
				runs++
			case x.Kind == msg.SpanTool:
				calls++
			case x.Kind == msg.SpanChat:
				chats++
				spent += x.Usage.Total()
			}
		}
		for _, m := range messages {
			if m.Session == s {
				used += m.Usage.Total()
				if m.Kind == msg.User && !m.Hidden {
					prompts++
				}
			}
		}
		fmt.Fprintf(&b, "%s: prompts %d, runs %d, calls %d, responses %d, tokens %d, of responses %d\n", s[:2], prompts, runs, calls, chats, used, spent)
	}
	return b.String()
}

// TestCopiedTurnsCountOnce reads an original, a fork of it and a fork of the fork in many orders, with
// restarts: each turn is the original's, and the tables are the same.
func TestCopiedTurnsCountOnce(t *testing.T) {
	list := []recording{transcript(orchard, 1, 2, 5), transcript(meadow, 1, 2, 3), transcript(hedge, 1, 2, 3, 4)}
	want := `0a: prompts 3, runs 3, calls 3, responses 6, tokens 208, of responses 208
0b: prompts 1, runs 1, calls 1, responses 2, tokens 76, of responses 76
0c: prompts 1, runs 1, calls 1, responses 2, tokens 96, of responses 96
`
	inOrders(t, list, want)
}

// TestCopiedTurnGoesOn: a fork was made in the midst of a turn, and goes on with it.
func TestCopiedTurnGoesOn(t *testing.T) {
	a, b := transcript(orchard, 1), transcript(meadow, 1)
	b.add(turnOf(meadow, 2)[:3]...)
	a.add(turnOf(orchard, 2)[:3]...)
	more := turnOf(meadow, 2)[3]
	b.add(strings.NewReplacer("msg_22", "msg_23", "req_22", "req_23", "00a4", "00b4").Replace(more))
	a.add(turnOf(orchard, 2)[3])
	inOrders(t, []recording{a, b}, `0a: prompts 2, runs 2, calls 2, responses 4, tokens 92, of responses 92
0b: prompts 0, runs 1, calls 0, responses 1, tokens 29, of responses 29
0c: prompts 0, runs 0, calls 0, responses 0, tokens 0, of responses 0
`)
}

func inOrders(t *testing.T, list []recording, want string) {
	t.Helper()
	first := ""
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := newReader(t, list)
		for i := range list {
			r.begun = append(r.begun, int64(i+1))
		}
		left := random.Perm(len(list))
		for len(left) > 0 {
			k := 0
			if seed%2 == 1 { // in turn, and not file by file
				k = random.IntN(len(left))
			}
			if !r.next(left[k]) {
				left = append(left[:k], left[k+1:]...)
				continue
			}
			r.jolt(random)
		}
		r.end()
		for range len(list) { // a turn that ended is the last
			r.replay()
			r.end()
		}
		if d := cmp.Diff(want, r.counts()); d != "" {
			t.Fatalf("order %d (-want +got):\n%s", seed, d)
		}
		if all := r.tree(false) + r.conversation(); first == "" {
			first = all
		} else if d := cmp.Diff(first, all); d != "" {
			t.Fatalf("order %d (-first +now):\n%s", seed, d)
		}
	}
}
