package otlp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// profile is that of the GenAI conventions alone.
func profile() *Profile {
	return &Profile{Name: "test", Names: GenAI, Rules: GenAIRules, Event: GenAIEvent, LeavesOut: []byte("[]")}
}

// span is a line with one span, at a second of the trace.
func span(id, parent string, start, end int, attributes string) string {
	return fmt.Sprintf(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"%016s","parentSpanId":"%s","name":"s%s",`+
		`"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[%s]}]}]}]}`, id, strings.Repeat("0", 16-len(parent))+parent, id, start*1e9, end*1e9, attributes)
}

func attribute(name, value string) string {
	return fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, name, value)
}

// play decodes lines and the end of the stream, perhaps with a flush and a restart after each, and returns the folded messages.
func play(t *testing.T, lines []string, restarts bool) []string {
	t.Helper()
	d, err := profile().Factory().New(decoder.Stream{})
	if err != nil {
		t.Fatal(err)
	}
	var out decoder.Output
	for _, line := range lines {
		if err := d.Decode(&frame.Frame{Kind: frame.Line, Data: []byte(line)}, &out); err != nil {
			t.Fatal(err)
		}
		if !restarts {
			continue
		}
		var open decoder.Output
		if err := d.Flush(&open); err != nil {
			t.Fatal(err)
		}
		state, err := d.(decoder.Snapshotter).Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if d, err = profile().Factory().New(decoder.Stream{}); err != nil {
			t.Fatal(err)
		}
		if err := d.(decoder.Snapshotter).Restore(state); state != nil && err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Decode(&frame.Frame{Kind: frame.Close, Name: frame.Lost}, &out); err != nil || len(out.Problems) > 0 {
		t.Fatal(err, out.Problems)
	}
	var got []string
	for _, m := range msg.Fold(out.Messages) {
		if m.Signal == msg.RunStart { // a run whose agent's span follows late is marked where it began
			continue
		}
		got = append(got, fmt.Sprintf("%s %s %s in %s of %s, tokens %v, to %q %s, %q", m.Kind, m.Key, m.Complete, m.Run, m.Session, m.Usage, m.Delegation.To, m.Delegation.ChildRun, m.Content.String()))
	}
	slices.Sort(got)
	return got
}

// TestOrderDoesNotMatter: the spans of a trace in any order that ends with the root, repeated by a client, with flushes and restarts
// between them, are the same messages; and each response counts once.
func TestOrderDoesNotMatter(t *testing.T) {
	chat := func(id string) string {
		return strings.Join([]string{attribute("gen_ai.operation.name", "chat"), attribute("gen_ai.request.model", "small"), attribute("gen_ai.response.id", id),
			attribute("gen_ai.usage.input_tokens", "10"), attribute("gen_ai.usage.output_tokens", "2")}, ",")
	}
	agent := func(name string) string {
		return strings.Join([]string{attribute("gen_ai.operation.name", "invoke_agent"), attribute("gen_ai.agent.name", name), attribute("gen_ai.usage.input_tokens", "99"),
			attribute("gen_ai.usage.output_tokens", "9")}, ",")
	}
	tool := func(name, call string) string {
		return strings.Join([]string{attribute("gen_ai.operation.name", "execute_tool"), attribute("gen_ai.tool.name", name), attribute("gen_ai.tool.call.id", call)}, ",")
	}
	spans := []string{
		span("2", "1", 1, 2, chat("r1")), span("3", "1", 3, 9, tool("ask", "c1")), span("4", "3", 4, 8, agent("child")), span("5", "4", 5, 6, chat("r2")),
		span("6", "4", 6, 7, tool("look", "c2")), span("7", "6", 6, 7, attribute("db.system", "sqlite")), span("8", "1", 9, 10, chat("r3")),
	}
	root := span("1", "", 0, 11, agent("parent")+","+attribute("gen_ai.conversation.id", "conv"))
	want := play(t, append(slices.Clone(spans), root), false)
	tokens := 0
	for _, line := range want {
		if strings.HasPrefix(line, "usage") {
			tokens += 12
		}
		if !strings.Contains(line, "of conv,") {
			t.Errorf("another session: %s", line)
		}
	}
	if tokens != 36 {
		t.Errorf("%d tokens, want those of three responses", tokens)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		lines := slices.Clone(spans)
		if round%3 == 0 {
			lines = append(lines, spans[random.IntN(len(spans))], spans[random.IntN(len(spans))])
		}
		random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		lines = append(lines, root, root)
		if d := cmp.Diff(want, play(t, lines, round%2 == 0)); d != "" {
			t.Fatalf("round %d (-want +got):\n%s", round, d)
		}
	}
}

// TestMissingParents: without the root, and without an agent in the middle, everything is there and the runs are marked.
func TestMissingParents(t *testing.T) {
	conv := "," + attribute("gen_ai.conversation.id", "conv")
	got := play(t, []string{
		span("2", "1", 1, 2, attribute("gen_ai.operation.name", "chat")+","+attribute("gen_ai.response.id", "r1")+","+attribute("gen_ai.usage.input_tokens", "5")+conv),
		span("6", "4", 6, 7, attribute("gen_ai.operation.name", "execute_tool")+","+attribute("gen_ai.tool.name", "look")+","+attribute("gen_ai.tool.call.id", "c2")),
	}, false)
	all := strings.Join(got, "\n")
	for _, want := range []string{"usage usage:r1 complete in 4bf92f3577b34da6a3ce929d0e0e4736/0000000000000001 of conv", "call:4bf92f3577b34da6a3ce929d0e0e4736/call/c2 complete in 4bf92f3577b34da6a3ce929d0e0e4736/0000000000000004 of conv"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is not in\n%s", want, all)
		}
	}
}
