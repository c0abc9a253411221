package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
)

// opened opens a stream that was read, decoded and committed up to a position.
func opened(t *testing.T, p *Pipeline, f *Feed, key string, pos int64) *account {
	t.Helper()
	s := &stream{name: nameOf(f.source, key), feed: f}
	if err := p.core.open(s, checkpoint.Stream{Source: f.source, Key: key, Origin: "/" + key}); err != nil {
		t.Fatal(err)
	}
	a := p.core.accounts.of[s]
	a.record.Pos, s.cursor.next, s.cursor.high = pos, pos, pos
	p.core.commits.changed = make(map[uint64]*account)
	return a
}

// TestSilentDecodersRest: the decoder of a stream without frames is flushed, once, and later closed, if its snapshot is of there: sooner where many are open. Then it
// costs nothing. A command that finds no room in its lane is tried again soon.
func TestSilentDecodersRest(t *testing.T) {
	p, feed := stopped(t, Settings{FlushIdle: 2 * time.Second, CloseIdle: time.Minute, Lanes: 1})
	x, now := &p.core.accounts, time.Now()
	a := opened(t, p, feed, "k", 10)
	a.touched, a.decoderClosed = now, false
	queue := a.stream.lane.queue
	step := func(silent time.Duration, what string) {
		t.Helper()
		if again := x.rest(now.Add(silent), &p.settings); again != nil {
			t.Errorf("after %v: again, soon", silent)
		}
		got := ""
		select {
		case cmd := <-queue:
			got = fmt.Sprintf("%T", cmd)
			if to := cmd.target(); to.stream != a.stream || to.pos != 10 {
				t.Errorf("after %v: %+v", silent, to)
			}
		default:
		}
		if got != what {
			t.Errorf("after %v: %q, want %q", silent, got, what)
		}
	}
	step(2*time.Second-1, "")
	step(2*time.Second, "*pipeline.flush")
	step(3*time.Second, "")
	a.flushing, a.record.FlushPos = false, 10
	step(time.Hour, "") // without its state it is not closed
	a.record.SnapPos = 10
	step(time.Minute-1, "")
	awake := maps.Clone(x.awake)
	for range manyAwake {
		x.awake[&account{stream: a.stream, record: checkpoint.Stream{Pos: 1}, flushing: true}] = struct{}{}
	}
	step(2*time.Second, "*pipeline.closeDecoder")
	x.awake, a.decoderClosed = awake, false
	step(time.Minute, "*pipeline.closeDecoder")
	if step(time.Hour, ""); len(x.awake) != 0 {
		t.Error("a decoder that is closed is looked at again")
	}
	x.wake(a)
	a.decoderClosed, a.record.FlushPos = false, 5
	for range cap(queue) {
		queue <- &openDecoder{}
	}
	if again := x.rest(now.Add(time.Hour), &p.settings); again == nil || a.flushing {
		t.Errorf("a lane without room: flushing %t, again %t", a.flushing, again != nil)
	}
	a.record.FlushPos = 10
	if again := x.rest(now.Add(time.Hour), &p.settings); again == nil || a.decoderClosed {
		t.Errorf("a lane without room: closed %t, again %t", a.decoderClosed, again != nil)
	}
}

// TestNothingIsOnItsWay: a pipeline is drained when nothing is anywhere between a source and the exporters.
func TestNothingIsOnItsWay(t *testing.T) {
	for name, busy := range map[string]func(c *core, a *account){
		"":                             func(*core, *account) {},
		"a command":                    func(c *core, _ *account) { c.inbox.pending.Add(1) },
		"a batch":                      func(c *core, _ *account) { c.commits.submitted.Add(1) },
		"a row":                        func(c *core, _ *account) { c.commits.addMessage(&msg.Message{}) },
		"an account":                   func(c *core, a *account) { c.commits.touch(a) },
		"a row of an account":          func(c *core, a *account) { c.commits.ledgers.pending[1] = a },
		"a dead letter of an exporter": func(c *core, _ *account) { c.deadLetters.add(msg.DeadLetter{}) },
		"frames to be delivered again": func(_ *core, a *account) { a.stream.cursor.high = 11 },
	} {
		p, feed := stopped(t, Settings{})
		a := opened(t, p, feed, "k", 10)
		busy(p.core, a)
		if got := p.core.drained(); got != (name == "") {
			t.Errorf("%q is on its way: drained %t", name, got)
		}
		if a.stalled = true; name == "frames to be delivered again" && !p.core.drained() {
			t.Error("a stream whose decoder cannot be opened is waited for")
		}
	}
}

// TestBatchesAreClosedWhenFull: by their rows, by their bytes, and where they are all that may be in flight.
func TestBatchesAreClosedWhenFull(t *testing.T) {
	p, _ := stopped(t, Settings{BatchRows: 2, BatchBytes: 400, MaxInFlight: 10})
	k := &p.core.commits
	for i, x := range []struct {
		bytes, read   int64
		rows          int
		full, backlog bool
	}{{0, 0, 0, false, false}, {399, 99, 1, false, false}, {400, 100, 1, true, true}, {0, 0, 2, true, false}} {
		k.batch = &commitBatch{bytes: x.bytes, read: x.read}
		for range x.rows {
			k.addMessage(&msg.Message{})
		}
		if k.full() != x.full || k.backlog() != x.backlog || k.empty() != (x.rows == 0) {
			t.Errorf("%d: full %t, backlog %t", i, k.full(), k.backlog())
		}
	}
	waits := func() { p.inFlight.waiters = append(p.inFlight.waiters, &waiter{}) }
	for i, change := range []func(){func() {}, waits, func() { k.held.Add(1) }, func() { k.held.Add(-1); p.inbox.pending.Add(1) }, func() { p.inbox.pending.Add(-1); k.batch = new(commitBatch) }} {
		change()
		if got := p.core.starved(); got != (i == 1) {
			t.Errorf("%d: sources wait for it: %t", i, got)
		}
	}
}

// TestHeartbeatIsOfOneStream: of each source the account of the stream that was read last is written, when nothing was for long.
func TestHeartbeatIsOfOneStream(t *testing.T) {
	p, feed := stopped(t, Settings{Heartbeat: time.Minute})
	other := &Feed{source: "other", format: feed.format, counters: feed.counters}
	now := time.Now()
	for i, a := range []*account{opened(t, p, feed, "a", 1), opened(t, p, feed, "b", 1), opened(t, p, feed, "c", 1), opened(t, p, other, "d", 1)} {
		a.touched = now.Add(time.Duration(i%2) * time.Second)
	}
	k := &p.core.commits
	k.closed = now
	k.settings.Heartbeat = 0
	if p.core.accounts.heartbeat(k, now.Add(time.Hour)); len(k.changed) > 0 {
		t.Error("a heartbeat although there is to be none")
	}
	k.settings.Heartbeat = time.Minute
	for _, x := range []struct {
		silent time.Duration
		want   []string
	}{{time.Minute - 1, nil}, {time.Minute, []string{"b", "d"}}} {
		p.core.accounts.heartbeat(k, now.Add(x.silent))
		var got []string
		for _, a := range k.changed {
			got = append(got, a.record.Key)
		}
		if slices.Sort(got); !slices.Equal(got, x.want) {
			t.Errorf("after %v: %q, want %q", x.silent, got, x.want)
		}
	}
}

// TestLateLinks: a stream with a run whose parent was found late is delivered again from its beginning; one that is not open is when it is opened.
func TestLateLinks(t *testing.T) {
	p, feed := stopped(t, Settings{})
	c := p.core
	a := opened(t, p, feed, "k", 10)
	name := a.stream.name
	rewound := make(chan int64, 2)
	a.stream.cursor.rewind = func(pos int64) { rewound <- pos }
	if c.Replayable(name) != true || c.Replayable(name+1) {
		t.Error("only a stream that is open can be decoded again")
	}
	a.record.SnapPos, a.record.Snapshot, a.record.FlushPos, a.record.Clock.Last = 5, []byte("state"), 7, 9
	ref := func(run string) assemble.RunRef {
		return assemble.RunRef{Tenant: "tenant", Format: "notes", Session: "s", Run: run}
	}
	for i, run := range []string{"r1", "r2"} {
		c.ReplayChildren(name, ref(run))
		if err := c.replay(); err != nil {
			t.Fatal(err)
		}
		if pos := <-rewound; pos != 0 || len(c.replays.pending) != 0 || len(c.commits.changed) != 1 {
			t.Errorf("%s: delivered again from %d", run, pos)
		}
		r := a.record
		if r.Replay == nil || r.Replay.Until != 10 || len(r.Replay.Runs) != i+1 || r.Pos != 0 || r.SnapPos != 0 || r.Snapshot != nil || r.FlushPos != 0 || r.Clock != (checkpoint.Clock{}) {
			t.Errorf("%s: %+v", run, r)
		}
		a.record.Pos = 3 // and again, before it has come to its former end
	}
	if !a.replaying(10) || a.replaying(11) || readBytes(&a.record) != 10 {
		t.Error("up to where it is decoded again")
	}
	for range 2 {
		c.ReplayChildren(77, ref("r"))
	}
	if err := c.replay(); err != nil || len(c.replays.awaited[77]) != 1 {
		t.Errorf("%v, %d are awaited", err, len(c.replays.awaited[77]))
	}
	if err := c.open(&stream{name: 77, feed: feed}, checkpoint.Stream{Source: "source", Key: "late"}); err != nil || len(c.replays.awaited) != 0 {
		t.Errorf("%v, %d are awaited", err, len(c.replays.awaited))
	}
	full := replays{awaited: make(map[uint64][]assemble.RunRef)}
	for i := range uint64(maxAwaited) {
		full.await(replay{i, ref("r")})
	}
	if full.await(replay{maxAwaited, ref("r")}) || !full.await(replay{1, ref("r2")}) || len(full.awaited[1]) != 2 {
		t.Error("there is room for more than is bounded")
	}
}

// TestFlushByTheAssembler: a stream that was flushed is flushed again when the assembler asks.
func TestFlushByTheAssembler(t *testing.T) {
	p, feed := stopped(t, Settings{})
	a := opened(t, p, feed, "k", 10)
	a.record.FlushPos = 10
	clear(p.core.accounts.awake)
	p.core.Flush(a.stream.name + 1)
	if !a.flushed() || len(p.core.accounts.awake) > 0 {
		t.Error("another stream is flushed")
	}
	if p.core.Flush(a.stream.name); a.flushed() || len(p.core.accounts.awake) != 1 || len(p.core.commits.changed) != 1 {
		t.Error("it is not flushed again")
	}
}

// TestManyPoisonRecords: of a stream with too many records that end its decoder nothing more is decoded; a frame that is not for the decoder keeps its reason.
func TestManyPoisonRecords(t *testing.T) {
	p, feed := stopped(t, Settings{})
	a := opened(t, p, feed, "k", 0)
	mark := func() (reasons []string) {
		frames := []frame.Frame{{Pos: 0}, {Pos: 5}, {Pos: 7, Reason: "cut"}}
		q := a.stream.cursor.view().quarantine
		q.mark(frames)
		for _, f := range frames {
			reasons = append(reasons, f.Reason)
		}
		return reasons
	}
	p.core.quarantine(a, 5, "decoder_crash")
	if d := cmp.Diff([]string{"", "decoder_crash", "cut"}, mark()); d != "" {
		t.Error(d)
	}
	for i := range maxPoison - 2 {
		a.record.Poison[int64(100+i)] = "decoder_crash"
	}
	p.core.quarantine(a, 9_000, "decoder_memory")
	if d := cmp.Diff([]string{"decoder_memory", "decoder_crash", "cut"}, mark()); d != "" || len(p.core.commits.changed) != 1 {
		t.Error(d)
	}
}

// TestIdentify: a stream's session, run and response are its first; that it has more is noted.
func TestIdentify(t *testing.T) {
	a := &account{others: map[string]struct{}{"s": {}}} // its first session was erased
	for i, x := range []struct {
		m         msg.Message
		run, resp string
		several   bool
		last      string
	}{
		{msg.Message{Session: "s", Run: "child", ParentRun: "r"}, "", "", false, "s"},
		{msg.Message{Session: "s", Run: "called", ParentCall: "c"}, "", "", false, "s"},
		{msg.Message{Session: "other", Run: "r0", ResponseID: ""}, "", "", false, "other"},
		{msg.Message{Session: "s", Run: "r", ResponseID: "m1"}, "r", "m1", false, "s"},
		{msg.Message{Session: "s", Run: "r2", ResponseID: "m1"}, "r", "m1", false, "s"},
		{msg.Message{Session: "third", ResponseID: "m2"}, "r", "m1", true, "third"},
		{msg.Message{Session: "s"}, "r", "m1", true, "s"},
	} {
		a.ofErased = true
		a.identify(&x.m)
		if r := &a.record; r.Session != "s" || r.Run != x.run || r.Response != x.resp || r.Several != x.several || a.lastSession != x.last || a.ofErased {
			t.Errorf("message %d: %+v, last %q", i, r, a.lastSession)
		}
	}
	if d := cmp.Diff(map[string]struct{}{"other": {}, "third": {}}, a.others); d != "" {
		t.Error(d)
	}
	for _, list := range [][]msg.Message{{{Session: "s"}, {Session: "other", ResponseID: "m1"}}, {{Session: "s", ResponseID: "m1"}, {Session: "s", ResponseID: "m2"}}} {
		a := &account{}
		for i := range list {
			a.identify(&list[i])
		}
		if r := &a.record; !r.Several || r.Response != list[0].ResponseID {
			t.Errorf("%+v", r)
		}
	}
}

// TestWhatWasDecodedIsNoSuspect: a part of a stream is not searched any more for the record that ended a process when all of it was decoded after all.
func TestWhatWasDecodedIsNoSuspect(t *testing.T) {
	for name, x := range map[string]struct {
		command func(ticket) command
		to      int64 // the end of the decoded part
	}{
		"frames": {func(at ticket) command {
			return &decode{ticket: at, batch: &frame.Batch{Frames: []frame.Frame{{Pos: 10, End: 15}}}, held: lease{0, newBudget(1), newBudget(1)}}
		}, 15},
		"a flush": {func(at ticket) command { return &flush{ticket: at} }, 11},
		"a close": {func(at ticket) command { return &closeDecoder{at} }, 11},
		"an end":  {func(at ticket) command { return &end{at, make(chan error, 1)} }, 11},
		"an open": {func(at ticket) command { return &openDecoder{at} }, 10},
	} {
		for _, more := range []int64{0, 1} {
			p, feed := stopped(t, Settings{})
			a := opened(t, p, feed, "k", 10)
			a.decoded = 10
			a.setSearch(search{from: 10, to: x.to + more, crashes: 1})
			p.inbox.pending.Add(1)
			if err := p.core.take(result{x.command(ticket{a.stream, 0, 10}), &wire.Result{HasSnapshot: true, Snapshot: []byte("state")}}); err != nil {
				t.Fatal(err)
			}
			if cleared := a.search == (search{}); cleared != (more == 0) || len(p.core.commits.changed) != 1 || a.stream.cursor.view().quarantine.search != a.search || p.inbox.pending.Load() != 0 {
				t.Errorf("%s up to %d: %+v", name, x.to+more, a.search)
			}
			if r := &a.record; string(r.Snapshot) != "state" || r.SnapPos != a.decoded || a.stream.cursor.view().resume.pos != a.decoded {
				t.Errorf("%s: a state of %d bytes at %d", name, len(r.Snapshot), r.SnapPos)
			}
		}
	}
}

// TestAccountOfAnErasedSession: a stream that had it, as its first, its last or another, has it no more. A file is then decoded from its beginning after a restart, a
// live recording keeps its decoder's state until its connection ends.
func TestAccountOfAnErasedSession(t *testing.T) {
	for name, x := range map[string]struct {
		first, last, other, response, state string
		changed                             bool
	}{
		"first":      {"gone", "kept", "kept too", "kept", "state", true},
		"last":       {"kept", "gone", "kept too", "kept", "state", true},
		"another":    {"kept", "kept", "gone", "kept", "state", true},
		"all":        {"gone", "gone", "gone", "gone", "state of gone", true},
		"none":       {"kept", "kept", "kept too", "kept", "state", false},
		"a response": {"kept", "kept", "kept too", "gone", "state", false},
		"a state":    {"kept", "kept", "kept too", "kept", "state of gone", true},
	} {
		for _, live := range []bool{false, true} {
			p, feed := stopped(t, Settings{})
			feed.journalled = live
			a := opened(t, p, feed, "k", 10)
			a.record.Session, a.record.Run, a.record.Response, a.record.Several = x.first, "run", "response", true
			a.record.SnapPos, a.record.Snapshot = 5, []byte(x.state)
			a.lastSession, a.others, a.response = x.last, map[string]struct{}{x.other: {}}, &msg.Stream{Session: x.response}
			a.stream.cursor.setResume(a.resume())
			is := func(tenant, session string) bool { return tenant == "tenant" && session == "gone" }
			changed := a.erase(&Erasing{Session: is, Mentions: func(state []byte) bool { return strings.Contains(string(state), "gone") }})
			if want := x.changed && (!live || name != "a state"); changed != want {
				t.Errorf("%s, live %t: changed %t", name, live, changed)
			}
			kept := func(s string) string { return strings.ReplaceAll(s, "gone", "") }
			r := &a.record
			if r.Session != kept(x.first) || a.lastSession != kept(x.last) || (len(a.others) == 0) != (x.other == "gone") {
				t.Errorf("%s, live %t: session %q, last %q, others %v", name, live, r.Session, a.lastSession, a.others)
			}
			if first := x.first != "gone"; (r.Run != "") != first || (r.Response != "") != first || r.Several != first || (a.response == nil) != (x.response == "gone") {
				t.Errorf("%s, live %t: %+v, response %v", name, live, r, a.response)
			}
			if dropped := x.changed && !live; r.Erased != dropped || (r.Snapshot == nil) != dropped || (r.SnapPos == 0) != dropped || a.stream.cursor.view().resume.pos != r.SnapPos {
				t.Errorf("%s, live %t: a state of %d bytes at %d", name, live, len(r.Snapshot), r.SnapPos)
			}
		}
	}
}

// filesDrained is drained when it says so.
type filesDrained struct{ drained *bool }

func (f filesDrained) Drained() bool             { return *f.drained }
func (filesDrained) Again(func(key string) bool) {}

// TestHistoryRests: what the last frames of a file left open is emitted as soon as the files are at their end, if the file was
// written long before; before that, and of a file that is being written, it waits. With it all history is read.
func TestHistoryRests(t *testing.T) {
	p, feed := stopped(t, Settings{FlushIdle: 2 * time.Second, Lanes: 1})
	now, x := time.Now(), &p.core.accounts
	if x.historyRead() {
		t.Error("all is read of a pipeline without files")
	}
	drained := false
	feed.SetFiles(filesDrained{&drained})
	long := opened(t, p, feed, "long ago", 0)
	for key, a := range map[string]*account{"long ago": long, "written": opened(t, p, feed, "written", 0)} {
		a.stream.cursor.next = 10
		b := &frame.Batch{Frames: []frame.Frame{aFrame(0, "")}}
		if a == long {
			b.Backlog, b.Written = true, now.Add(-time.Hour).UnixNano()
		}
		held, err := newLease(t.Context(), 0, feed.format.undecoded, feed.inFlight)
		if err != nil {
			t.Fatal(err)
		}
		p.inbox.pending.Add(1)
		if err := p.core.take(result{&decode{ticket: ticket{a.stream, 0, 0}, batch: b, held: held}, &wire.Result{}}); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
	}
	flushes := func() (list []*stream) {
		for {
			select {
			case cmd := <-long.stream.lane.queue:
				list = append(list, cmd.target().stream)
			default:
				return list
			}
		}
	}
	if x.rest(now, &p.settings); len(flushes()) != 0 {
		t.Error("a decoder was flushed while files are read")
	}
	if x.rest(now, &p.settings); len(flushes()) != 0 || x.historyRead() {
		t.Error("the files are not at their end")
	}
	drained = true
	if x.rest(now, &p.settings); !slices.Equal(flushes(), []*stream{long.stream}) || x.historyRead() {
		t.Error("the file of long ago is not flushed alone")
	}
	for _, a := range x.of {
		a.record.FlushPos = a.record.Pos
	}
	if !x.historyRead() {
		t.Error("all is decoded and flushed")
	}
	if p.core.detach(feed); x.historyRead() {
		t.Error("the source has ended")
	}
}
