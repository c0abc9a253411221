package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	original   = "0a0a0a0a-0000-4000-8000-00000000000a"
	fork       = "0b0b0b0b-0000-4000-8000-00000000000b"
	forkOfFork = "0c0c0c0c-0000-4000-8000-00000000000c"
)

// forkedTurns are turns of a transcript, each with a call and two responses. A fork has them with the ids and
// times of the original, and with its own session.
func forkedTurns(session string, turns ...int) string {
	var b strings.Builder
	for _, n := range turns {
		line := func(part, kind string, at int, rest string) {
			fmt.Fprintf(&b, `{"parentUuid":null,"isSidechain":false,"cwd":"/srv/mill","sessionId":%q,"version":"2.1.60","type":%q,"uuid":"c0000000-0000-4000-8000-%06d0000%s","timestamp":"2026-05-%02dT08:%02d:%02d.000Z",%s}`+"\n",
				session, kind, n, part, 1+n/50, n%50, at, rest)
		}
		prompt := fmt.Sprintf(`"promptId":"b0000000-0000-4000-8000-%012d"`, n)
		answer := func(part string, content, stop string) string {
			return fmt.Sprintf(`"requestId":"req_%d%s","message":{"id":"msg_%d%s","type":"message","role":"assistant","model":"claude-opus-4-1","content":[%s],"stop_reason":%q,"usage":{"input_tokens":%d,"output_tokens":5}}`, n, part, n, part, content, stop, n)
		}
		line("a1", "user", 0, fmt.Sprintf(`%s,"message":{"role":"user","content":"Weigh sack %d."}`, prompt, n))
		line("a2", "assistant", 2, answer("a", fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":"Bash","input":{"command":"weigh %d"}}`, n, n), "tool_use"))
		line("a3", "user", 4, fmt.Sprintf(`%s,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":"%d kg"}]}`, prompt, n, n))
		line("a4", "assistant", 6, answer("b", fmt.Sprintf(`{"type":"text","text":"It weighs %d kg."}`, n), "end_turn"))
	}
	return b.String()
}

func upTo(n int) (list []int) {
	for i := range n {
		list = append(list, i+1)
	}
	return list
}

// TestForkedSessionCountsOnce reads a session, a fork of it and a fork of the fork, as `claude --resume ID
// --fork-session` writes them, with the files in either order of age and with kills on the way, and then
// a fork that is made while the sidecar runs. Each prompt, call and token is in the session that it was first in.
func TestForkedSessionCountsOnce(t *testing.T) {
	files := []struct{ session, text string }{
		{original, forkedTurns(original, append(upTo(60), 101)...)},
		{fork, forkedTurns(fork, append(upTo(60), 102)...)},
		{forkOfFork, forkedTurns(forkOfFork, append(upTo(60), 102, 103)...)},
	}
	sum := func(list ...int) (n int) {
		for _, i := range list {
			n += 2 * (i + 5)
		}
		return n
	}
	want := func(turns map[string][]int) (rows []string) {
		for _, s := range []string{original, fork, forkOfFork, "0d0d0d0d-0000-4000-8000-00000000000d"} {
			if list := turns[s]; len(list) > 0 {
				rows = append(rows, fmt.Sprintf("%s\t%d\t%d\t%d\t%d", s[:2], len(list), len(list), 2*len(list), sum(list...)))
			}
		}
		return rows
	}
	const counts = `SELECT left(session_id, 2), countIf(kind = 'user' AND NOT hidden), countIf(kind = 'tool_call'), countIf(kind = 'usage'), sum(input_tokens + output_tokens)
		FROM messages FINAL GROUP BY session_id HAVING countIf(run_id != '') > 0 ORDER BY session_id`
	const spans = `SELECT left(session_id, 2), countIf(kind = 'run'), countIf(kind = 'tool'), countIf(kind = 'chat'), sumIf(input_tokens + output_tokens, kind = 'chat')
		FROM spans FINAL GROUP BY session_id ORDER BY session_id`
	for name, order := range map[string][]int{"original first": {0, 1, 2}, "forks first": {2, 1, 0}} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t).configure("sources:", `  - {name: claude, type: file, format: claude-code, poll_interval: 200ms, paths: ["DIR/c/*.jsonl"]}`)
			for i, k := range order {
				path := "c/" + files[k].session + ".jsonl"
				h.write(path, files[k].text)
				age := time.Now().Add(-time.Duration(10-i) * time.Hour)
				h.must(os.Chtimes(h.path(path), age, age))
			}
			random := rand.New(rand.NewPCG(1, uint64(len(name))))
			for range 3 {
				p := h.start("run")
				time.Sleep(time.Duration(200+random.IntN(1200)) * time.Millisecond)
				p.kill()
			}
			h.drain()
			turns := map[string][]int{original: append(upTo(60), 101), fork: {102}, forkOfFork: {103}}
			if order[0] != 0 { // the fork of the fork was written last before the others
				turns = map[string][]int{original: {101}, forkOfFork: append(upTo(60), 102, 103)}
			}
			for _, q := range []string{counts, spans} {
				if d := cmp.Diff(want(turns), h.query(q)); d != "" {
					t.Errorf("(-want +got):\n%s\n%s", d, q)
				}
			}
			// A fork that is made now, of the original with its last turn.
			live := "0d0d0d0d-0000-4000-8000-00000000000d"
			p := h.start("run")
			h.write("c/"+live+".jsonl", forkedTurns(live, append(upTo(60), 101)...))
			h.add("c/"+live+".jsonl", forkedTurns(live, 104))
			turns[live] = []int{104}
			h.until("the new turn", func() bool {
				return len(h.tryQuery("SELECT 1 FROM messages FINAL WHERE tool_call_id = 'toolu_104' AND kind = 'tool_result'")) == 1
			})
			h.must(p.Process.Signal(os.Interrupt))
			h.waitExit(p)
			h.drain()
			if out, code := h.runIn(h.dir, "show", live, "-c", h.path("earshot.yaml")); code != 0 || !strings.Contains(out, "shares turns with ") {
				t.Errorf("exit code %d:\n%s", code, out)
			}
			for _, q := range []string{counts, spans} {
				if d := cmp.Diff(want(turns), h.query(q)); d != "" {
					t.Errorf("live (-want +got):\n%s\n%s", d, q)
				}
			}
		})
	}
}
