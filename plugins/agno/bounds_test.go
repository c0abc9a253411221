package agno

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// feeder feeds a decoder.
type feeder struct {
	t   *testing.T
	d   decoder.Decoder
	s   *stream // its reader
	out decoder.Output
}

func feed(t *testing.T) *feeder {
	t.Helper()
	of, f := format(), &feeder{t: t}
	open := of.Open
	of.Open = func(r *record.Current, s *state) record.Reader {
		f.s = open(r, s).(*stream)
		return f.s
	}
	var err error
	if f.d, err = of.Factory().New(decoder.Stream{Origin: "feeder"}); err != nil {
		t.Fatal(err)
	}
	return f
}

// decode decodes a frame and returns the emitted messages.
func (f *feeder) decode(kind frame.Kind, name, format string, args ...any) []msg.Message {
	f.t.Helper()
	f.out.Reset()
	if err := f.d.Decode(&frame.Frame{Kind: kind, Name: name, Data: fmt.Appendf(nil, format, args...)}, &f.out); err != nil {
		f.t.Fatal(err)
	}
	if len(f.out.Problems) > 0 {
		f.t.Fatalf("problems: %v", f.out.Problems)
	}
	return f.out.Messages
}

func (f *feeder) event(format string, args ...any) []msg.Message {
	f.t.Helper()
	return f.decode(frame.Event, "", format, args...)
}

func (f *feeder) flush() []msg.Message {
	f.t.Helper()
	f.out.Reset()
	if err := f.d.Flush(&f.out); err != nil {
		f.t.Fatal(err)
	}
	return f.out.Messages
}

func (f *feeder) snapshot() int {
	f.t.Helper()
	b, err := f.d.(decoder.Snapshotter).Snapshot()
	if err != nil {
		f.t.Fatal(err)
	}
	return len(b)
}

// TestTenThousandOpenRuns: Flush emits the open text of every run when the stream ends in the
// middle.
func TestTenThousandOpenRuns(t *testing.T) {
	f := feed(t)
	const n = 10000
	for i := range n {
		f.event(`{"event":"RunStarted","run_id":"r%d","session_id":"s","created_at":1790000000}`, i)
	}
	for i := range n {
		f.event(`{"event":"RunContent","run_id":"r%d","session_id":"s","content":"text %d","content_type":"str"}`, i, i)
	}
	got := f.flush()
	if len(got) != n {
		t.Fatalf("%d messages, want %d", len(got), n)
	}
	for i := range got {
		if want := fmt.Sprintf("text %d", i); got[i].Content.String() != want || got[i].Complete != msg.Partial {
			t.Fatalf("message %d is %q (%v), want %q, partial", i, got[i].Content, got[i].Complete, want)
		}
	}
}

// TestMemoryIsBounded: runs, calls, requests and connections that never end are evicted
// beyond the limits, and each eviction emits its item.
func TestMemoryIsBounded(t *testing.T) {
	f := feed(t)
	emitted := 0
	for i := range maxRuns + maxRuns/4 {
		for range 2 {
			emitted += len(f.event(`{"event":"RunContent","run_id":"r%d","session_id":"s","content":"text","content_type":"str"}`, i))
		}
	}
	if n := len(f.s.Runs.Open); n > maxRuns || emitted == 0 || emitted+n < maxRuns+maxRuns/4 {
		t.Errorf("%d runs are open and %d texts were evicted", n, emitted)
	}

	f = feed(t)
	for i := range 4 * maxCalls {
		f.event(`{"event":"TeamToolCallStarted","run_id":"top","session_id":"s","tool":{"tool_call_id":"call-number-%d","tool_name":"delegate_task_to_member","tool_args":{"member_id":"m","task":"t"}}}`, i)
		f.event(`{"event":"TeamToolCallCompleted","run_id":"top","session_id":"s","tool":{"tool_call_id":"early-call-%d","tool_name":"look","result":"x"}}`, i)
		f.event(`{"event":"TeamTaskCreated","run_id":"top","session_id":"s","task_id":"t%d","title":"x"}`, i)
		f.event(`{"event":"TeamMemoryUpdateStarted","event_index":%d,"run_id":"top","session_id":"s"}`, 2*i)
	}
	r := f.s.Runs.get("top")
	for name, n := range map[string][2]int{
		"open calls": {len(r.Calls.open()), maxCalls}, "calls that are over": {len(r.Calls.List) - len(r.Calls.open()), maxCalls},
		"early results": {len(bounded.All(r.Calls.List, func(c *call) bool { return c.Early })), maxCalls},
		"delegations":   {len(bounded.All(r.Calls.List, func(c *call) bool { return c.Delegates })), maxCalls}, "tasks": {len(r.Calls.Tasks), maxTasks}, "ranges of indexes": {len(r.Index), conversation.MaxRanges},
	} {
		if n[0] > n[1] || n[0] == 0 {
			t.Errorf("%d %s are remembered, want %d at most", n[0], name, n[1])
		}
	}

	f = feed(t)
	emitted = 0
	for i := range 4 * maxPending {
		emitted += len(f.decode(frame.Request, "POST /agents/a/runs", `{"message":"question %d","session_id":"s"}`, i))
		emitted += len(f.decode(frame.Text, "", `{"event":"connected","message":"hello %d"}`, i))
	}
	if len(f.s.Pending) > maxPending || emitted+len(f.s.Pending) != 8*maxPending {
		t.Errorf("%d are pending and %d were emitted", len(f.s.Pending), emitted)
	}
	f.decode(frame.Close, "", "")
	if len(f.s.Pending) > 0 {
		t.Errorf("%d are pending after the end", len(f.s.Pending))
	}
}

// TestNoStateIsLeaked: a conversation that is over leaves ids and no more.
func TestNoStateIsLeaked(t *testing.T) {
	f := feed(t)
	for seed := range uint64(40) {
		g := newGenerator(seed)
		for _, fr := range g.frames {
			f.event("%s", fr.Data)
		}
		f.decode(frame.Body, "", "%s", document(t, g.stored).Data)
	}
	if len(f.s.Runs.Open) > 0 || f.s.Runs.text != 0 || len(f.s.Pending) > 0 || f.s.body != nil {
		t.Errorf("%d runs, %d bytes of text, %d pending, body %v", len(f.s.Runs.Open), f.s.Runs.text, len(f.s.Pending), f.s.body)
	}
}

// TestLongTexts: a text beyond the limit is emitted in parts; a value of ten megabytes is
// not.
func TestLongTexts(t *testing.T) {
	f := feed(t)
	long := strings.Repeat("0123456789abcdef", 10<<20/16)
	delta := `{"event":"RunContent","run_id":"r","session_id":"s","content":"` + long + `","content_type":"str"}`
	f.event("%s", delta)
	if got := f.event(`{"event":"ToolCallStarted","run_id":"r","session_id":"s","tool":{"tool_call_id":"the-only-call","tool_name":"x","tool_args":{"a":%q}}}`, long); got[0].Content.String() != long || got[1].Tool.Arguments.Len() < len(long) {
		t.Errorf("a long value is not kept")
	}
	var all strings.Builder
	keys := make(map[string]bool)
	parts := 0
	take := func(messages []msg.Message) {
		for _, m := range messages {
			if m.Kind == msg.Assistant {
				parts++
				keys[m.Key] = true
				all.WriteString(m.Content.String())
			}
		}
	}
	for range maxText/len(long) + 2 {
		take(f.event("%s", delta))
		if f.s.Runs.text > maxText {
			t.Fatalf("%d bytes of text wait", f.s.Runs.text)
		}
	}
	take(f.event(`{"event":"RunContent","run_id":"other","session_id":"s","content":"short","content_type":"str"}`))
	if parts > 1 && f.s.Runs.get("other").Text.Spilled > 0 {
		t.Error("a short text is emitted in parts, because another one is long")
	}
	take(f.event(`{"event":"RunCompleted","run_id":"r","session_id":"s"}`))
	if want := (maxText/len(long) + 2) * len(long); parts < 2 || len(keys) != parts || all.Len() != want {
		t.Errorf("%d parts, %d keys, %d bytes, want %d", parts, len(keys), all.Len(), want)
	}
}

// TestLongIdsAreNotRemembered: the state has the hash of a long id.
func TestLongIdsAreNotRemembered(t *testing.T) {
	f := feed(t)
	long := strings.Repeat("x", 1<<14)
	for i := range 50 {
		for _, format := range []string{
			`{"event":"TeamRunStarted","run_id":"%[1]d%[2]s","session_id":"%[1]d%[2]s","team_id":"%[2]s","team_name":"%[2]s","model":"%[2]s","model_provider":"%[2]s"}`,
			`{"event":"TeamToolCallStarted","run_id":"%[1]d%[2]s","tool":{"tool_call_id":"%[1]d%[2]s","tool_name":"%[2]s","tool_args":{}}}`,
			`{"event":"TeamTaskCreated","run_id":"%[1]d%[2]s","task_id":"%[1]d%[2]s","title":"x"}`,
			`{"event":"connected","run_id":"%[1]d%[2]s"}`,
		} {
			f.event(format, i, long)
		}
	}
	if n := f.snapshot(); n > 1<<18 {
		t.Errorf("the snapshot has %d bytes", n)
	}
}

// TestHostileBodies: the work on a body grows no faster than its size, for any references
// among its runs.
func TestHostileBodies(t *testing.T) {
	const n = 5000
	list := func(make func(i int) string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(make(i))
		}
		return b.String()
	}
	sprintf := func(format string) func(int) string {
		return func(i int) string { return fmt.Sprintf(format, i) }
	}
	for name, body := range map[string]string{
		"one id, its own parent's child": `[` + list(func(i int) string {
			return fmt.Sprintf(`{"run_id":"r%d","parent_run_id":"r%d","messages":[]}`, i%3, (i+1)%3)
		}) + `]`,
		"a chain": `[` + list(func(i int) string {
			return fmt.Sprintf(`{"run_id":"r%d","parent_run_id":"r%d","messages":[]}`, i, i+1)
		}) + `]`,
		"many answers without calls":  `[{"run_id":"r","messages":[` + list(sprintf(`{"role":"assistant","content":"text %d"}`)) + `]}]`,
		"many parts of one answer":    `[{"run_id":"r","messages":[{"role":"assistant","content":[` + list(sprintf(`{"text":"%d"}`)) + `]}]}]`,
		"many calls of one answer":    `[{"run_id":"r","messages":[{"role":"assistant","content":"x","tool_calls":[` + list(sprintf(`{"id":"the-call-number-%d","function":{"name":"n"}}`)) + `]}]}]`,
		"events that miss the pieces": `[{"run_id":"r","messages":[` + list(sprintf(`{"role":"assistant","content":"x","tool_calls":[{"id":"the-call-number-%d"}]}`)) + `],"events":[` + list(sprintf(`{"event":"ToolCallStarted","run_id":"r","tool":{"tool_call_id":"another-call-%d"}}`)) + `]}]`,
		"calls that no child answers": `[{"run_id":"r","messages":[{"role":"assistant","tool_calls":[` + list(sprintf(`{"id":"the-call-number-%d","function":{"name":"delegate_task_to_member","arguments":"{\"task\":\"none\"}"}}`)) + `]}]},` +
			list(sprintf(`{"run_id":"k%d","parent_run_id":"r","run_input":"other","messages":[]}`)) + `]`,
	} {
		begin := time.Now()
		f := feed(t)
		got := f.decode(frame.Body, "", "%s", body)
		if len(got) == 0 {
			t.Errorf("%s: no messages", name)
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("%s: %v for %d bytes", name, took, len(body))
		}
	}
}

// TestAnyOrder: frames that are repeated or reordered lose the facts that depend on the
// order, but no calls and no results before the end of their run.
func TestAnyOrder(t *testing.T) {
	for seed := range uint64(60) {
		g := newGenerator(seed)
		rnd := rand.New(rand.NewPCG(seed, 2))
		frames := slices.DeleteFunc(slices.Clone(g.frames), func(f frame.Frame) bool { return bytes.Contains(f.Data, []byte("RunCompleted")) })
		want := callsOf(play(t, frames...))
		frames = append(frames, frames[:len(frames)/3]...)
		rnd.Shuffle(len(frames), func(i, j int) { frames[i], frames[j] = frames[j], frames[i] })
		if got := callsOf(play(t, frames...)); !slices.Equal(got, want) {
			t.Fatalf("seed %d: calls and results %q, want %q", seed, got, want)
		}
	}
}

func callsOf(messages []msg.Message) []string {
	var keys []string
	for _, m := range messages {
		switch m.Kind {
		case msg.ToolCall, msg.ToolResult, msg.Delegation, msg.DelegationResult:
			keys = append(keys, m.Key+" "+m.Kind.String()+" "+m.Content.String())
		}
	}
	slices.Sort(keys)
	return keys
}

// TestSnapshotInTheMiddle: a decoder restored from any snapshot of a random conversation
// emits the same messages; the suite does the same for every case.
func TestSnapshotInTheMiddle(t *testing.T) {
	for seed := range uint64(40) {
		g := newGenerator(seed)
		f := feed(t)
		var all []msg.Message
		for i, fr := range g.frames {
			for _, m := range f.event("%s", fr.Data) {
				m.Content, m.Tool.Arguments, m.Delegation.Task = m.Content.Own(), m.Tool.Arguments.Own(), m.Delegation.Task.Own()
				all = append(all, m)
			}
			if i%5 != 0 {
				continue
			}
			b, err := f.d.(decoder.Snapshotter).Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			f = feed(t)
			if b == nil {
				continue
			}
			if !json.Valid(b) {
				t.Fatal("the snapshot is not JSON")
			}
			if err := f.d.(decoder.Snapshotter).Restore(b); err != nil {
				t.Fatal(err)
			}
		}
		same(t, fmt.Sprint("seed ", seed), play(t, g.frames...), msg.Fold(all))
	}
}
