package llmmessage

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// server plays one session as the server of the protocol does, and counts each text, call and
// result of it.
type server struct {
	rand   *rand.Rand
	memory []map[string]any
	cap    int // of the memory; 0 when there is none
	seq    int
	step   int
	turn   int
	calls  int
	late   []byte // a snapshot that is delayed
	out    [][]byte
	truth  map[string]int
}

func (s *server) event(name string, fields map[string]any) []byte {
	s.seq++
	e := map[string]any{
		"event": name, "session_id": "lerrin", "timestamp": fmt.Sprintf("2026-03-02T10:%02d:%02d.%06d", s.seq/60%60, s.seq%60, s.seq%1e6),
		"seq": s.seq, "event_id": fmt.Sprintf("c-%d", s.seq), "metadata": map[string]any{},
	}
	for k, v := range fields {
		e[k] = v
	}
	e["metadata"].(map[string]any)["connection_id"] = "c"
	b, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return b
}

func (s *server) send(name string, fields map[string]any) {
	s.out = append(s.out, s.event(name, fields))
	if s.late != nil && s.rand.IntN(3) == 0 {
		s.out, s.late = append(s.out, s.late), nil
	}
}

// snapshot waits for a while; a newer one takes its place.
func (s *server) snapshot() {
	s.late = s.event("agent.llm_message", map[string]any{
		"content":  map[string]any{"messages": s.memory, "total_messages": len(s.memory)},
		"metadata": map[string]any{"agent_name": "keeper"},
	})
	if s.rand.IntN(2) == 0 {
		s.out, s.late = append(s.out, s.late), nil
	}
}

func (s *server) remember(m map[string]any) {
	s.memory = append(s.memory, m)
	if n := len(s.memory); s.cap > 0 && n > s.cap {
		s.memory = slices.Clone(s.memory[n-s.cap:])
	}
}

func (s *server) one(words ...string) string { return words[s.rand.IntN(len(words))] }

// prompt plays a turn.
func (s *server) prompt(sent bool) {
	text := s.one("Is the light lit?", "Again.", "And now?")
	s.truth["user "+text]++
	if sent {
		b, err := json.Marshal(map[string]any{"event": "user.message", "session_id": "lerrin", "content": text, "timestamp": fmt.Sprintf("2026-03-02T10:00:00.%06dZ", s.turn)})
		if err != nil {
			panic(err)
		}
		s.out = append(s.out, b)
	}
	if s.turn == 0 {
		text = "Question: " + text + "\n\nGuide: Go on."
	}
	s.remember(map[string]any{"role": "user", "content": text})
	s.turn, s.step = s.turn+1, 0
	for n := 1 + s.rand.IntN(3); n > 0; n-- {
		s.playStep()
		if n > 1 && s.rand.IntN(4) == 0 {
			s.remember(map[string]any{"role": "user", "content": "Go on."})
		}
	}
	answer := s.one("It is lit.", "It is dark.", "Aye.")
	s.truth["assistant "+answer]++
	s.remember(map[string]any{"role": "user", "content": "Original Question: x\n\nPlease provide a comprehensive summary of the entire conversation."})
	s.send("agent.partial_answer", map[string]any{"content": answer[:3]})
	s.remember(map[string]any{"role": "assistant", "content": answer})
	s.snapshot()
	s.send("agent.final_answer", map[string]any{"content": answer})
	if s.late != nil {
		s.out, s.late = append(s.out, s.late), nil
	}
}

// playStep plays a step: a text of the model and the calls that it makes.
func (s *server) playStep() {
	m := map[string]any{"role": "assistant"}
	if text := s.one("", "Let me look.", "Let me look.", "Hm."); text != "" {
		m["content"] = text
		s.truth["assistant "+text]++
		s.send("agent.thinking", map[string]any{"content": text, "metadata": map[string]any{"step": s.step}})
	}
	s.snapshot()
	type call struct{ id, tool, n string }
	var calls []call
	var toolCalls []any
	for range 1 + s.rand.IntN(2) {
		s.calls++
		c := call{fmt.Sprint("call_", s.calls), s.one("look", "listen"), s.one("1", "2")}
		calls = append(calls, c)
		toolCalls = append(toolCalls, map[string]any{"id": c.id, "type": "function", "function": map[string]any{"name": c.tool, "arguments": `{"n":` + c.n + `, "at": "sea"}`}})
		s.truth["call "+c.tool+c.n]++
	}
	m["tool_calls"] = toolCalls
	s.remember(m)
	for _, c := range calls {
		result := s.one("nothing", "a ship")
		s.truth["result "+c.tool+" "+result]++
		s.execute(c.tool, c.n, result, s.turn)
		s.remember(map[string]any{"role": "tool", "name": c.tool, "tool_call_id": c.id, "content": "Observed output of cmd `" + c.tool + "` executed:\n" + result})
	}
	s.step++
}

// execute plays a call that is wrapped so many times.
func (s *server) execute(tool, n, result string, wrapped int) {
	if wrapped == 0 {
		return
	}
	step := fmt.Sprintf("step_%d_%s", s.step, tool)
	s.step++
	s.send("agent.tool_call", map[string]any{"step_id": step, "metadata": map[string]any{"tool": tool, "args": map[string]any{"at": "sea", "n": json.Number(n)}}})
	s.execute(tool, n, result, wrapped-1)
	s.send("agent.tool_result", map[string]any{"step_id": step, "content": result, "metadata": map[string]any{"tool": tool, "status": "success"}})
}

// decodedCounts counts the decoded messages by the keys of server.truth.
func decodedCounts(t *testing.T, in [][]byte) (map[string]int, []msg.Message) {
	t.Helper()
	d, err := New().New(decoder.Stream{Origin: "server"})
	if err != nil {
		t.Fatal(err)
	}
	var out decoder.Output
	for i, b := range in {
		out.Begin(int32(i))
		if err := d.Decode(&frame.Frame{Kind: frame.Text, Data: b}, &out); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Flush(&out); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int)
	folded := msg.Fold(out.Messages)
	for i := range folded {
		switch m := &folded[i]; m.Kind {
		case msg.User, msg.Assistant:
			got[m.Kind.String()+" "+m.Content.String()]++
		case msg.ToolCall:
			n := "2"
			if strings.Contains(m.Tool.Arguments.String(), "1") {
				n = "1"
			}
			got["call "+m.Tool.Name+n]++
		case msg.ToolResult:
			got["result "+m.Tool.Name+" "+m.Content.String()]++
		}
	}
	return got, folded
}

// keys are the keys of the conversation's messages, with their text or tool.
func keys(folded []msg.Message) map[string]string {
	out := make(map[string]string)
	for i := range folded {
		switch m := &folded[i]; m.Kind {
		case msg.User, msg.Assistant, msg.ToolResult:
			out[m.Key] = m.Content.String()
		case msg.ToolCall:
			out[m.Key] = m.Tool.Name
		}
	}
	return out
}

// TestSnapshotHasTheKeysOfEvents: the messages of the last snapshot by itself fold onto those
// of the events.
func TestSnapshotHasTheKeysOfEvents(t *testing.T) {
	for seed := range uint64(50) {
		s := &server{rand: rand.New(rand.NewPCG(seed, 2)), truth: make(map[string]int)}
		sent := s.rand.IntN(2) == 0
		for range 1 + s.rand.IntN(6) {
			s.prompt(sent)
		}
		_, live := decodedCounts(t, s.out)
		_, alone := decodedCounts(t, [][]byte{s.event("agent.llm_message", map[string]any{"content": map[string]any{"messages": s.memory}})})
		if want, got := keys(live), keys(alone); !maps.Equal(want, got) {
			t.Errorf("seed %d: by itself\n%v, among the events\n%v", seed, got, want)
		}
	}
}

// TestEachTextIsEmittedOnce: in sessions with repeated texts, whose snapshots overlap with the
// events, are late, dropped or shortened, each text, call and result is emitted once.
func TestEachTextIsEmittedOnce(t *testing.T) {
	for seed := range uint64(150) {
		s := &server{rand: rand.New(rand.NewPCG(seed, 1)), truth: make(map[string]int)}
		sent := s.rand.IntN(2) == 0
		if s.rand.IntN(2) == 0 {
			s.cap = 40
		}
		for range 1 + s.rand.IntN(6) {
			s.prompt(sent)
		}
		got, folded := decodedCounts(t, s.out)
		runs := make(map[string]bool)
		for i := range folded {
			if m := &folded[i]; m.Run != "" {
				runs[m.Run] = true
			}
		}
		if len(runs) != s.turn {
			t.Errorf("seed %d (prompts sent: %v, memory: %d): %d runs of %d turns", seed, sent, s.cap, len(runs), s.turn)
		}
		again, _ := decodedCounts(t, slices.Concat(s.out, s.out)) // a recording that was concatenated with itself
		if !maps.Equal(got, again) {
			t.Errorf("seed %d: decoded twice, it is\n%v, not\n%v", seed, again, got)
		}
		for key, n := range s.truth {
			if got[key] != n {
				t.Errorf("seed %d (prompts sent: %v, memory: %d): %q is emitted %d times, want %d", seed, sent, s.cap, key, got[key], n)
			}
		}
		for key, n := range got {
			if s.truth[key] == 0 {
				t.Errorf("seed %d (prompts sent: %v, memory: %d): %q is emitted %d times, want none", seed, sent, s.cap, key, n)
			}
		}
	}
}

// BenchmarkSession decodes a long session with a full memory of a hundred messages.
func BenchmarkSession(b *testing.B) {
	s := &server{rand: rand.New(rand.NewPCG(1, 1)), truth: make(map[string]int), cap: 100}
	for range 40 {
		s.turn = 0
		s.prompt(true)
	}
	size := 0
	for _, e := range s.out {
		size += len(e)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	var out decoder.Output
	for b.Loop() {
		d, err := New().New(decoder.Stream{})
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range s.out {
			out.Reset()
			if err := d.Decode(&frame.Frame{Kind: frame.Text, Data: e}, &out); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(len(s.out)), "frames/op")
}
