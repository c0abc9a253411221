package assemble

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

var update = flag.Bool("update", false, "write testdata/*.txt")

// stage is a store and an emitter of an assembler that writes down all that leaves it: of each message the members that the
// assembler has set, and of each step the members of each row that differ from the row before.
type stage struct {
	t        testing.TB
	a        *Assembler
	settings Settings
	restarts bool // after each step
	silent   bool // nothing is written down
	merges   bool // views: in which order the spans of a commit are merged is open, and so how high a version is
	read     int  // from the store
	fails    int  // the read that fails; none if 0
	state    map[string][]byte
	open     map[string]bool // of state: whether something goes on
	now      int64           // seconds; of reading

	streams   map[uint64]*stream
	responses map[uint64]response
	gone      map[uint64]bool // that cannot be decoded again
	due       []due           // runs that are to be decoded again
	step      []string        // lines that are no spans
	spans     []msg.Span      // of this step
	rows      map[string]msg.Span
	stored    map[string]msg.Span // the table of spans, and that of messages
	messages  map[string]msg.Message
	out       strings.Builder
	names     []string // of ids, for a strings.Replacer
}

// stream is the messages that were read of a stream.
type stream struct {
	format, session string
	list            []msg.Message
}

// due is a run whose stream is to be decoded again.
type due struct {
	stream uint64
	run    string
}

// response is an exchange of which a stream is the answer.
type response struct {
	at int64
	msg.Stream
}

var errStore = errors.New("the store is away")

func newStage(t testing.TB, s Settings) *stage {
	w := &stage{t: t, settings: s, state: map[string][]byte{}, open: map[string]bool{}, streams: map[uint64]*stream{}, responses: map[uint64]response{}, gone: map[uint64]bool{}, rows: map[string]msg.Span{}, stored: map[string]msg.Span{}, messages: map[string]msg.Message{}}
	w.a = New(s, w, w)
	return w
}

func (w *stage) Group(key string) ([]byte, error) {
	if w.read++; w.read == w.fails {
		return nil, errStore
	}
	return w.state[key], nil
}

func (w *stage) Span(s msg.Span) {
	w.spans = append(w.spans, s)
	key := fmt.Sprint(s.Start/int64(time.Hour), s.Session, s.ID)
	ver := func(s *msg.Span) uint64 { // as the column has it
		v := s.Ver
		if s.State != msg.SpanClosed && v&(2<<completeShift) == 0 {
			v = v&(0xff<<revisionShift) | v&(1<<completeShift-1)<<1 | uint64(s.State)
		}
		if s.Tombstone {
			return max(v, 1) - 1
		}
		return v
	}
	if old, ok := w.stored[key]; !ok || ver(&s) >= ver(&old) {
		w.stored[key] = s
	}
}

func (w *stage) note(format string, args ...any) {
	if w.silent {
		return
	}
	w.step = append(w.step, fmt.Sprintf(format, args...))
}

func (w *stage) ReplayChildren(stream uint64, r RunRef) {
	w.due = append(w.due, due{stream, r.Run})
	w.note("decode stream %d again for %s/%s", stream, r.Session, r.Run)
}

func (w *stage) Replayable(stream uint64) bool { return !w.gone[stream] }
func (w *stage) Flush(stream uint64)           { w.note("flush stream %d again", stream) }
func (w *stage) Finding(format, kind string)   { w.note("found %s in %s", kind, format) }

// id names an id in the text.
func (w *stage) id(name string, id fmt.Stringer) {
	w.names = append(w.names, id.String(), "<"+name+">")
}

func (w *stage) Verdict(v msg.Verdict) {
	if !w.silent {
		w.note("verdict %s", line(shorter(w.t, v)))
	}
}

func (w *stage) Message(m msg.Message) {
	if w.store(&m); !w.silent {
		w.note("row %s", line(shorter(w.t, m)))
	}
}

// on names the session and the stream of the messages that follow.
func (w *stage) on(at uint64, format, session string) *stage {
	w.streams[at] = &stream{format: format, session: session}
	return w
}

// The method say applies messages of a stream, whose times are in seconds.
func (w *stage) say(stream uint64, list ...msg.Message) { w.tell(stream, w.a.Apply, "", list) }

// flush applies the open messages of a stream.
func (w *stage) flush(stream uint64, list ...msg.Message) {
	w.tell(stream, w.a.ApplyOpen, " (open)", list)
}

func (w *stage) tell(at uint64, apply func(*msg.Message, uint64, uint32, time.Time, int64) (int64, error), how string, list []msg.Message) {
	w.t.Helper()
	s := w.streams[at]
	pos := len(s.list) + 1
	for i, m := range list {
		if how == "" {
			s.list, pos = append(s.list, m), len(s.list)+1
		}
		m.Session, m.Attrs = cmp.Or(m.Session, s.session), slices.Clone(m.Attrs)
		m.Key = cmp.Or(m.Key, fmt.Sprint(m.Kind, "/", m.Run, "/", cmp.Or(m.Tool.CallID, m.ResponseID, fmt.Sprint(m.Time))))
		if m.Complete == 0 && how == "" {
			m.Complete = msg.Complete
		}
		m.Time = t0 + m.Time*sec
		m.Host.Tenant, m.Host.Format, m.Host.Source, m.Host.Ver = "default", s.format, "src", uint64(pos)
		was := w.before(&m)
		read := time.Unix(0, max(t0+w.now*sec, m.Time)+sec)
		old, err := apply(&m, at, 1, read, m.Time+sec/2)
		if err != nil {
			w.failed(err)
			return
		}
		if old != 0 {
			gone := m
			gone.Time, gone.Host.Tombstone = old, true
			w.store(&gone)
		}
		w.store(&m)
		if !w.silent {
			w.named(&m)
			fmt.Fprintf(&w.out, "%d%s %s %s: %s", at, how, m.Kind, cmp.Or(m.Tool.CallID, m.ResponseID, m.Run), changes(was, shorter(w.t, m)))
			if old != 0 {
				fmt.Fprintf(&w.out, " was %gs", float64(old-t0)/float64(sec))
			}
			w.out.WriteString("\n")
		}
		if how == "" || i == len(list)-1 {
			w.left()
		}
	}
}

// before has the members of a message before it is applied, unless nothing is written down.
func (w *stage) before(m *msg.Message) map[string]any {
	if w.silent {
		return nil
	}
	w.named(m)
	return shorter(w.t, *m)
}

// store keeps the row of a message, unless the store has a later version of it.
func (w *stage) store(m *msg.Message) {
	key := fmt.Sprint(m.Time/int64(time.Hour), m.Session, m.Host.ID)
	ver := func(m *msg.Message) uint64 {
		if m.Host.Tombstone {
			return max(m.Host.Ver, 1) - 1
		}
		return m.Host.Ver
	}
	if old, ok := w.messages[key]; !ok || ver(m) >= ver(&old) {
		w.messages[key] = *m
	}
}

// named learns the names of the ids of a message.
func (w *stage) named(m *msg.Message) {
	g := w.a.groups[link.Key{Tenant: m.Host.Tenant, Format: m.Host.Format, Session: m.Session}]
	if g == nil {
		return
	}
	w.id("message "+m.Key, m.Host.ID)
	for kind, name := range map[msg.SpanKind]string{msg.SpanRun: m.Run, msg.SpanChat: cmp.Or(m.ResponseID, m.Key), msg.SpanTool: m.Tool.CallID} {
		w.id(fmt.Sprint(m.Session, " ", kind, " ", name), g.ids.of(kind, name))
	}
	for _, r := range g.Runs {
		w.id(m.Session+" trace "+r.ID, g.ids.key.Trace(r.ID))
	}
}

// do is a step that is no message.
func (w *stage) do(what string, f func() error) {
	w.t.Helper()
	if !w.silent {
		fmt.Fprintf(&w.out, "%s\n", what)
	}
	if err := f(); err != nil {
		w.failed(err)
		return
	}
	w.left()
}

func (w *stage) failed(err error) {
	w.t.Helper()
	if w.fails == 0 || !errors.Is(err, errStore) {
		w.t.Fatal(err)
	}
	panic(errStore)
}

func (w *stage) commit() {
	w.t.Helper()
	w.do("commit", func() error {
		return w.a.Commit(func(key string, open bool, b []byte) {
			w.state[key], w.open[key] = b, open
			if k, err := link.ParseKey(key); err == nil && k.Format != "" && open {
				w.note("%s goes on", k.Session)
			}
		})
	})
	if w.restarts {
		w.restart()
	}
}

// restart goes on from the committed state.
func (w *stage) restart() {
	w.t.Helper()
	w.a = New(w.settings, w, w)
	for at, r := range w.responses {
		if err := w.a.SetResponse(at, r.at, &r.Stream); err != nil {
			w.t.Fatal(err)
		}
	}
	for key, open := range w.open {
		if open {
			if err := w.a.Resume(key, time.Unix(0, t0+w.now*sec)); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// until goes on to a second without a message.
func (w *stage) until(second int64) {
	w.now = second
	w.do(fmt.Sprint("at ", second), func() error { return w.a.Idle(time.Unix(0, t0+second*sec), 0) })
}

// again decodes a stream again for the sake of a run.
func (w *stage) again(at uint64, run string) {
	w.t.Helper()
	s := w.streams[at]
	list := s.list
	s.list = nil
	w.do(fmt.Sprintf("stream %d again for %s", at, run), func() error { return w.a.ResetRun(RunRef{"default", s.format, s.session, run}) })
	for _, m := range list {
		if m.Run == run {
			w.say(at, m)
		} else {
			s.list = append(s.list, m)
		}
	}
}

// respond makes a stream the response to a request of that second.
func (w *stage) respond(at uint64, asked float64, s *msg.Stream) {
	w.t.Helper()
	w.responses[at] = response{t0 + int64(asked*float64(sec)), *s}
	w.do(fmt.Sprintf("stream %d is a response", at), func() error { return w.a.SetResponse(at, w.responses[at].at, s) })
}

func (w *stage) closed(at uint64, runs ...string) {
	w.do(fmt.Sprintf("stream %d ends", at), func() error {
		var refs []RunRef
		for _, r := range runs {
			refs = append(refs, RunRef{"default", w.streams[at].format, w.streams[at].session, r})
		}
		return w.a.CloseStream(at, refs)
	})
}

// left writes the rows and lines of this step. Of a row that left more than once the last version counts: in which order
// sessions are committed is open.
func (w *stage) left() {
	slices.SortStableFunc(w.spans, func(a, b msg.Span) int {
		return cmp.Or(cmp.Compare(rowKey(&a), rowKey(&b)), cmp.Compare(a.Ver, b.Ver))
	})
	slices.Sort(w.step)
	for _, l := range w.step {
		fmt.Fprintf(&w.out, "    %s\n", l)
	}
	for i, s := range w.spans {
		key := rowKey(&s)
		if i+1 < len(w.spans) && rowKey(&w.spans[i+1]) == key {
			continue
		}
		old := w.rows[key]
		if w.rows[key] = s; w.silent {
			continue
		}
		if w.merges {
			s.Ver, old.Ver = 0, 0
		}
		fmt.Fprintf(&w.out, "    %s: %s\n", s.ID, changes(shorter(w.t, old), shorter(w.t, s)))
	}
	w.step, w.spans = nil, nil
}

// rowKey is the identity of a row.
func rowKey(s *msg.Span) string { return fmt.Sprint(s.ID, s.TraceID, s.Start) }

// shorter has the members of a row that have a value; times in seconds.
func shorter(t testing.TB, v any) map[string]any {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var row map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&row); err != nil {
		t.Fatal(err)
	}
	shorten("", row)
	return row
}

func shorten(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if v[name] = shorten(name, member); v[name] == nil {
				delete(v, name)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = shorten(name, v[i])
		}
		if len(v) == 0 {
			return nil
		}
	case json.Number:
		n, err := v.Int64()
		switch {
		case err != nil:
		case n >= t0-100000*sec && n < t0+100000*sec:
			return fmt.Sprintf("%gs", float64(n-t0)/float64(sec))
		case name == "Ver":
			return ver(uint64(n))
		case n == 0:
			return nil
		}
	case string:
		if strings.Trim(v, "0") == "" {
			return nil
		}
	case bool:
		if !v {
			return nil
		}
	}
	return v
}

// ver has the parts of a version.
func ver(v uint64) string {
	pos, moves := int64(v&positionMask), v>>movesShift&3
	if pos >= movedOften {
		moves += uint64(pos) >> oftenShift & maxOften
		pos = pos>>millisShift&(1<<millisLength-1) - t0/1e6&(1<<millisLength-1)
	} else if pos > t0/2000 {
		pos -= t0 / 1000
	}
	linked := ""
	if v&linkedBit != 0 {
		linked = " linked"
	}
	return fmt.Sprintf("%x.%d.%d%s %d", v>>revisionShift, v>>completeShift&3, moves, linked, pos)
}

// TestVersionsOfMoves: of two rows of a span the one after more moves is valid, whenever each was seen last, and of as many the one
// that was seen longer.
func TestVersionsOfMoves(t *testing.T) {
	now := time.Date(2031, 12, 31, 0, 0, 0, 0, time.UTC).UnixNano()
	last := uint64(0)
	for moves := range mostMoves + 1 {
		for _, ago := range []time.Duration{time.Hour, 0} {
			v := spanVersion(1, &msg.Span{State: msg.SpanClosed, LastSeen: now - int64(ago) - int64(moves)*int64(48*time.Hour)}, true, moves, false)
			if v <= last {
				t.Errorf("after %d moves, seen %s ago: %x, before %x", moves, ago, v, last)
			}
			last = v
		}
	}
}

func line(row map[string]any) string {
	text, err := json.Marshal(row)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// changes has the members of a row that differ from those of the row before.
func changes(was, is map[string]any) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if now := line(map[string]any{"": is[name]}); now != line(map[string]any{"": was[name]}) {
			out = append(out, name+" "+now[4:len(now)-1])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if is[name] == nil {
			out = append(out, "no "+name)
		}
	}
	return strings.Join(out, ", ")
}

// text is all that was written down, with the names of ids.
func (w *stage) text() string { return strings.NewReplacer(w.names...).Replace(w.out.String()) }

// table has the valid rows, without the members that depend on when they were read.
func (w *stage) table() map[string]string {
	out := make(map[string]string)
	for key, m := range w.messages {
		if m.Host.Ver, m.Host.Seq = 0, 0; !m.Host.Tombstone {
			out[key] = line(shorter(w.t, m))
		}
	}
	for key, s := range w.stored {
		if s.Ver, s.Shown, s.Amends, s.Alive = 0, false, false, 0; !s.Tombstone {
			out[key] = line(shorter(w.t, s))
		}
	}
	return out
}

// ends writes the table.
func (w *stage) ends() {
	rows := w.table()
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&w.out, "%s\n", rows[key])
	}
}

// held compares a story with its approved text, and plays it with a store that fails at each read.
func (w *stage) held(name string, f func(w *stage)) {
	t := w.t
	w.once(f)
	file := "testdata/" + name + ".txt"
	if *update {
		if err := os.WriteFile(file, []byte(w.text()), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Error("read what changed in " + file)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(strings.Split(string(want), "\n"), strings.Split(w.text(), "\n")); d != "" {
		t.Errorf("%s (-approved +now):\n%s", name, d)
	}
	for n := 1; ; n += 1 + n/8 {
		failing := newStage(t, w.settings)
		failing.fails, failing.silent = n, true
		if failing.once(f) {
			break
		}
	}
}

// play is held, and compares the rows with those of a story that restarts at each commit.
func (w *stage) play(name string, f func(w *stage)) {
	w.held(name, f)
	again := newStage(w.t, w.settings)
	again.restarts, again.silent = true, true
	again.once(f)
	if d := gocmp.Diff(w.table(), again.table()); d != "" {
		w.t.Errorf("%s with restarts (-without +with):\n%s", name, d)
	}
}

// once plays a story and reports whether the store did not fail.
func (w *stage) once(f func(w *stage)) (ok bool) {
	defer func() {
		if v := recover(); v != nil && v != errStore {
			panic(v)
		}
	}()
	f(w)
	if w.fails != 0 && w.read >= w.fails {
		w.t.Errorf("no step has the error of the store's read %d", w.fails)
	}
	return true
}

// quietly plays steps without writing them down; their effects show in those that follow.
func (w *stage) quietly(f func()) {
	silent := w.silent
	w.silent = true
	f()
	w.silent = silent
}
