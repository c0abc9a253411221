package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// TestFramesComeOutAsTheyWentIn compares every field of the frames that are delivered with
// those that were recorded, over several processes.
func TestFramesComeOutAsTheyWentIn(t *testing.T) {
	dir := t.TempDir()
	in := []frame.Frame{
		{Kind: frame.Request, Name: "POST /v1/runs", FromClient: true, At: 1, Data: []byte(`{"q":1}`)},
		{Kind: frame.Event, Name: "delta", ID: "17", At: 2, Data: []byte("hello")},
		{Kind: frame.Binary, At: 3, Data: []byte{0, 255, 0xf1, 'E', 'a', 0x9e}},
		{Kind: frame.Line, At: 4, Data: []byte("cut"), Dropped: 9, Reason: "too_long"},
		{Kind: frame.Close, At: 5},
		{Kind: frame.Text, At: 6, Data: []byte(strings.Repeat("x", 3*windowSize))},
	}
	want := slices.Clone(in)
	pos := int64(0)
	for i := range want {
		want[i].Pos = pos
		pos += int64(len(want[i].Data)) + want[i].Dropped + 1
		want[i].End = pos
	}
	k := newSink(t)
	for i := range in {
		j := open(t, small(t, dir))
		r := begin(t, j, "a")
		if err := r.Record(t.Context(), &in[i]); err != nil {
			t.Fatal(err)
		}
		drain(t, j, k)
		j.mustClose(t)
		k.crash()
		recorded, _ := appendFrame(nil, 0, 1, 0, &in[i])
		if n, most := int64(len(recorded)), sizeOf(&in[i]); n > most || n < most-4*binary.MaxVarintLen64 {
			t.Errorf("frame %d takes %d bytes, and room for %d", i, n, most)
		}
	}
	for i, f := range k.streams[k.names("a")[0]].frames {
		if i >= len(want) || show(&f) != show(&want[i]) || !bytes.Equal(f.Data, want[i].Data) {
			t.Errorf("frame %d: %s, want %s", i, show(&f), show(&want[min(i, len(want)-1)]))
		}
	}
	if n := len(k.streams[k.names("a")[0]].frames); n != len(want) {
		t.Errorf("%d frames, want %d", n, len(want))
	}
	if n := len(k.names("a")); n != 1 {
		t.Errorf("%d streams", n)
	}
	if id := k.streams[k.names("a")[0]].id; id.Origin != "/a" || id.Anchor != 7 {
		t.Errorf("the stream is %+v", id)
	}
}

func TestAFrameIsCopied(t *testing.T) {
	j, k := open(t, small(t, t.TempDir())), newSink(t)
	r := begin(t, j, "a")
	data := []byte("first")
	for range 2 {
		if err := r.Record(t.Context(), &frame.Frame{Data: data}); err != nil {
			t.Fatal(err)
		}
		copy(data, "again")
	}
	drain(t, j, k)
	if d := cmp.Diff([]string{"first", "again"}, k.content("a")); d != "" {
		t.Error(d)
	}
}

// TestTheReaderFollows records while a reader runs: no timer of the journal passes between a
// record and its delivery.
func TestTheReaderFollows(t *testing.T) {
	j, k := open(t, small(t, t.TempDir())), newSink(t)
	r := begin(t, j, "a")
	_, stop := follow(t, j, k)
	defer stop()
	for i := range 20 {
		put(t, r, fmt.Sprint(i))
		k.until("delivered", func() bool { n := k.names("a"); return len(n) == 1 && len(k.streams[n[0]].frames) == i+1 })
	}
	closed(t, r)
	k.until("closed", func() bool { return k.streams[k.names("a")[0]].closed })
}

func TestStateAndEnd(t *testing.T) {
	dir := t.TempDir()
	j := open(t, small(t, dir))
	r := begin(t, j, "a")
	if err := r.Mark([]byte("1")); err != nil {
		t.Fatal(err)
	}
	put(t, r, "x")
	if err := r.Mark([]byte("2")); err != nil {
		t.Fatal(err)
	}
	j.mustClose(t)
	if err := r.Record(t.Context(), &frame.Frame{}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := j.Recorder("s").Begin(t.Context(), "f", source.ID{Key: "b"}); !errors.Is(err, ErrClosed) {
		t.Errorf("another one after Close: %v", err)
	}

	j, k := open(t, small(t, dir)), newSink(t)
	r = begin(t, j, "a")
	if got := string(r.State()); got != "2" {
		t.Errorf("state %q", got)
	}
	put(t, r, "y")
	state := []byte("3")
	if err := r.Mark(state); err != nil {
		t.Fatal(err)
	}
	state[0] = 'x' // it is the listener's
	if got := string(r.State()); got != "3" {
		t.Errorf("state %q", got)
	}
	closed(t, r)
	closed(t, r) // harmless
	if err := r.Mark(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := r.Record(t.Context(), frameOf("late")); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	other := begin(t, j, "b")
	for size, ok := range map[int]bool{maxString: true, maxString + 1: false} {
		if err := other.Mark(make([]byte, size)); (err == nil) != ok {
			t.Errorf("a mark of %d bytes: %v", size, err)
		}
	}
	r = begin(t, j, "a") // another of the same key
	if got := r.State(); got != nil {
		t.Errorf("state %q of a new recording", got)
	}
	put(t, r, "z")
	drain(t, j, k)
	k.mu.Lock()
	defer k.mu.Unlock()
	names := k.names("a")
	if len(names) != 2 || !k.streams[names[0]].closed || k.streams[names[1]].closed {
		t.Fatalf("streams %v", names)
	}
	if a, b := k.streams[names[0]].next, k.streams[names[1]].next; a != 4 || b != 2 {
		t.Errorf("positions %d and %d", a, b)
	}
}

// TestConnectionsEndWithTheProcess reopens a journal: a recording without a key has ended
// with its process, one with a key has not.
func TestConnectionsEndWithTheProcess(t *testing.T) {
	dir := t.TempDir()
	j := open(t, small(t, dir))
	put(t, begin(t, j, ""), "connection")
	put(t, begin(t, j, "kept"), "stream")
	j.mustClose(t)
	j, k := open(t, small(t, dir)), newSink(t)
	drain(t, j, k)
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.streams[k.names("")[0]]; !s.closed || len(s.frames) != 1 {
		t.Errorf("connection: closed %v, %d frames", s.closed, len(s.frames))
	}
	if s := k.streams[k.names("kept")[0]]; s.closed {
		t.Error("the stream is closed")
	}
	if n := j.Stats().Streams; n != 1 {
		t.Errorf("%d recordings are open", n)
	}
}

func TestGapsAreFrames(t *testing.T) {
	j, k := open(t, small(t, t.TempDir())), newSink(t)
	r := begin(t, j, "a")
	put(t, r, "x")
	r.Gap("slow", 3, 100)
	r.Gap("nothing known", 0, 0)
	put(t, r, "y")
	r.Gap("", 1, 5)
	drain(t, j, k)
	if d := cmp.Diff([]string{"x", "<slow 100>", "<nothing known 1>", "y", "<gap 5>"}, k.content("a")); d != "" {
		t.Error(d)
	}
	if got := k.streams[k.names("a")[0]].next; got != 2+100+1+2+5 {
		t.Errorf("position %d", got)
	}
}

// TestOriginChanges has a stream go on at another origin: the pipeline receives it, while it reads and after a restart.
func TestOriginChanges(t *testing.T) {
	s := still(t, t.TempDir())
	j, k := open(t, s), newSink(t)
	put(t, begin(t, j, "a"), "x")
	drain(t, j, k)
	k.crash()
	_, stop := follow(t, j, k)
	at := func(origin string) bool { n := k.names("a"); return len(n) == 1 && k.streams[n[0]].id.Origin == origin }
	for _, origin := range []string{"/b", "/c"} {
		r, err := j.Recorder("s").Begin(t.Context(), "f", source.ID{Key: "a", Origin: origin})
		if err != nil {
			t.Fatal(err)
		}
		put(t, r, origin)
		k.until("at "+origin, func() bool { return at(origin) })
	}
	stop()
	j.mustClose(t)
	k = newSink(t)
	drain(t, open(t, s), k)
	if got := k.content("a"); !at("/c") || !slices.Equal(got, []string{"x", "/b", "/c"}) {
		t.Errorf("%q, %s", got, k.dump())
	}
	if n := k.streams[k.names("a")[0]].saves; n != 2 {
		t.Errorf("it was told %d times", n)
	}
}

// TestOtherKeys has a checkpoint with streams that no journal made: they are left alone.
func TestOtherKeys(t *testing.T) {
	j, k := open(t, still(t, t.TempDir())), newSink(t)
	for _, key := range []string{"short", "a key of more than sixteen letters"} {
		k.streams[key] = &taken{sink: k, next: 9}
	}
	k.commit()
	drain(t, j, k)
	if n := len(k.Known()); n != 2 || len(k.troubles) > 0 {
		t.Errorf("%d are known, troubles %q", n, k.troubles)
	}
}

func TestBeginRefusesAnotherFormat(t *testing.T) {
	j := open(t, small(t, t.TempDir()))
	begin(t, j, "a")
	if _, err := j.Recorder("s").Begin(t.Context(), "g", source.ID{Key: "a"}); err == nil {
		t.Error("a recording changed its format")
	}
}

// TestReadersSeeTheirOwn has streams of two sources and formats with the same keys: each
// reader delivers its own.
func TestReadersSeeTheirOwn(t *testing.T) {
	j := open(t, small(t, t.TempDir()))
	pairs := [][2]string{{"s", "f"}, {"s", "g"}, {"t", "f"}}
	for _, p := range pairs {
		r, err := j.Recorder(p[0]).Begin(t.Context(), p[1], source.ID{Key: p[0] + p[1]})
		if err != nil {
			t.Fatal(err)
		}
		put(t, r, p[0]+p[1])
		sync_(t, r)
	}
	for _, p := range pairs {
		k := newSink(t)
		r := j.Reader(p[0], p[1], nil)
		readAll(t, r, k)
		if got := k.content(p[0] + p[1]); len(k.streams) != 1 || len(got) != 1 || got[0] != p[0]+p[1] {
			t.Errorf("%v: %s", p, k.dump())
		}
		for _, st := range k.streams { // it began without a time of its own
			if age := time.Since(time.Unix(0, st.id.Anchor)); age < 0 || age > time.Hour {
				t.Errorf("%v: began %v ago", p, age)
			}
		}
	}
	_, err := j.seal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := j.Recorder("s").Begin(t.Context(), "f", source.ID{Key: "again"})
	if err != nil {
		t.Fatal(err)
	}
	put(t, again, "again")
	for _, p := range pairs { // the same of a sealed segment
		k := newSink(t)
		r := j.Reader(p[0], p[1], nil)
		readAll(t, r, k)
		if got := k.content(p[0] + p[1]); len(got) != 1 || len(k.streams) != len(k.names("again"))+1 {
			t.Errorf("%v: %s", p, k.dump())
		}
	}
	got, err := j.Sources()
	slices.SortFunc(got, func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) })
	if d := cmp.Diff(pairs, got); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}

// TestManyStreamsOnePass reads a thousand interleaved streams in one pass.
func TestManyStreamsOnePass(t *testing.T) {
	const streams, rounds = 1000, 40
	d := &brokenDisk{}
	s := small(t, t.TempDir())
	s.disk, s.SegmentSize, s.sweep = d, 1<<20, time.Hour
	j, k := open(t, s), newSink(t)
	k.auto = false
	recs := make([]source.Recording, streams)
	for i := range recs {
		recs[i] = begin(t, j, fmt.Sprintf("k%d", i))
	}
	for n := range rounds {
		for i, r := range recs {
			put(t, r, fmt.Sprintf("stream %d frame %d %s", i, n, strings.Repeat("x", 100)))
		}
	}
	for _, r := range recs {
		closed(t, r)
	}
	sync_(t, begin(t, j, "last"))
	size := j.Stats().Bytes
	d.set(func() { d.bytes = 0 })
	drain(t, j, k)
	if n := d.count(); n > 2*size {
		t.Errorf("read %d bytes of %d", n, size)
	}
	if k.batches > streams*rounds/2 {
		t.Errorf("%d batches of %d frames", k.batches, streams*rounds)
	}
	for i := range streams {
		if got := k.content(fmt.Sprintf("k%d", i)); len(got) != rounds || !strings.HasPrefix(got[rounds-1], fmt.Sprintf("stream %d frame %d ", i, rounds-1)) {
			t.Fatalf("stream %d: %d frames", i, len(got))
		}
	}
	// And again, when all of them are rewound at once.
	d.set(func() { d.bytes = 0 })
	k = newSink(t)
	k.auto = false
	for i := range streams {
		recs[i] = begin(t, j, fmt.Sprintf("m%d", i))
		put(t, recs[i], "a")
		put(t, recs[i], "b")
	}
	r, stop := follow(t, j, k)
	poll(t, "drained", r.Drained)
	d.set(func() { d.bytes = 0 })
	k.rewind(func(int) int { return 0 })
	poll(t, "drained", r.Drained)
	n, size := d.count(), j.Stats().Bytes
	k.rewind(func(n int) int { return n - 1 }) // to where they are
	poll(t, "drained", r.Drained)
	if again := d.count() - n; again > 0 {
		t.Errorf("read %d bytes of what was delivered", again)
	}
	stop()
	if got := k.content("m999"); len(got) != 2 {
		t.Errorf("m999: %q", got)
	}
	if n > 2*size {
		t.Errorf("read %d bytes of %d", n, size)
	}
	if d.files != 1 {
		t.Errorf("%d files are open, of %d segments", d.files, j.Stats().Segments)
	}
	j.mustClose(t)
	if d.files != 0 {
		t.Errorf("%d files are open", d.files)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	if _, err := Open(Settings{}); err == nil {
		t.Error("no directory was accepted")
	}
	if _, err := Open(Settings{Dir: t.TempDir(), WhenFull: "burn"}); err == nil {
		t.Error("an unknown policy was accepted")
	}
	path := t.TempDir() + "/file"
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Settings{Dir: path}); err == nil {
		t.Error("a file was accepted")
	}
	s := Settings{Dir: path}
	if err := s.defaults(); err != nil {
		t.Fatal(err)
	}
	for v, i := reflect.ValueOf(s), 0; i < v.NumField(); i++ {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() != (name == "Keep" || name == "MinFree") {
			t.Errorf("%s has no default", name)
		}
	}
}

// TestATakenRewindIsNoRest: from when a rewind is asked for until its frames are read, Run waits nowhere, also in the moment after it has taken the rewind.
func TestATakenRewindIsNoRest(t *testing.T) {
	b := newInbox()
	b.rest(place{1, 100})
	if at, busy := b.at(); busy || at != (place{1, 100}) {
		t.Errorf("before, it waits at %v, busy %t", at, busy)
	}
	b.rewind(7, 0)
	if _, busy := b.at(); !busy {
		t.Error("a rewind is nothing to do")
	}
	if rewinds, _ := b.takeRewinds(); len(rewinds) != 1 {
		t.Errorf("rewinds: %v", rewinds)
	}
	if at, busy := b.at(); !busy && at != (place{}) {
		t.Errorf("it waits at %v with a rewind in its hands", at)
	}
}

// TestEndedStreamsAreForgotten: that a stream has ended is known until the reader is past its last segment.
func TestEndedStreamsAreForgotten(t *testing.T) {
	b := newInbox()
	b.finished = map[uint64]bool{7: true, 8: true, 9: true}
	b.retired(7, 1)
	b.retired(8, 2)
	for segment, want := range map[uint64][]bool{1: {true, true, true}, 2: {false, true, true}, 3: {false, false, true}} {
		b := &inbox{finished: maps.Clone(b.finished), retiring: slices.Clone(b.retiring)}
		for range 2 {
			b.forget(segment)
			if got := []bool{b.isFinished(7), b.isFinished(8), b.isFinished(9)}; !slices.Equal(got, want) {
				t.Errorf("in segment %d: %v", segment, got)
			}
		}
	}
	b.ended(9)
	b.rewind(9, 0)
	if _, busy := b.at(); !busy {
		t.Error("a rewound stream that is being closed is nothing to do")
	}
}

// TestRefusedStream: a reader ends with the error of a pipeline that takes no streams.
func TestRefusedStream(t *testing.T) {
	j, k := open(t, still(t, t.TempDir())), newSink(t)
	put(t, begin(t, j, "a"), "x")
	k.refusal = errors.New("no")
	if err := j.Reader("s", "f", nil).Run(t.Context(), k); !errors.Is(err, k.refusal) {
		t.Error(err)
	}
}

// TestNotDrainedWhileRewound: a journal whose frames are being delivered again is not drained, so that a run until idle waits for them.
func TestNotDrainedWhileRewound(t *testing.T) {
	j, k := open(t, still(t, t.TempDir())), newSink(t)
	k.auto = false
	rec := begin(t, j, "a")
	put(t, rec, "x")
	sync_(t, rec)
	r, stop := follow(t, j, k)
	defer stop()
	poll(t, "drained", r.Drained)
	gate := make(chan struct{})
	k.mu.Lock()
	k.gate = gate
	k.mu.Unlock()
	k.rewind(func(int) int { return 0 })
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if r.Drained() {
			t.Fatal("drained, and its frame is not delivered again")
		}
	}
	close(gate)
	poll(t, "drained", r.Drained)
	if got := k.content("a"); len(got) != 1 {
		t.Errorf("%q", got)
	}
}
