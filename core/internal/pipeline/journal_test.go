package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/journal"
	"github.com/earshot-dev/earshot/core/internal/pipeline"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/msg"
)

// recorded is a journal with streams of the same lines, interleaved; one of them is of a
// connection that ended with its process.
func recorded(t *testing.T, streams int, all [][]byte) string {
	t.Helper()
	dir := t.TempDir()
	j, err := journal.Open(journal.Settings{Dir: dir, SegmentSize: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	recs := make([]source.Recording, streams)
	for i := range recs {
		key := fmt.Sprintf("s%d", i)
		if i == 1 {
			key = ""
		}
		if recs[i], err = j.Recorder("live").Begin(t.Context(), "notes", source.ID{Key: key, Origin: fmt.Sprintf("/o%d", i), Anchor: 1_700_000_000e9}); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range recs {
		if err := r.Mark([]byte(firstMark(i))); err != nil {
			t.Fatal(err)
		}
	}
	for n, line := range all {
		if n%50 == 7 {
			recs[2].Gap("slow", 1, 100)
		}
		for _, r := range recs {
			if err := r.Record(t.Context(), &frame.Frame{Kind: frame.Event, At: 1_700_000_000e9 + int64(n), Data: line}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, r := range append(recs[2:], recs[0]) {
		if err := r.Mark([]byte(strings.TrimSuffix(firstMark(i), "}") + `,"timing":{"start":1700000000000000001,"first_byte":5000000,"total":90000000,"events":9,"buffered":true}}`)); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// firstMark is a listener's mark at the beginning of a stream.
func firstMark(i int) string {
	return fmt.Sprintf(`{"method":"POST","status":200,"traceparent":"00-0af7651916cd43dd8448eb211c8031%02x-b7ad6b7169203331-01","tracestate":"k=v"}`, i)
}

// replays has a world read a copy of the journal.
func (w *world) replays(dir string) *world {
	w.t.Helper()
	own := w.t.TempDir()
	if err := os.CopyFS(own, os.DirFS(dir)); err != nil {
		w.t.Fatal(err)
	}
	w.attach = func(f *pipeline.Feed) source.Source {
		j, err := journal.Open(journal.Settings{Dir: own, SegmentSize: 8 << 10, Logger: slog.New(slog.NewTextHandler(testWriter{w.t}, nil))})
		if err != nil {
			w.t.Fatal(err)
		}
		w.detach = func() { _ = j.Close() }
		return &journalSource{j.Reader("live", "notes", f.Known()), j, w.quick}
	}
	return w
}

// journalSource is drained when the journal has removed the committed segments.
type journalSource struct {
	*journal.Reader
	j     *journal.Journal
	quick bool
}

func (h *journalSource) Drained() bool {
	return h.Reader.Drained() && (h.quick || h.j.Stats().Segments <= 1)
}

// TestJournalStoppedAnywhere is laws 1 and 2 for journalled streams: stopped anywhere, any
// number of times, the tables equal those of one clean pass, and every byte is accounted for.
func TestJournalStoppedAnywhere(t *testing.T) {
	dir := recorded(t, 6, corpus())
	clean := (&world{t: t, dir: t.TempDir(), table: newTable()}).replays(dir)
	clean.run(nil)
	want := clean.table.dump()
	var read, added, dropped int64
	for _, l := range clean.table.ledger {
		read, added, dropped = read+l.Read, added+l.Decoded+l.Quarantined+l.Dropped, dropped+l.Dropped
	}
	if size := 6 * int64(len(strings.Join(strs(corpus()), "\n"))+1); read != size+800 || added != read || dropped != 800 || len(clean.table.ledger) != 6 || len(clean.table.streams) != 5 {
		t.Errorf("%d streams, read %d of %d, accounted for %d, dropped %d", len(clean.table.ledger), read, size+800, added, dropped)
	}
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 9))
			w := (&world{t: t, dir: t.TempDir(), table: newTable(), quick: true}).replays(dir)
			for range 5 {
				stop := make(chan struct{})
				after := time.AfterFunc(time.Duration(rng.IntN(80))*time.Millisecond, func() { close(stop) })
				w.run(stop)
				after.Stop()
			}
			w.quick = false
			w.run(nil)
			if d := differ(want, w.table.dump()); d != "" {
				t.Errorf("(-clean +stopped):\n%s", d)
			}
			rows := w.table.rows
			w.run(nil) // nothing is left to be decoded again
			if w.table.rows != rows {
				t.Errorf("another run added %d rows", w.table.rows-rows)
			}
		})
	}
}

func strs(lines [][]byte) (out []string) {
	for _, l := range lines {
		out = append(out, string(l))
	}
	return out
}

// TestJournalWhenTheDecoderDies: after a crash of the decoder process all streams are
// delivered again from the journal, also when so many are under way that everything is full.
func TestJournalWhenTheDecoderDies(t *testing.T) {
	for _, streams := range []int{3, 500} {
		t.Run(fmt.Sprint(streams), func(t *testing.T) {
			trap := t.TempDir() + "/die"
			all := corpus()[:1500/streams]
			all[2] = []byte(`{"die":"` + trap + `"}`)
			dir := recorded(t, streams, all)
			clean := (&world{t: t, dir: t.TempDir(), table: newTable(), quick: true}).replays(dir)
			clean.run(nil) // the trap is not set
			if err := os.WriteFile(trap, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			w := (&world{t: t, dir: t.TempDir(), table: newTable(), quick: true}).replays(dir)
			w.run(nil)
			if _, err := os.Stat(trap); err == nil {
				t.Fatal("the decoder did not die")
			}
			if d := differ(clean.table.dump(), w.table.dump()); d != "" {
				t.Error(d)
			}
		})
	}
}

// clumsy is a source that delivers a stream again in every way that a rewind may lead to.
type clumsy struct {
	t       *testing.T
	trap    string
	drained chan struct{}
}

func (c *clumsy) Drained() bool {
	select {
	case <-c.drained:
		return true
	default:
		return false
	}
}

func (c *clumsy) Run(ctx context.Context, sink source.Sink) error {
	rewound := make(chan int64, 10)
	st, _, err := sink.Open(ctx, source.ID{Key: "k", Origin: "/o"}, func(pos int64) { rewound <- pos })
	if err != nil {
		return err
	}
	batch := func(from, to int) *frame.Batch {
		b := &frame.Batch{}
		for i := from; i < to; i++ {
			data := fmt.Sprintf(`{"n":%d,"run":"r","kind":"user","text":"%03d","t":1700000000}`, i, i)
			if i == 3 {
				data = `{"die":"` + c.trap + `"}`
			}
			b.Append(frame.Frame{Pos: int64(i), End: int64(i) + 1}, []byte(data))
		}
		return b
	}
	if err := st.Deliver(ctx, batch(0, 5)); err != nil {
		return err
	}
	pos := <-rewound
	// A Close before the source knows of the rewind must not end the stream.
	if err := st.Close(ctx, false)(); !errors.Is(err, source.ErrRewound) {
		c.t.Errorf("Close of a rewound stream: %v", err)
	}
	// Batches overlap with delivered frames.
	for to := int(pos) + 1; to <= 9; to++ {
		if err := st.Deliver(ctx, batch(int(pos), to)); err != nil {
			return err
		}
	}
	if err := st.Close(ctx, false)(); err != nil {
		c.t.Errorf("Close: %v", err)
	}
	close(c.drained)
	<-ctx.Done()
	return nil
}

func TestRewindsAndOverlaps(t *testing.T) {
	c := &clumsy{t: t, trap: t.TempDir() + "/die", drained: make(chan struct{})}
	if err := os.WriteFile(c.trap, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: t.TempDir(), table: newTable(), attach: func(*pipeline.Feed) source.Source { return c }}
	w.run(nil)
	if n := len(w.table.messages); n != 9 {
		t.Errorf("%d messages, want 9", n)
	}
	if l := w.table.ledger["k"]; l.Read != 9 || l.Decoded != 9 || l.Frames != 9 {
		t.Errorf("%+v", l)
	}
}

// TestResponse: a listener's description of a response is in a row, on the span of the run that
// the request began, in a link to the sender's span, and in the metrics.
func TestResponse(t *testing.T) {
	lines := [][]byte{
		[]byte(`{"n":1,"run":"a","kind":"user","t":1700000000}`),
		[]byte(`{"n":2,"run":"b","parent":"a","kind":"assistant","t":1700000001}`),
		[]byte(`{"n":3,"run":"a","kind":"assistant","t":1700000002}`),
	}
	w := (&world{t: t, dir: t.TempDir(), table: newTable(), quick: true}).replays(recorded(t, 3, lines))
	w.settings.Metrics = telemetry.New()
	w.run(nil)
	if len(w.table.streams) != 2 {
		t.Fatalf("%d rows of streams", len(w.table.streams))
	}
	for _, s := range w.table.streams {
		if s.Session != s.Origin || s.Run != "a" || s.Method != "POST" || s.Status != 200 || s.RemoteState != "k=v" || s.RemoteTrace.IsZero() ||
			!s.Pace.Buffered || s.Pace.Total != 90e6 || s.Source != "live" || s.Format != "notes" || s.Tenant != "default" {
			t.Errorf("row %+v", s)
		}
	}
	runs := 0
	for _, s := range w.table.spans {
		ended := s.Session != "/o1" // the process died before
		top := s.Kind == msg.SpanRun && s.Run == "a"
		if linked := len(s.Links) == 1 && s.Links[0].SpanID.String() == "b7ad6b7169203331" && s.Links[0].State == "k=v"; linked != top {
			t.Errorf("%s %s of %s: links %+v", s.Kind, s.Run, s.Session, s.Links)
		}
		if s.Pace.Buffered != (top && ended) {
			t.Errorf("%s %s of %s: pace %+v", s.Kind, s.Run, s.Session, s.Pace)
		}
		if top {
			runs++
		}
	}
	if runs != 3 {
		t.Errorf("%d runs", runs)
	}
	sums := figures(t, w.settings.Metrics)
	for name, want := range map[string]float64{
		"earshot_responses_total": 2, "earshot_responses_buffered_total": 2, "earshot_response_first_byte_seconds": 0.01,
	} {
		if sums[name] != want {
			t.Errorf("%s: %v, want %v", name, sums[name], want)
		}
	}
}

// figures are the metrics by name, added up over their labels.
func figures(t *testing.T, m *telemetry.Metrics) map[string]float64 {
	t.Helper()
	families, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			sums[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
		}
	}
	return sums
}

// TestEndReachesTheDecoder: a decoder gets a Close frame when its stream has ended, also when
// a connection was lost or the process crashed: it emits the messages then that it holds back
// for an answer.
func TestEndReachesTheDecoder(t *testing.T) {
	w := (&world{t: t, dir: t.TempDir(), table: newTable(), quick: true}).replays(recorded(t, 3, [][]byte{[]byte(`{"held":"prompt"}`)}))
	w.run(nil)
	var got []string
	for _, m := range w.table.messages {
		got = append(got, m.Session+" "+m.Content.String())
	}
	slices.Sort(got)
	if want := []string{"/o0 prompt lost", "/o1 prompt lost", "/o2 prompt lost"}; !slices.Equal(got, want) {
		t.Errorf("messages %q, want %q", got, want)
	}
}
