package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
	"github.com/earshot-dev/earshot/plugins"
)

// pauses are the events behind a frame of a stream. The zero value is a stream that is read
// without a pause, as a backfill reads it.
type pauses struct {
	name    string
	flush   func(*rand.Rand) bool // it is silent for long enough to be flushed
	commit  func(*rand.Rand) bool // a commit batch is closed
	finish  func(*rand.Rand) bool // a run until idle ends here, and the next goes on
	restart func(*rand.Rand) bool // the sidecar begins again from its checkpoint
}

func always(*rand.Rand) bool { return true }

func oneIn(n int) func(*rand.Rand) bool { return func(r *rand.Rand) bool { return r.IntN(n) == 0 } }

// TestPausesDoNotShow is the law that the rows of a stored stream do not depend on how it was
// read: with pauses in which its decoder was flushed, in commit batches, runs and processes of
// any length, or from its beginning to its end without a pause.
//
// The race detector makes it take several times as long. Under it every sixth case of a format is replayed; make test replays all
// without it.
func TestPausesDoNotShow(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(plugins.Bundled())) {
		factory := plugins.Bundled()[name]()
		cases, err := conformance.Load(os.DirFS(filepath.Join("../../../plugins", name, "testdata")))
		if err != nil {
			t.Fatal(err)
		}
		var all []recording
		runs := make(map[string]bool)
		for i, c := range cases {
			if raceDetector && i%6 != 0 {
				continue
			}
			recordings := []recording{{c.Name, factory, c.Stream, c.Frames, c.Frames[0].Kind != frame.Line}}
			if !known(t, recordings[0], runs) { // a run is of one stream
				all = append(all, recordings[0])
			}
			if c.Reload != nil {
				recordings = append(recordings, recording{c.Name + "_reload", factory, c.ReloadStream, c.Reload, true})
			}
			for _, h := range recordings {
				t.Run(name+"/"+h.name, func(t *testing.T) { law(t, h) })
			}
		}
		for some := range slices.Chunk(all, 8) { // more runs of one session than are remembered are forgotten
			t.Run(name+"/at_once", func(t *testing.T) { law(t, some...) })
		}
	}
}

// TestForksWithPauses is the law for a transcript, a fork of it and a fork of that: which turns are copies is known
// when those of the original have ended, and the forks are decoded again.
func TestForksWithPauses(t *testing.T) {
	factory := plugins.Bundled()["claude-code"]()
	transcript := func(session string, turns ...int) (frames []frame.Frame) {
		end := int64(0)
		for _, n := range turns {
			line := func(part, kind, rest string) {
				data := fmt.Appendf(nil, `{"parentUuid":null,"sessionId":%q,"version":"2.1.60","type":%q,"uuid":"u%d%s","timestamp":"2026-05-01T08:%02d:0%s.000Z",%s}`, session, kind, n, part, n, part, rest)
				frames = append(frames, frame.Frame{Kind: frame.Line, Pos: end, End: end + int64(len(data)) + 1, Data: data})
				end += int64(len(data)) + 1
			}
			line("0", "user", fmt.Sprintf(`"promptId":"prompt-%d","message":{"role":"user","content":"Weigh sack %d."}`, n, n))
			line("2", "assistant", fmt.Sprintf(`"requestId":"req-%d","message":{"id":"msg-%d","type":"message","role":"assistant","model":"claude-opus-4-1","content":[{"type":"text","text":"%d kg."}],"stop_reason":"end_turn","usage":{"input_tokens":%d,"output_tokens":5}}`, n, n, n, n))
		}
		return frames
	}
	var all []recording
	for i, turns := range [][]int{{1, 2, 3}, {1, 2, 4}, {1, 2, 4, 5}} {
		name := fmt.Sprintf("%d", i)
		all = append(all, recording{name, factory, decoder.Stream{Source: "recorded", Origin: name + ".jsonl"}, transcript("session-"+name, turns...), false})
	}
	law(t, all...)
	want := replayed(t, pauses{}, all)
	if got := replayed(t, pauses{flush: always, commit: always, restart: always}, all); got != want {
		t.Errorf("a restart after every frame (-without a pause +so):\n%s", differ(want, got))
	}
}

// recording is a recorded stream; journalled unless it is of a file.
type recording struct {
	name       string
	factory    decoder.Factory
	stream     decoder.Stream
	frames     []frame.Frame
	journalled bool
}

// known reports whether the stream has one of the runs, and adds its own.
func known(t *testing.T, h recording, runs map[string]bool) (known bool) {
	d, err := h.factory.New(h.stream)
	var out decoder.Output
	for i := 0; i < len(h.frames) && err == nil; i++ {
		err = d.Decode(&h.frames[i], &out)
	}
	if err == nil {
		err = d.Flush(&out)
	}
	if err != nil {
		t.Fatal(err)
	}
	own := make(map[string]bool)
	for i := range out.Messages {
		run := out.Messages[i].Session + " " + out.Messages[i].Run
		known, own[run] = known || runs[run], true
	}
	maps.Copy(runs, own)
	return known
}

func law(t *testing.T, recordings ...recording) {
	t.Parallel()
	want := replayed(t, pauses{}, recordings)
	for _, p := range []pauses{
		{name: "a flush and a commit after every frame", flush: always, commit: always},
		{name: "flushes here and there", flush: oneIn(3), commit: oneIn(3)},
		{name: "runs until idle", flush: oneIn(6), finish: oneIn(4)},
		{name: "restarts", flush: oneIn(2), commit: oneIn(2), finish: oneIn(8), restart: oneIn(4)},
	} {
		if got := replayed(t, p, recordings); got != want {
			t.Errorf("%s (-without a pause +so):\n%s", p.name, differ(want, got))
		}
	}
}

// replayed has a sidecar read the streams, in turns that do not depend on the pauses, and
// returns the rows of the tables.
func replayed(t *testing.T, p pauses, recordings []recording) string {
	rng, turns := rand.New(rand.NewPCG(1, 7)), rand.New(rand.NewPCG(2, 7))
	happens := func(f func(*rand.Rand) bool) bool { return f != nil && f(rng) }
	w := &sidecar{t: t, tables: newShown(), check: checkpoints{streams: map[string]checkpoint.Stream{}, groups: map[string][]byte{}}}
	for i, h := range recordings {
		w.streams = append(w.streams, &testStream{recording: h, key: fmt.Sprint(h.name, i)})
	}
	w.begin()
	for left := slices.Clone(w.streams); len(left) > 0; {
		i := turns.IntN(len(left))
		s := left[i]
		s.read++
		w.deliver()
		if happens(p.flush) {
			w.flush(s)
		}
		if happens(p.commit) {
			w.commit()
		}
		if happens(p.finish) {
			w.finish()
		}
		if happens(p.restart) {
			w.begin()
			w.deliver()
			w.end()
		}
		if s.read == len(s.frames) {
			left = slices.Delete(left, i, i+1)
			w.end()
		}
	}
	w.finish()
	return w.tables.dump()
}

// sidecar is one in which everything happens in turn.
type sidecar struct {
	t       *testing.T
	tables  *shown
	check   checkpoints
	p       *Pipeline
	streams []*testStream
}

// testStream is a stream of which so many frames were read.
type testStream struct {
	recording
	key    string
	read   int
	closed bool
	s      *stream
	a      *account
	d      decoder.Decoder
}

func (w *sidecar) must(err error) {
	if err != nil {
		w.t.Helper()
		w.t.Fatal(err)
	}
}

// begin starts a sidecar, or restarts it.
func (w *sidecar) begin() {
	w.p = New(Settings{BatchRows: 64, Lanes: 1, Assemble: assemble.Settings{Unique: semconv.Unique}}, w.check, memorySink{w})
	info := w.streams[0].factory.Info()
	f := w.p.newFormat(info.Name, info)
	w.p.formats[f.name] = f
	keys, err := w.check.OpenGroups()
	w.must(err)
	w.must(w.p.core.replays.load(w.check))
	for _, k := range keys {
		w.must(w.p.core.assembler.Resume(k, time.Now()))
	}
	for _, h := range w.streams {
		if h.closed = w.check.streams[h.key].Closed; h.closed {
			continue
		}
		feed, err := w.p.AddFeed("recorded", "default", f.name, string(h.stream.Options), h.journalled)
		w.must(err)
		h.s = &stream{name: nameOf("recorded", h.key), feed: feed}
		w.must(w.p.core.open(h.s, checkpoint.Stream{Source: "recorded", Key: h.key, Origin: h.stream.Origin, Anchor: 1_900_000_000e9}))
		h.a = w.p.core.accounts.of[h.s]
		w.open(h)
	}
}

// open opens a decoder where the stream goes on.
func (w *sidecar) open(h *testStream) {
	var err error
	h.stream.Source = "recorded"
	h.d, err = h.factory.New(h.stream)
	w.must(err)
	if b := h.s.cursor.resume.snapshot; len(b) > 0 {
		w.must(h.d.(decoder.Snapshotter).Restore(slices.Clone(b)))
	}
}

// deliver delivers the frames that were read and not delivered yet.
func (w *sidecar) deliver() {
	for again := true; again; {
		again = false
		for _, h := range w.streams {
			for frames := behind(h.frames[:h.read], h.s.cursor.next); len(frames) > 0 && !h.closed; frames = behind(h.frames[:h.read], h.s.cursor.next) {
				again = true
				f, generation := frames[0], h.a.generation
				if f.At == 0 {
					f.At = 1_900_000_000e9 + f.End*1e6
				}
				b := &frame.Batch{Data: slices.Clone(f.Data)}
				f.Data = b.Data
				b.Frames = []frame.Frame{f}
				t := h.ticket()
				h.s.cursor.next = f.End
				w.do(h, &decode{ticket: t, batch: b, held: lease{0, h.s.feed.format.undecoded, w.p.inFlight}}, b.Frames)
				if h.a.generation != generation { // it was rewound
					w.open(h)
				}
			}
		}
	}
}

func (h *testStream) ticket() ticket { return ticket{h.s, h.a.generation, h.s.cursor.next} }

// do has the decoder execute a command with frames, and the core apply it.
func (w *sidecar) do(h *testStream, cmd command, frames []frame.Frame) {
	var out decoder.Output
	for i := range frames {
		out.Begin(int32(i))
		w.must(h.d.Decode(&frames[i], &out))
	}
	out.Begin(int32(len(frames)) - 1)
	r := &wire.Result{Stream: h.s.id}
	if cmd.encode(h.s.cursor.view()).Flush {
		w.must(h.d.Flush(&out))
	}
	r.Messages, r.Problems = out.Messages, out.Problems
	if s, ok := h.d.(decoder.Snapshotter); ok {
		b, err := s.Snapshot()
		w.must(err)
		r.Snapshot, r.HasSnapshot = slices.Clone(b), true
	}
	w.p.inbox.pending.Add(1)
	w.reopened(h, func() {
		w.must(w.p.core.take(result{cmd, r}))
		if len(w.p.core.replays.pending) > 0 {
			w.must(w.p.core.replay())
		}
	})
}

// reopened opens the decoders again of streams, but of one, that the core has rewound meanwhile.
func (w *sidecar) reopened(but *testStream, meanwhile func()) {
	generations := make(map[*testStream]int)
	for _, o := range w.streams {
		if o.a != nil {
			generations[o] = o.a.generation
		}
	}
	meanwhile()
	for o, generation := range generations {
		if o != but && o.a.generation != generation && !o.closed {
			w.open(o)
		}
	}
}

// end ends the journalled streams of which all frames were delivered.
func (w *sidecar) end() {
	for _, h := range w.streams {
		if h.journalled && !h.closed && h.read == len(h.frames) {
			cmd := &end{h.ticket(), make(chan error, 1)}
			w.do(h, cmd, cmd.encode(h.s.cursor.view()).Frames)
			h.closed = true
		}
	}
}

func (w *sidecar) flush(h *testStream) { w.do(h, &flush{ticket: h.ticket()}, nil) }

func (w *sidecar) commit() { w.must(w.p.core.commits.close(w.t.Context(), closing{})) }

// finish is the end of a run until idle.
func (w *sidecar) finish() {
	for again := true; again; {
		w.deliver()
		for _, h := range w.streams {
			if !h.closed && !h.a.flushed() {
				w.flush(h)
			}
		}
		w.must(w.p.core.assembler.Finish())
		w.commit()
		again = w.p.core.replays.opened(&w.p.core.accounts)
		w.reopened(nil, func() { w.must(w.p.core.replay()) })
	}
}

// checkpoints is a checkpoint in memory.
type checkpoints struct {
	streams map[string]checkpoint.Stream
	groups  map[string][]byte
}

func (k checkpoints) Streams(string) ([]checkpoint.Stream, error) {
	return slices.Collect(maps.Values(k.streams)), nil
}

func (k checkpoints) Stream(_, key string) (checkpoint.Stream, bool, error) {
	s, ok := k.streams[key]
	return s, ok, nil
}

func (k checkpoints) Group(key string) ([]byte, error) { return k.groups[key], nil }
func (k checkpoints) OpenGroups() ([]string, error) {
	keys := slices.Collect(maps.Keys(k.groups))
	return slices.DeleteFunc(keys, func(key string) bool { // those of no session
		k, err := assemble.ParseKey(key)
		return err != nil || k.Format == ""
	}), nil
}
func (k checkpoints) Fresh() bool { return len(k.streams) == 0 }
func (k checkpoints) Commit(deltas ...checkpoint.Delta) error {
	for _, d := range deltas {
		for _, s := range d.Streams {
			k.streams[s.Key] = s
		}
		for _, g := range d.Groups {
			k.groups[g.Key] = g.State
		}
	}
	return nil
}

// memorySink commits every batch at once.
type memorySink struct{ w *sidecar }

func (o memorySink) Submit(_ context.Context, b *export.Batch, d checkpoint.Delta, _ bool, released, committed func()) error {
	o.w.tables.add(b)
	if err := o.w.check.Commit(d); err != nil {
		return err
	}
	released()
	committed()
	return nil
}

// shown are the rows that the tables show, by their sort keys: of two rows with one key the
// higher version, of two with one version the later.
type shown struct {
	messages, spans, calls, open map[string]row
	starts                       map[string]int64
}

type row struct {
	ver     uint64
	deleted bool
	text    string
}

func newShown() *shown {
	return &shown{messages: map[string]row{}, spans: map[string]row{}, calls: map[string]row{}, open: map[string]row{}, starts: map[string]int64{}}
}

func put(in map[string]row, r row, key ...any) {
	k := fmt.Sprint(key...)
	if old, ok := in[k]; !ok || r.ver >= old.ver {
		in[k] = r
	}
}

func (t *shown) add(b *export.Batch) {
	for _, m := range b.Messages {
		r := row{ver: m.Host.Ver, deleted: m.Host.Tombstone}
		if r.deleted {
			r.ver--
		}
		line := m.Row()
		line.Ver = 0
		text, err := line.AppendJSON(nil)
		if err != nil {
			panic(err)
		}
		r.text = string(text)
		put(t.messages, r, m.Session, " ", time.Unix(0, m.Time).UTC().Truncate(time.Hour), m.Host.ID)
	}
	for _, s := range b.Spans {
		r := row{ver: s.Ver, deleted: s.Tombstone}
		if r.deleted {
			r.ver--
		}
		if (s.State != msg.SpanOpen || s.Tombstone) && !s.Amends {
			r.text = spanText(*s, false)
			put(t.spans, r, s.Start/1e9, s.TraceID, s.ID)
		}
		if s.Kind == msg.SpanTool || s.Kind == msg.SpanDelegation {
			r.text = spanText(*s, true)
			put(t.calls, r, s.Start/3600e9, s.ID)
		}
		if !s.Tombstone && (s.State == msg.SpanOpen || s.Shown) {
			r.ver, r.deleted = uint64(s.LastSeen)<<1, s.State != msg.SpanOpen
			if s.State == msg.SpanIdle {
				r.ver++
			} else if s.State == msg.SpanClosed {
				r.ver = 1<<63 | 1
			}
			r.text = `{"ID":"` + s.ID.String() + `"}`
			put(t.open, r, s.ID)
		}
	}
}

func spanText(s msg.Span, tokens bool) string {
	if !tokens { // those of a result are a call's
		s.ResultTokens, s.ResultTokensFrom = 0, 0
	}
	s.Ver, s.Shown, s.Amends, s.Tombstone, s.LastSeen, s.Alive = 0, false, false, false, 0, 0 // no columns of a span that has ended
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (t *shown) dump() string {
	var out []string
	for name, table := range map[string]map[string]row{"messages": t.messages, "otel_traces": t.spans, "tool_calls": t.calls, "open_spans": t.open} {
		for _, r := range table {
			if !r.deleted {
				out = append(out, name+" "+r.text)
			}
		}
	}
	slices.SortFunc(out, cmp.Compare[string])
	return strings.Join(out, "\n")
}

// differ returns the first rows that differ, and their different columns.
func differ(want, got string) string {
	var out []string
	rows := func(dump string) map[string]map[string]any {
		all := make(map[string]map[string]any)
		for l := range strings.Lines(dump) {
			table, text, _ := strings.Cut(l, " ")
			var r map[string]any
			if json.Unmarshal([]byte(text), &r) != nil {
				r = map[string]any{"text": text}
			}
			id := fmt.Sprint(table, " ", r["ID"], r["message_id"], r["text"], " ", r["Kind"], r["kind"])
			for n := 2; all[id] != nil; n++ {
				id = fmt.Sprint(id, " (", n, ")")
			}
			all[id] = r
		}
		return all
	}
	w, g := rows(want), rows(got)
	for id, r := range w {
		if g[id] == nil {
			out = append(out, fmt.Sprint("- ", id, " start ", r["Start"]))
			continue
		}
		for k, v := range r {
			if x := g[id][k]; fmt.Sprint(x) != fmt.Sprint(v) {
				out = append(out, fmt.Sprintf("  %s: %s: want %v, got %v", id, k, v, x))
			}
		}
		for k, x := range g[id] {
			if _, ok := r[k]; !ok {
				out = append(out, fmt.Sprintf("  %s: %s: got %v", id, k, x))
			}
		}
	}
	for id, r := range g {
		if w[id] == nil {
			out = append(out, fmt.Sprint("+ ", id, " start ", r["Start"]))
		}
	}
	slices.Sort(out)
	return strings.Join(out[:min(len(out), 12)], "\n")
}
