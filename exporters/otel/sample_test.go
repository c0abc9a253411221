package otel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

// sent is an exporter that keeps the ids of the spans, and fails as fail decides.
type sent struct {
	spans map[msg.SpanID]int
	texts []string // of messages
	fail  func(*export.Batch) error
}

func (x *sent) Export(_ context.Context, b *export.Batch) error {
	if x.fail != nil {
		if err := x.fail(b); err != nil {
			return err
		}
	}
	for i := range b.Spans {
		x.spans[b.Spans[i].ID]++
	}
	for i := range b.Messages {
		x.texts = append(x.texts, b.Messages[i].Session+": "+b.Messages[i].Content.String())
	}
	return nil
}

func (x *sent) Close(context.Context) error { return nil }

// began is when the clocks of samplers begin: long ago, so that a time of the machine's clock among theirs shows.
var began = time.Unix(1e9, 0)

// trial is a sampler whose clock the test moves.
type trial struct {
	*testing.T
	far  *sent
	s    *sampler
	file string
	at   time.Time
	set  Sample
	n    int
}

func newTrial(t *testing.T, set func(*Sample)) *trial {
	tr := &trial{T: t, far: &sent{spans: make(map[msg.SpanID]int)}, file: filepath.Join(t.TempDir(), "sample", "otlp.jsonl"), at: began}
	tr.set.SetDefaults()
	if set != nil {
		set(&tr.set)
	}
	tr.start()
	return tr
}

func (t *trial) now() time.Time { return t.at }

// start begins the process, again.
func (t *trial) start() {
	t.Helper()
	if t.s != nil {
		if err := t.s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s, err := newSampler(t.far, t.set, t.file, true, t.now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.s = s
	t.Cleanup(func() { _ = s.Close(context.Background()) })
}

func (t *trial) export(spans ...msg.Span) {
	t.Helper()
	t.n++
	if err := t.s.Export(t.Context(), &export.Batch{ID: fmt.Sprintf("%032d", t.n), Spans: exporttest.Records(spans...)}); err != nil {
		t.Fatal(err)
	}
}

// pause lets the undecided conversations be decided.
func (t *trial) pause() {
	t.Helper()
	t.at = t.at.Add(time.Duration(t.set.Wait))
	t.export()
}

// span is a call in a turn of a session.
func span(session, turn, call string) msg.Span {
	return msg.Span{
		Tenant: "default", Format: "legion", Source: "harbour", Session: session, Run: turn, Kind: msg.SpanTool, State: msg.SpanClosed, Outcome: msg.OutcomeOK,
		TraceID: msg.NewTraceID("default", "legion", session, turn), ID: msg.NewSpanID("default", "legion", session, msg.SpanTool, turn+"/"+call),
		Start: 1e18, End: 1e18 + int64(time.Second), Tool: msg.Tool{Name: "tides", CallID: call},
	}
}

func failed(s msg.Span) msg.Span { s.Outcome = msg.OutcomeError; return s }

// sound holds what the sampler counts and finds to its conversations, and these to what another process would read from the
// file. Nothing may be pending.
func (t *trial) sound() {
	t.Helper()
	file := filepath.Join(t.TempDir(), "copy.jsonl")
	data, err := os.ReadFile(t.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := newSampler(t.far, t.set, file, true, t.now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer again.file.close()
	for _, s := range []*sampler{t.s, again} {
		var size, spans int64
		names, quiet := 0, time.Time{}
		for c := range s.all {
			if (c.in == s.open) != (c.decision == undecided) {
				t.Errorf("%s: it is %q, in the list of the others", c.names[0], c.decision)
			}
			if c.in == s.open && c.last.Before(quiet) {
				t.Errorf("%s: it was quiet for longer than the one before", c.names[0])
			} else if c.in == s.open {
				quiet = c.last
			}
			for _, h := range c.held {
				size, spans = size+int64(len(h.batch)), spans+h.spans
			}
			for _, name := range c.names {
				if names++; s.of[name] != c {
					t.Errorf("%s: %s is of another conversation", c.names[0], name)
				}
			}
		}
		if n := s.Sampled().Held; s.size != size || n != spans || len(s.of) != names {
			t.Errorf("%d bytes of %d spans of %d names by its counts, but %d of %d of %d", s.size, n, len(s.of), size, spans, names)
		}
	}
	if len(again.of) != len(t.s.of) {
		t.Errorf("the file has %d names, want %d", len(again.of), len(t.s.of))
	}
	for c := range t.s.all {
		d := again.find(c.names)
		if d == nil || d.decision != c.decision || !slices.Equal(slices.Sorted(slices.Values(c.names)), slices.Sorted(slices.Values(d.names))) {
			t.Errorf("%q, %q, %d held is %+v in the file", c.names, c.decision, len(c.held), d)
			continue
		}
		batches := func(c *conversation) (list []string) {
			for _, h := range c.held {
				list = append(list, string(h.batch))
			}
			slices.Sort(list)
			return list
		}
		if !slices.Equal(batches(c), batches(d)) {
			t.Errorf("%s: %d batches are held, %d are in the file", c.names[0], len(c.held), len(d.held))
		}
	}
}

// want holds the sent spans to a list, each of them once.
func (t *trial) want(spans ...msg.Span) {
	t.Helper()
	want := make(map[msg.SpanID]int)
	for i := range spans {
		want[spans[i].ID] = 1
	}
	if !maps.Equal(want, t.far.spans) {
		t.Errorf("sent %d spans, want %d", len(t.far.spans), len(want))
	}
}

// TestOutcomesAreKept: a conversation is sent, from its first span, when one of its spans failed or was
// slow, or a verdict found it stuck; late spans follow the decision.
func TestOutcomesAreKept(t *testing.T) {
	first, second, late := span("s", "1", "a"), span("s", "2", "b"), span("s", "3", "c")
	slow := span("s", "2", "b")
	slow.End = slow.Start + int64(time.Hour)
	stuck := func(name string) *export.Batch {
		return &export.Batch{ID: "v", Verdicts: []msg.Verdict{{Tenant: "default", Session: "s", TraceID: first.TraceID, Name: name}}}
	}
	spans := func(list ...msg.Span) *export.Batch {
		return &export.Batch{ID: "v", Spans: exporttest.Records(list...)}
	}
	below, link, linked := span("other", "1", "b"), span("s", "1", "c"), span("other", "2", "c") // of another session, in its trace, and in that of the first one
	link.TraceID, linked.TraceID = below.TraceID, first.TraceID
	quick, open, ofNone := slow, slow, stuck("budget_spent")
	quick.End = quick.Start + int64(30*time.Second)
	open.State = msg.SpanOpen
	ofNone.Verdicts[0].Session = ""
	for name, c := range map[string]struct {
		then *export.Batch
		kept bool
		set  func(*Sample)
	}{
		"nothing": {spans(second), false, nil}, "an error": {spans(failed(second)), true, nil},
		"slow": {spans(slow), true, nil}, "stuck": {stuck("tool_running"), true, nil}, "waits": {stuck("waiting_person"), false, nil}, "healthy": {stuck("healthy"), false, nil},
		"as slow as it may be": {spans(quick), false, nil}, "open for long": {spans(open), false, nil}, "a verdict of no session": {ofNone, false, nil},
		"errors do not count": {spans(failed(second)), false, func(s *Sample) { s.Errors = false }}, "the time does not count": {spans(slow), false, func(s *Sample) { s.Slow = 0 }},
		"verdicts do not count":    {stuck("tool_running"), false, func(s *Sample) { s.Stuck = false }},
		"one that another took in": {spans(failed(below), link), true, nil},
		"one that took in another": {spans(failed(second), below, linked), true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTrial(t, func(s *Sample) {
				if s.Slow = spec.Duration(30 * time.Second); c.set != nil {
					c.set(s)
				}
			})
			tr.export(first)
			tr.want()
			if err := tr.s.Export(t.Context(), c.then); err != nil {
				t.Fatal(err)
			}
			tr.pause()
			tr.export(late)
			all := []msg.Span{first, late}
			for _, s := range c.then.Spans {
				all = append(all, *s)
			}
			if !c.kept {
				tr.export(failed(span("s", "4", "d"))) // it was decided
				all = nil
			}
			tr.want(all...)
			n := tr.s.Sampled()
			lost := int64(0)
			if !c.kept {
				lost = 3 // the first one, and two late ones
				for i := range c.then.Spans {
					if exportable(c.then.Spans[i]) {
						lost++
					}
				}
			}
			if n != (export.Sampling{Kept: int64(len(all)), Dropped: lost}) {
				t.Errorf("%+v, of which %d are sent", n, len(all))
			}
		})
	}
}

// TestContentsAreHeld: the messages of a conversation are sent with its spans, once it is kept, and those of others are not; without content none are held.
func TestContentsAreHeld(t *testing.T) {
	for _, content := range []bool{true, false} {
		tr := newTrial(t, nil)
		tr.s.content = content
		say := func(session, turn, text string) msg.Message {
			s := span(session, turn, "a")
			return msg.Message{Session: session, Run: turn, Kind: msg.User, Content: msg.Plain(text), Host: msg.Host{Tenant: s.Tenant, Format: s.Format, TraceID: s.TraceID, ID: msg.ID{byte(len(text))}}}
		}
		offer := func(id string, b export.Batch) {
			t.Helper()
			b.ID = strings.Repeat(id, 32)
			if err := tr.s.Export(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
		}
		offer("1", export.Batch{Messages: exporttest.Records(say("kept", "1", "first"), say("dropped", "1", "first of it")), Spans: exporttest.Records(span("kept", "1", "a"), span("dropped", "1", "a"))})
		if len(tr.far.texts) != 0 {
			t.Errorf("sent %q before it is decided", tr.far.texts)
		}
		offer("2", export.Batch{Messages: exporttest.Records(say("kept", "2", "the second")), Spans: exporttest.Records(failed(span("kept", "2", "b")))})
		tr.pause()
		offer("3", export.Batch{Messages: exporttest.Records(say("kept", "3", "after that"), say("dropped", "2", "too late")), Spans: exporttest.Records(span("kept", "3", "c"), span("dropped", "2", "c"))})
		tr.want(span("kept", "1", "a"), span("kept", "2", "b"), span("kept", "3", "c"))
		want := []string{"kept: first", "kept: the second", "kept: after that"}
		if !content {
			want = nil
		}
		if !slices.Equal(tr.far.texts, want) {
			t.Errorf("content %t: sent %q, want %q", content, tr.far.texts, want)
		}
	}
}

// TestConversationsAreWholeOrAbsent draws conversations of several sessions and turns, restarts,
// pauses and failures of the receiver: of each conversation all spans are sent, or none.
func TestConversationsAreWholeOrAbsent(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 20))
			tr := newTrial(t, func(s *Sample) { s.Share = 0.2 })
			down := false
			tr.far.fail = func(*export.Batch) error {
				if down = !down && r.IntN(4) == 0; down {
					return errors.New("down")
				}
				return nil
			}
			of, bad := make(map[msg.SpanID]int), make(map[int]bool)
			var queues [][]msg.Span
			for c := range 30 {
				var q []msg.Span
				bad[c] = r.IntN(5) == 0
				sessions := 1 + r.IntN(3)
				for n := range 3 + r.IntN(10) {
					s := span(fmt.Sprint("s", seed, "-", c), fmt.Sprint(n%3), fmt.Sprint(n))
					if k := r.IntN(sessions); k > 0 && n >= 3 { // an agent that a call started: its session, in the caller's trace
						s.Session += fmt.Sprint("-", k)
					}
					if of[s.ID] = c; bad[c] && n == 2 {
						s = failed(s)
					}
					bad[c] = bad[c] || inShare("default", s.Session, 0.2)
					q = append(q, s)
				}
				r.Shuffle(len(q), func(i, j int) { q[i], q[j] = q[j], q[i] })
				queues = append(queues, q)
			}
			for len(queues) > 0 {
				b := &export.Batch{ID: fmt.Sprintf("%032d", r.Uint64())}
				for range 1 + r.IntN(8) {
					if len(queues) == 0 {
						break
					}
					i := r.IntN(len(queues))
					if b.Spans, queues[i] = append(b.Spans, new(queues[i][0])), queues[i][1:]; len(queues[i]) == 0 {
						queues = slices.Delete(queues, i, i+1)
					}
				}
				for tr.s.Export(t.Context(), b) != nil {
					continue
				}
				if tr.at = tr.at.Add(time.Second); r.IntN(4) == 0 {
					tr.sound()
					tr.start()
				}
			}
			tr.at = tr.at.Add(time.Hour)
			for tr.s.Export(t.Context(), &export.Batch{ID: "end"}) != nil {
				continue
			}
			for id, c := range of {
				if n := tr.far.spans[id]; (n > 0) != bad[c] {
					t.Errorf("a span of conversation %d, which is to be kept: %t, was sent %d times", c, bad[c], n)
				}
			}
		})
	}
}

// TestShare: the share of the sessions that are kept is within four standard deviations, and every
// receiver keeps the same ones.
func TestShare(t *testing.T) {
	const n = 20_000
	for _, share := range []float64{0, 0.01, 0.1, 0.5, 1} {
		in := 0
		for i := range n {
			if inShare("default", fmt.Sprint("session ", i), share) {
				in++
			}
		}
		if off := math.Abs(float64(in) - n*share); off > 4*math.Sqrt(n*share*(1-share)) {
			t.Errorf("%d of %d with a share of %g", in, n, share)
		}
	}
	var kept []map[msg.SpanID]int
	for range 2 {
		tr := newTrial(t, func(s *Sample) { s.Share = 0.3 })
		for i := range 200 {
			tr.export(span(fmt.Sprint(i), "1", "a"))
		}
		kept = append(kept, tr.far.spans)
	}
	if !maps.Equal(kept[0], kept[1]) || len(kept[0]) == 0 {
		t.Errorf("%d and %d sessions", len(kept[0]), len(kept[1]))
	}
}

// TestUndecidedSurvive: spans that are held, and decisions, are known after a kill in the middle of a
// line and after the file was written again; an erasure leaves no byte of a session.
func TestUndecidedSurvive(t *testing.T) {
	tr := newTrial(t, nil)
	tr.export(span("held", "1", "a"), span("erased", "1", "a"))
	tr.export(span("dropped", "1", "a"))
	tr.s.settle(tr.s.find(namesOf("default", "dropped", msg.TraceID{})), dropped)
	tr.export()
	f, err := os.OpenFile(tr.file, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"names":["a"` + "\n{}\n" + `{"names":["b"]}` + "\n"); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	tr.start()
	if err := tr.s.Rewrite(func(b *export.Batch) bool {
		n := len(b.Spans)
		b.Spans = slices.DeleteFunc(b.Spans, func(s *msg.Span) bool { return s.Session == "erased" })
		return len(b.Spans) != n
	}); err != nil {
		t.Fatal(err)
	}
	tr.sound()
	tr.start()
	if n := tr.s.Sampled(); n.Held != 1 || tr.s.find([]string{"a"}) != nil || tr.s.find([]string{"b"}) != nil {
		t.Errorf("%+v", n)
	}
	tr.sound()
	tr.export(failed(span("held", "2", "b")), failed(span("erased", "2", "b")), failed(span("dropped", "2", "b")))
	tr.want(span("held", "1", "a"), span("held", "2", "b"), span("erased", "2", "b"))
	size := tr.s.file.size
	if tr.export(span("dropped", "1", "a")); tr.s.file.size != size {
		t.Errorf("a late span of what is decided added %d bytes", tr.s.file.size-size)
	}
	tr.export(span("held", "1", "c"))
	if tr.s.file.size != size {
		t.Errorf("a late span of what is kept added %d bytes", tr.s.file.size-size)
	}
}

// TestHeldIsBounded: over max_size the conversation that was quiet for longest is dropped, and counted.
func TestHeldIsBounded(t *testing.T) {
	tr := newTrial(t, func(s *Sample) { s.MaxSize = 64 << 10 })
	for i := range 200 {
		tr.export(span(fmt.Sprint(i), "1", "a"))
		if tr.s.size > 64<<10 {
			t.Fatalf("%d bytes are held", tr.s.size)
		}
	}
	n := tr.s.Sampled()
	if n.Dropped == 0 || n.Held == 0 || n.Dropped+n.Held != 200 {
		t.Errorf("%+v", n)
	}
	tr.export(failed(span("0", "2", "b")), failed(span("199", "2", "b")))
	tr.want(span("199", "1", "a"), span("199", "2", "b"))
}

// TestTheFileIsWrittenAgainWhenItHasGrown: the file of held messages has a bound by its contents, and is not written again for each batch.
func TestTheFileIsWrittenAgainWhenItHasGrown(t *testing.T) {
	tr := newTrial(t, func(s *Sample) { s.Wait = spec.Duration(time.Second) })
	stays := span("stays", "1", "a")
	stays.Tool.Name = strings.Repeat("tide ", 200_000)
	tr.export(stays)
	info := func() os.FileInfo {
		i, err := os.Stat(tr.file)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	first, written, most := info(), 0, int64(0)
	for n := range 120 {
		s := span(fmt.Sprint("goes ", n), "1", "a")
		s.Tool.Name = strings.Repeat("ebb ", 10_000)
		tr.at = tr.at.Add(500 * time.Millisecond)
		tr.export(s, span("stays", "1", fmt.Sprint(n)))
		now := info()
		if !os.SameFile(first, now) {
			first, written = now, written+1
		}
		most = max(most, now.Size())
	}
	if written < 2 || written > 8 || most > 5<<20 {
		t.Errorf("written again %d times, and had %d bytes", written, most)
	}
	tr.sound()
}

// TestNamesAreBounded: of more conversations than are known, those that were decided first are forgotten; then the undecided
// one that was quiet for longest is dropped.
func TestNamesAreBounded(t *testing.T) {
	far := &sent{spans: make(map[msg.SpanID]int)}
	set := Sample{}
	set.SetDefaults()
	at, n := began, 0
	s, err := newSampler(far, set, "", false, func() time.Time { return at }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	offer := func(spans ...msg.Span) {
		t.Helper()
		n++
		if err := s.Export(t.Context(), &export.Batch{ID: fmt.Sprintf("%032d", n), Spans: exporttest.Records(spans...)}); err != nil {
			t.Fatal(err)
		}
	}
	fill := func(prefix string, n int) {
		t.Helper()
		var list []msg.Span
		for i := range n {
			s := span(fmt.Sprint(prefix, i), "1", "a")
			s.Amends = true // nothing is held of it
			list = append(list, s)
		}
		offer(list...)
	}
	const conversations = maxNames / 2 // of a session and a trace each
	fill("decided ", conversations/2)
	at = at.Add(time.Duration(set.Wait))
	offer(span("open", "1", "a"))
	if len(s.of) != conversations+2 || s.decided.Len() != conversations/2 {
		t.Fatalf("%d names are known, %d conversations are decided", len(s.of), s.decided.Len())
	}
	fill("open ", conversations/2)
	known := func(session string) bool { return s.find(namesOf("default", session, msg.TraceID{})) != nil }
	if len(s.of) != maxNames || known("decided 0") || !known("decided 1") || !known("open") {
		t.Errorf("%d names are known; decided 0: %t, decided 1: %t, open: %t", len(s.of), known("decided 0"), known("decided 1"), known("open"))
	}
	fill("other ", conversations/2)
	if len(s.of) != maxNames || s.decided.Len() != 0 || known("open") || !known("open 0") || s.Sampled().Held != 0 {
		t.Errorf("%d names are known, %d conversations are decided; open: %t, open 0: %t; %+v", len(s.of), s.decided.Len(), known("open"), known("open 0"), s.Sampled())
	}
	offer(failed(span("open", "2", "b")), failed(span("other 0", "2", "b")))
	if far.spans[span("open", "1", "a").ID] != 0 || far.spans[span("open", "2", "b").ID] != 1 || far.spans[span("other 0", "2", "b").ID] != 1 {
		t.Errorf("sent: %d", len(far.spans))
	}
}

// TestARefusedRecordIsFound: the halves of a refused batch are not held a second time, and a refused
// record that was held keeps no other back.
func TestARefusedRecordIsFound(t *testing.T) {
	refused := span("bad", "1", "refused").ID
	tr := newTrial(t, nil)
	tr.far.fail = func(b *export.Batch) error {
		if slices.ContainsFunc(b.Spans, func(s *msg.Span) bool { return s.ID == refused }) {
			return export.Permanent(errors.New("not that one"))
		}
		return nil
	}
	tr.export(span("bad", "1", "a"), span("bad", "1", "refused"), span("bad", "1", "b"))
	tr.export(failed(span("bad", "1", "c")))
	tr.want(span("bad", "1", "a"), span("bad", "1", "b"), span("bad", "1", "c"))

	refused = span("bad", "2", "refused").ID
	b := &export.Batch{ID: strings.Repeat("c", 32), Spans: exporttest.Records(span("bad", "2", "refused"), span("other", "1", "a"), span("bad", "2", "b"))}
	var offer func(b *export.Batch) int
	offer = func(b *export.Batch) (lost int) {
		switch err := tr.s.Export(t.Context(), b); {
		case err == nil:
		case b.Len() == 1:
			lost++
		default:
			for _, h := range b.Halves() {
				lost += offer(h)
			}
		}
		return lost
	}
	if lost := offer(b); lost != 1 || tr.s.Sampled().Held != 1 {
		t.Errorf("%d lost, %+v", lost, tr.s.Sampled())
	}
	tr.want(span("bad", "1", "a"), span("bad", "1", "b"), span("bad", "1", "c"), span("bad", "2", "b"))
}

// TestTheFileFails: a message that cannot be kept is not accepted, and is there once when it is offered again, also if the file was written again in between.
func TestTheFileFails(t *testing.T) {
	for _, rewritten := range []bool{false, true} {
		tr := newTrial(t, nil)
		tr.export(span("held", "1", "a"))
		file := tr.s.file.f
		broken, err := os.Open(tr.file) // for reading alone
		if err != nil {
			t.Fatal(err)
		}
		defer broken.Close()
		tr.s.file.f = broken
		b := &export.Batch{ID: strings.Repeat("b", 32), Spans: exporttest.Records(span("held", "1", "b"), failed(span("kept", "1", "c")))}
		for range 2 {
			if err := tr.s.Export(t.Context(), b); err == nil {
				t.Error("spans were accepted")
			}
		}
		tr.want()
		if tr.s.file.f = file; rewritten {
			if err := tr.s.Rewrite(func(*export.Batch) bool { return true }); err != nil {
				t.Fatal(err)
			}
		}
		if err := tr.s.Export(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		tr.want(span("kept", "1", "c"))
		if n := tr.s.Sampled().Held; n != 2 {
			t.Errorf("%d spans are held, rewritten: %t", n, rewritten)
		}
		tr.sound()
		for _, path := range []string{t.TempDir(), filepath.Join(tr.file, "sample.jsonl")} {
			if _, err := newSampler(tr.far, tr.set, path, true, tr.now, slog.New(slog.DiscardHandler)); err == nil {
				t.Errorf("%s is no error", path)
			}
		}
	}
}
