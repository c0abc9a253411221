package pipeline_test

import (
	"bytes"
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/delivery"
	"github.com/earshot-dev/earshot/core/internal/host"
	"github.com/earshot-dev/earshot/core/internal/pipeline"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/plugins"
)

// The test binary is its own decoder process.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "decoder" { // a bundled one
		sdk.Serve(plugins.Bundled()[os.Args[2]]())
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "decoder" {
		sdk.Serve(notes{})
		return
	}
	goleak.VerifyTestMain(m)
}

// notes is the decoder under test: {"in":"s","n":1,"run":"a","kind":"user",...}. A line
// {"die":true} kills the process the first time (while the file it names exists),
// {"open":"text"} stays open until {"shut":true}.
type notes struct{}

func (notes) Info() decoder.Info { return decoder.Info{Name: "notes", Revision: 1} }
func (notes) New(s decoder.Stream) (decoder.Decoder, error) {
	if _, err := os.Stat(os.Getenv("TRAP")); err == nil && s.Origin != "" {
		os.Exit(9)
	}
	return &note{origin: s.Origin}, nil
}

type note struct {
	origin string
	doc    jsonv.Doc
	open   string
	held   string // until the stream ends
}

func (d *note) Decode(f *frame.Frame, out *decoder.Output) error {
	if f.Kind == frame.Close {
		if d.held != "" {
			m := out.Add()
			m.Key, m.Session, m.Kind, m.Complete, m.Content = "held/"+d.origin, d.origin, msg.User, msg.Complete, msg.Plain(d.held+" "+f.Name)
			d.held = ""
		}
		return nil
	}
	if err := d.doc.Parse(f.Data); err != nil {
		out.Problem(msg.ReasonInvalidJSON, err.Error())
		return nil
	}
	v := d.doc.Root()
	if path := v.Get("die").Str(); path != "" {
		if os.Remove(path) == nil {
			os.Exit(7)
		}
	}
	switch v.Get("do").Str() {
	case "crash":
		os.Exit(7)
	case "hang":
		select {}
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		select {}
	case "eat":
		eat(400 << 20)
		select {}
	}
	if v.Get("fail").Bool() {
		return decoder.Permanent(errors.New("fails by order"))
	}
	if v.Get("panic").Bool() {
		panic("panics by order")
	}
	if held := v.Get("held").Str(); held != "" {
		d.held = held
		return nil
	}
	if v.Get("open").Exists() {
		d.open += v.Get("open").Str()
		return nil
	}
	if v.Get("shut").Bool() {
		d.emit(out, msg.Complete)
		d.open = ""
		return nil
	}
	kind, err := msg.ParseKind(v.Get("kind").Str())
	if err != nil {
		out.Unknown("x", f.Data).Key = "u" + d.origin
		out.Messages[len(out.Messages)-1].Session = d.origin
		return nil
	}
	m := out.Add()
	m.Key, m.Session, m.Run, m.Kind, m.Complete = fmt.Sprint(d.origin, v.Get("n").Int()), d.origin, v.Get("run").Str(), kind, msg.Complete
	if in := v.Get("in").Str(); in != "" {
		m.Session = in
	}
	m.Content = v.Get("text").Text()
	m.Time = v.Get("t").Int() * 1e9
	m.ParentRun, m.Tool.CallID, m.Tool.Name = v.Get("parent").Str(), v.Get("call").Str(), v.Get("tool").Str()
	if child := v.Get("child").Str(); child != "" {
		m.Signal, m.Delegation.ChildRun = msg.Link, child
	}
	return nil
}

// eat takes memory that is no heap: the race detector has four bytes beside each byte of that. Linux is asked for all pages at once, because one
// after the other take seconds of a virtual machine.
func eat(size int) {
	flags := syscall.MAP_ANON | syscall.MAP_PRIVATE
	if runtime.GOOS == "linux" {
		flags |= 0x8000 // MAP_POPULATE, which package syscall has on Linux alone
	}
	memory, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, flags)
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
}

func (d *note) emit(out *decoder.Output, c msg.Completeness) {
	m := out.Add()
	m.Key, m.Session, m.Run, m.Kind, m.Complete, m.Content = "open/"+d.origin+d.open[:5], d.origin, "a", msg.Assistant, c, msg.Plain(d.open)
}

func (d *note) Flush(out *decoder.Output) error {
	if strings.HasPrefix(d.open, "crash") {
		os.Exit(8)
	}
	if d.open != "" {
		d.emit(out, msg.Partial)
	}
	return nil
}
func (d *note) Snapshot() ([]byte, error) { return []byte(d.open), nil }
func (d *note) Restore(b []byte) error {
	d.open = string(b)
	if path, ok := strings.CutPrefix(d.open, "trap:"); ok {
		if _, err := os.Stat(path); err == nil {
			os.Exit(9)
		}
	}
	if path, ok := strings.CutPrefix(d.open, "refuse:"); ok {
		if _, err := os.Stat(path); err == nil {
			return errors.New("a state of another form")
		}
	}
	return nil
}

// file is a source with one stream: it delivers lines in batches of random size, and delivers
// again from a position to which it is rewound.
type file struct {
	name  string
	lines [][]byte
	seed  uint64
	most  int // lines in a batch; 0: 20

	mu      sync.Mutex
	pos     int64
	drained bool
	opened  chan struct{} // closed when the stream is open in this run
	grown   bool
	wake    func()
}

// grow appends lines while the source runs.
func (s *file) grow(lines ...string) {
	s.mu.Lock()
	for _, l := range lines {
		s.lines = append(s.lines, []byte(l))
	}
	s.grown, s.drained = true, false
	s.mu.Unlock()
	s.wake()
}

func (s *file) Drained() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.drained }

func (s *file) Run(ctx context.Context, sink source.Sink) error {
	wake := make(chan struct{}, 1)
	s.wake = func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	st, pos, err := sink.Open(ctx, source.ID{Key: s.name, Origin: "/" + s.name, Anchor: 1_700_000_000e9}, func(pos int64) {
		s.mu.Lock()
		s.pos, s.drained = pos, false
		s.mu.Unlock()
		s.wake()
	})
	close(s.opened)
	if err != nil {
		return err
	}
	all := append(bytes.Join(s.lines, []byte("\n")), '\n')
	rng := rand.New(rand.NewPCG(s.seed, 1))
	s.mu.Lock()
	s.pos = pos
	s.mu.Unlock()
	for ctx.Err() == nil {
		s.mu.Lock()
		if s.grown {
			all, s.grown = append(bytes.Join(s.lines, []byte("\n")), '\n'), false
		}
		pos := s.pos
		b := &frame.Batch{Data: slices.Clone(all[pos:min(pos+64<<10, int64(len(all)))])}
		at := pos
		for range 1 + rng.IntN(stdcmp.Or(s.most, 20)) {
			rest := b.Data[at-pos:]
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				break
			}
			b.Frames = append(b.Frames, frame.Frame{Data: rest[:i], Pos: at, End: at + int64(i) + 1, At: time.Now().UnixNano()})
			at += int64(i) + 1
		}
		s.pos, s.drained = at, len(b.Frames) == 0
		s.mu.Unlock()
		if len(b.Frames) > 0 {
			if err := st.Deliver(ctx, b); err != nil {
				return err
			}
			continue
		}
		select {
		case <-wake:
		case <-ctx.Done():
		}
	}
	return nil
}

// table is an exporter that keeps the rows that a ClickHouse table would show.
type table struct {
	mu       sync.Mutex
	messages map[msg.ID]msg.Message
	spans    map[string]msg.Span
	letters  map[msg.ID]msg.DeadLetter
	ledger   map[string]msg.Ledger
	streams  map[string]msg.Stream
	rows     int
	accounts int
	fail     func(n int) error
	calls    int
}

func newTable() *table {
	return &table{messages: map[msg.ID]msg.Message{}, spans: map[string]msg.Span{}, letters: map[msg.ID]msg.DeadLetter{}, ledger: map[string]msg.Ledger{}, streams: map[string]msg.Stream{}}
}

func (t *table) Export(_ context.Context, b *export.Batch) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	if t.fail != nil {
		if err := t.fail(t.calls); err != nil {
			return err
		}
	}
	for _, m := range b.Messages {
		m := *m
		t.rows++
		m.Content = m.Content.Own()
		if old, ok := t.messages[m.Host.ID]; !ok || m.Host.Ver >= old.Host.Ver {
			m.Host.Observed = 0
			t.messages[m.Host.ID] = m
		}
	}
	for _, s := range b.Spans {
		key := s.TraceID.String() + s.ID.String()
		if s.State == msg.SpanOpen {
			continue
		}
		if old, ok := t.spans[key]; !ok || s.Ver >= old.Ver {
			span := *s
			span.Shown = false
			t.spans[key] = span
		}
	}
	for _, l := range b.DeadLetters {
		l.Seen = 0
		t.letters[l.ID] = l
	}
	t.accounts += len(b.Ledger)
	for _, l := range b.Ledger {
		l.Seen, l.Since = 0, 0
		t.ledger[l.Stream] = l
	}
	for _, s := range b.Streams {
		key := fmt.Sprint(s.Stream, s.Pace.Start)
		if old, ok := t.streams[key]; !ok || s.Ver >= old.Ver {
			t.streams[key] = s
		}
	}
	return nil
}

func (t *table) Close(context.Context) error { return nil }

// dump is all of the table, as text.
func (t *table) dump() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for _, m := range t.messages {
		if m.Host.Tombstone {
			continue
		}
		b, err := m.Row().AppendJSON(nil)
		if err != nil {
			panic(err)
		}
		out = append(out, string(b))
	}
	for _, s := range t.spans {
		if s.Tombstone {
			continue
		}
		out = append(out, fmt.Sprintf("span %s %s<%s %s run=%s %d-%d last=%d state=%s ver=%x %+v %+v %+v %+v", s.TraceID, s.ID, s.Parent, s.Kind, s.Run,
			s.Start/1e9, s.End/1e9, s.LastSeen/1e9, s.State, s.Ver, s.Usage, s.Delegate, s.Links, s.Pace))
	}
	for _, l := range t.letters {
		out = append(out, fmt.Sprintf("letter %s %s %s %s %d %q", l.ID, l.Session, l.Stage, l.Reason, l.Offset, l.Payload))
	}
	for _, l := range t.ledger {
		l.Ver = 0
		out = append(out, fmt.Sprintf("ledger %+v", l))
	}
	for _, s := range t.streams {
		out = append(out, fmt.Sprintf("stream %+v", s))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// differ shows the first lines that are in one dump only.
func differ(want, got string) string {
	var out []string
	only := func(sign, a, b string) {
		in := make(map[string]bool)
		for l := range strings.Lines(b + "\n") {
			in[l] = true
		}
		for l := range strings.Lines(a + "\n") {
			if !in[l] && len(out) < 6 {
				out = append(out, sign+l[max(0, len(l)-260):]+"\n")
			}
		}
	}
	only("- ", want, got)
	only("+ ", got, want)
	return strings.Join(out, "")
}

type world struct {
	t        testing.TB
	dir      string
	table    *table
	second   *table // another exporter; nil: there is one
	files    []*file
	settings pipeline.Settings
	limit    int64                    // of the decoder's memory; 0: none
	deadline time.Duration            // of a call; 0: the default
	trap     string                   // a file; while it is there, no decoder can be opened
	during   func(*pipeline.Pipeline) // called beside the run
	after    func(*pipeline.Pipeline) // called at its end
	// attach, if set, makes a journalled source; detach closes its journal.
	attach func(*pipeline.Feed) source.Source
	detach func()
	quick  bool // do not wait until the journal is empty
	// launched, if set, is called with each decoder process.
	launched func(*host.Process)
}

// run runs a sidecar: until it is drained and finished, or until stop is closed.
func (w *world) run(stop <-chan struct{}) {
	w.t.Helper()
	check, err := checkpoint.Open(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(testWriter{w.t}, nil))
	targets := []delivery.Target{{Name: "table", Exporter: w.table}}
	if w.second != nil {
		targets = append(targets, delivery.Target{Name: "second", Exporter: w.second})
	}
	d, err := delivery.New(delivery.Settings{RetryMin: time.Millisecond, RetryMax: 5 * time.Millisecond, SpoolDir: w.dir + "/spool", Logger: log}, check, targets...)
	if err != nil {
		w.t.Fatal(err)
	}
	defer d.Close()
	settings := w.settings
	settings.FlushIdle, settings.Logger = stdcmp.Or(settings.FlushIdle, time.Hour), log
	settings.FlushInterval = stdcmp.Or(settings.FlushInterval, 5*time.Millisecond)
	settings.BatchRows = stdcmp.Or(settings.BatchRows, 50)
	p := pipeline.New(settings, check, d)
	exe, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	sockets, err := os.MkdirTemp("", "es")
	if err != nil {
		w.t.Fatal(err)
	}
	defer os.RemoveAll(sockets)
	_, err = p.AddFormat(w.t.Context(), "notes", func(ctx context.Context) (*host.Process, error) {
		proc, err := host.Start(ctx, host.Settings{Name: "notes", Path: exe, Args: []string{"decoder"}, SocketDir: sockets, Logger: log, MemoryLimit: w.limit, CallTimeout: w.deadline, Env: []string{"TRAP=" + w.trap}})
		if w.launched != nil && err == nil {
			w.launched(proc)
		}
		return proc, err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	sources, endSources := context.WithCancel(ctx)
	var wg, src sync.WaitGroup
	wg.Add(2)
	go func() { defer wg.Done(); d.Run(ctx) }()
	go func() {
		defer wg.Done()
		if err := p.Run(ctx); err != nil {
			w.t.Error(err)
		}
	}()
	for _, f := range w.files {
		feed, err := p.AddFeed(f.name, "default", "notes", "", false)
		if err != nil {
			w.t.Fatal(err)
		}
		feed.Resume(ctx)
		src.Add(1)
		f.mu.Lock()
		f.drained, f.opened = false, make(chan struct{})
		f.mu.Unlock()
		go func() { defer src.Done(); _ = f.Run(sources, feed) }()
		<-f.opened // before the next one is read: a stream that is not open yet cannot be replayed
	}
	var live source.Source
	if w.attach != nil {
		feed, err := p.AddFeed("live", "default", "notes", "", true)
		if err != nil {
			w.t.Fatal(err)
		}
		feed.Resume(ctx)
		live = w.attach(feed)
		src.Go(func() { _ = live.Run(sources, feed) })
	}
	var busy atomic.Bool
	if w.during != nil {
		wg.Add(1)
		busy.Store(true)
		go func() { defer wg.Done(); w.during(p); busy.Store(false) }()
	}
	drained := func() bool {
		if busy.Load() || live != nil && !live.Drained() {
			return false
		}
		for _, f := range w.files {
			if !f.Drained() {
				return false
			}
		}
		return p.Drained(sources) && d.Settled()
	}
	const patience = 5 * time.Minute // beside much else
	deadline := time.After(patience)
	for calm := 0; calm < 3; {
		select {
		case <-stop:
			calm = 99
		case <-deadline:
			w.t.Fatalf("not drained after %v", patience)
		case <-time.After(2 * time.Millisecond):
			if drained() {
				calm++
			} else {
				calm = 0
			}
		}
	}
	if w.after != nil {
		w.after(p)
	}
	if stop == nil {
		if err := p.Finish(ctx); err != nil {
			w.t.Fatal(err)
		}
		for !d.Settled() {
			select {
			case <-deadline:
				w.t.Fatalf("not settled after %v", patience)
			case <-time.After(time.Millisecond):
			}
		}
		if n := p.Progress(); n.Undecoded != 0 {
			w.t.Errorf("%d bytes wait for a decoder behind the end: %+v", n.Undecoded, n)
		}
	}
	endSources()
	src.Wait()
	cancel()
	wg.Wait()
	if w.detach != nil {
		w.detach()
	}
	if err := check.Close(); err != nil {
		w.t.Fatal(err)
	}
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

func lines(format string, n int) (out [][]byte) {
	for i := range n {
		out = append(out, []byte(strings.ReplaceAll(format, "%d", fmt.Sprint(i))))
	}
	return out
}

func corpus() [][]byte {
	out := lines(`{"n":%d,"run":"r%d","kind":"user","text":"hello \"%d\" \u00e4","t":1700000%d}`, 400)
	out[10] = []byte(`{"broken`)
	out[20] = []byte(`{"kind":"strange"}`)
	out[30] = []byte(`{"open":"first "}`)
	out[300] = []byte(`{"open":"second"}`)
	out[310] = []byte(`{"shut":true}`)
	out[399] = []byte(`{"open":"never shut"}`)
	return out
}

func TestEveryByteIsAccountedFor(t *testing.T) {
	w := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "f", lines: corpus()}}}
	w.settings.Metrics = telemetry.New()
	w.run(nil)
	if n := figures(t, w.settings.Metrics)["earshot_streams"]; n != 1 {
		t.Errorf("%v streams are open, want the file", n)
	}
	sums := figures(t, w.settings.Metrics)
	l := w.table.ledger["f"]
	size := int64(len(bytes.Join(corpus(), []byte("\n"))) + 1)
	if l.Read != size || l.Decoded+l.Quarantined+l.Dropped != size || l.Quarantined != int64(len(`{"broken`))+1 || l.Problems != 1 || l.Unknown != 1 {
		t.Errorf("size %d: %+v", size, l)
	}
	if n := len(w.table.messages); n != 400-1-4+2 { // one broken, four that add to two
		t.Errorf("%d messages", n)
	}
	for name, want := range map[string]float64{
		"earshot_source_bytes_total": float64(size), "earshot_source_frames_total": 400, "earshot_messages_total": float64(l.Messages) + 1, // one is partial
		"earshot_unknown_total": 1, "earshot_problems_total": 1, "earshot_in_flight_bytes": 0,
	} {
		if sums[name] != want {
			t.Errorf("%s is %v, want %v", name, sums[name], want)
		}
	}
	rows := w.table.rows
	w.run(nil)
	if w.table.rows != rows {
		t.Errorf("a second run added %d rows", w.table.rows-rows)
	}
}

// TestStoppedAnywhere is law 2: stopped anywhere, any number of times, the tables are the
// same.
func TestStoppedAnywhere(t *testing.T) {
	clean := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "f", lines: corpus()}}}
	clean.run(nil)
	want := clean.table.dump()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 9))
			w := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "f", lines: corpus(), seed: seed}}}
			for range 6 {
				stop := make(chan struct{})
				after := time.AfterFunc(time.Duration(rng.IntN(60))*time.Millisecond, func() { close(stop) })
				w.run(stop)
				after.Stop()
			}
			w.run(nil)
			if d := differ(want, w.table.dump()); d != "" {
				t.Errorf("(-clean +stopped):\n%s", d)
			}
		})
	}
}

func TestExporterThatFails(t *testing.T) {
	clean := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "f", lines: corpus()}}}
	clean.run(nil)
	w := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "f", lines: corpus()}}}
	w.table.fail = func(n int) error {
		if n%3 != 0 {
			return errors.New("try later")
		}
		return nil
	}
	w.run(nil)
	if d := differ(clean.table.dump(), w.table.dump()); d != "" {
		t.Error(d)
	}
}

// TestDecoderDies: a crash of the decoder process costs no record: its streams go on from their
// last snapshots.
func TestDecoderDies(t *testing.T) {
	all := corpus()
	clean := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "f", lines: all}, {name: "g", lines: corpus()}}}
	trap := t.TempDir() + "/die"
	all[150] = []byte(`{"die":"` + trap + `"}`)
	clean.run(nil) // the trap is not set
	if err := os.WriteFile(trap, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "f", lines: all}, {name: "g", lines: corpus()}}}
	w.run(nil)
	if _, err := os.Stat(trap); err == nil {
		t.Fatal("the decoder did not die")
	}
	if d := differ(clean.table.dump(), w.table.dump()); d != "" {
		t.Error(d)
	}
}

// TestDecoderFails: a frame at which a decoder fails, and one at which it panics, are
// quarantined and the stream goes on.
func TestDecoderFails(t *testing.T) {
	all := corpus()
	all[100], all[200] = []byte(`{"fail":true}`), []byte(`{"panic":true}`)
	w := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "f", lines: all}}}
	w.run(nil)
	var got []string
	for _, l := range w.table.letters {
		got = append(got, fmt.Sprintf("%s %s %s", l.Stage, l.Reason, l.Payload))
	}
	slices.Sort(got)
	want := []string{`decode decoder_failed {"fail":true}`, `decode decoder_panic {"panic":true}`, `decode invalid_json {"broken`}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if n := len(w.table.messages); n != 400-1-4+2-2 {
		t.Errorf("%d messages", n)
	}
	l := w.table.ledger["f"]
	if l.Read != l.Decoded+l.Quarantined+l.Dropped {
		t.Errorf("%+v", l)
	}
}

// TestChildBeforeParent is law 2 for links: a child that is read before anything names its
// parent ends in the same rows as one that is read after.
func TestChildBeforeParent(t *testing.T) {
	parent := [][]byte{
		[]byte(`{"in":"s","n":1,"run":"a","kind":"user","t":1700000000}`),
		[]byte(`{"in":"s","n":2,"run":"a","kind":"delegation","call":"c","tool":"Task","t":1700000001}`),
		[]byte(`{"in":"s","n":3,"run":"a","kind":"status","call":"c","child":"b","t":1700000001}`),
		[]byte(`{"in":"s","n":4,"run":"a","kind":"delegation_result","call":"c","text":"done","t":1700000009}`),
	}
	child := [][]byte{
		[]byte(`{"in":"s","n":5,"run":"b","parent":"?","kind":"user","text":"go","t":1700000002}`),
		[]byte(`{"in":"s","n":6,"run":"b","kind":"assistant","text":"gone","t":1700000003}`),
	}
	// Both in one run, and one after the other, in both orders.
	both := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "p", lines: parent}, {name: "c", lines: child}}}
	both.run(nil)
	want := both.table.dump()
	if !strings.Contains(want, "run=b") {
		t.Fatal(want)
	}
	after := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "p", lines: parent}}}
	after.run(nil)
	after.files = append(after.files, &file{name: "c", lines: child})
	after.run(nil)
	if d := differ(want, after.table.dump()); d != "" {
		t.Errorf("parent first (-want +got):\n%s", d)
	}
	before := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "c", lines: child}}}
	before.run(nil)
	before.files = append(before.files, &file{name: "p", lines: parent})
	before.run(nil)
	if d := differ(want, before.table.dump()); d != "" {
		t.Errorf("child first (-want +got):\n%s", d)
	}
}

// TestStoppedWhileOneIsAway is law 2 with an exporter that is away half of the time: both
// tables equal those of one clean pass.
func TestStoppedWhileOneIsAway(t *testing.T) {
	clean := &world{t: t, dir: t.TempDir(), table: newTable(), files: []*file{{name: "f", lines: corpus()}}}
	clean.run(nil)
	want := clean.table.dump()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 10))
			w := &world{t: t, dir: t.TempDir(), table: newTable(), second: newTable(), files: []*file{{name: "f", lines: corpus(), seed: seed}}}
			for n := range 6 {
				w.second.fail = nil
				if n%2 == 0 {
					w.second.fail = func(int) error { return errors.New("away") }
				}
				stop := make(chan struct{})
				after := time.AfterFunc(time.Duration(rng.IntN(60))*time.Millisecond, func() { close(stop) })
				w.run(stop)
				after.Stop()
			}
			w.run(nil)
			for name, table := range map[string]*table{"first": w.table, "second": w.second} {
				if d := differ(want, table.dump()); d != "" {
					t.Errorf("%s (-clean +stopped):\n%s", name, d)
				}
			}
		})
	}
}
