package pipeline

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestRequestsOpenDecoders: the first command of a stream in a process, or since a rewind, opens its decoder where it goes on; one that was
// queued before the rewind is not sent.
func TestRequestsOpenDecoders(t *testing.T) {
	s := &stream{id: 7, feed: &Feed{source: "source", options: "{}", journalled: true, snapEvery: time.Hour}}
	s.decoder.asked = time.Now()
	s.cursor.resume = resume{5, []byte("state"), "/o"}
	first, second := &connection{snapshots: true}, &connection{}
	opened := &wire.Open{Origin: "/o", Options: "{}", Snapshot: []byte("state"), Source: "source"}
	next := func(conn *connection, generation int, cmd command) (wire.Batch, bool) {
		*cmd.target() = ticket{s, generation, 5}
		return conn.encode(cmd, s.cursor.view())
	}
	lines := func() command { return &decode{batch: &frame.Batch{Frames: []frame.Frame{{Pos: 5, End: 6}}}} }
	for i, x := range []struct {
		conn       *connection
		generation int
		cmd        command
		open       *wire.Open
		snapshot   bool
		ok         bool
	}{
		{first, 0, lines(), opened, false, true},
		{first, 0, lines(), nil, false, true},
		{first, 0, &flush{}, nil, true, true},
		{first, 1, lines(), nil, false, false},
		{first, 0, &closeDecoder{}, nil, false, true},
		{first, 0, &openDecoder{}, opened, false, true},
		{second, 0, lines(), opened, false, true},
		{second, 0, &flush{}, nil, false, true}, // its decoders have no snapshots
	} {
		b, ok := next(x.conn, x.generation, x.cmd)
		if d := cmp.Diff(x.open, b.Open); d != "" || b.Snapshot != x.snapshot || ok != x.ok || ok && b.Stream != 7 {
			t.Errorf("%d: %t, snapshot %t, stream %d %s", i, ok, b.Snapshot, b.Stream, d)
		}
	}
	s.cursor.rewindTo(1, resume{0, nil, "/p"})
	if b, ok := next(second, 1, lines()); !ok || b.Open == nil || b.Open.Origin != "/p" || b.Open.Snapshot != nil {
		t.Errorf("after a rewind: %t, %+v", ok, b.Open)
	}
	if _, ok := next(second, 0, lines()); ok {
		t.Error("a command of before the rewind is sent")
	}
}

// TestSnapshotsAreDue: small batches of a file have one each while snapshots are small, and every stream after so many bytes or so long.
func TestSnapshotsAreDue(t *testing.T) {
	for i, x := range []struct {
		journalled bool
		size, last int // of the batch, and of the snapshot before
		unsnapped  int64
		ago        time.Duration
		want       bool
	}{
		{false, smallBatch, smallSnapshot, 0, 0, true},
		{true, 1, 1, 0, 0, false},
		{false, smallBatch + 1, 1, 0, 0, false},
		{false, 1, smallSnapshot + 1, 0, 0, false},
		{true, 10, 1, snapEveryBytes - 10, 0, true},
		{true, 10, 1, snapEveryBytes - 11, 0, false},
		{true, 1, 1, 0, 2 * time.Minute, true},
	} {
		s := &stream{feed: &Feed{journalled: x.journalled, snapEvery: time.Minute}}
		s.decoder.unsnapped, s.decoder.asked = x.unsnapped, time.Now().Add(-x.ago)
		if got := s.snapshotDue(x.size, make([]byte, x.last)); got != x.want || s.decoder.unsnapped != x.unsnapped+int64(x.size) {
			t.Errorf("%d: due %t, %d bytes since the last", i, got, s.decoder.unsnapped)
		}
	}
}

// TestAnswersThatAreWrong: an answer that is not of the commands that were sent ends the process, and each command is applied or discarded.
func TestAnswersThatAreWrong(t *testing.T) {
	for name, x := range map[string]struct {
		streams  []uint64 // of the results
		answered int
		fails    bool
	}{
		"right": {[]uint64{1, 2}, 2, false}, "one is missing": {[]uint64{1}, 1, true}, "one too many": {[]uint64{1, 2, 2}, 2, true}, "of another stream": {[]uint64{1, 9}, 1, true}, "none": {nil, 0, true},
	} {
		in := newInbox()
		in.results = make(chan result, 9)
		l := &lane{format: "notes", inbox: in, results: make(resultPool, 1)}
		var commands []command
		released := 0
		for id := range uint64(2) {
			d := &decode{ticket: ticket{stream: &stream{id: id + 1, feed: &Feed{}}}, batch: &frame.Batch{Frames: []frame.Frame{{Pos: 3, End: 5}}, Release: func() { released++ }}, held: lease{0, newBudget(1), newBudget(1)}}
			commands = append(commands, d)
		}
		in.pending.Add(2)
		resp := new(wire.Response)
		for _, id := range x.streams {
			resp.Append(&wire.Batch{Stream: id}, nil, nil, nil, nil)
		}
		err := l.deliver(t.Context(), resp, commands)
		if (err != nil) != x.fails || len(in.results) != x.answered || released != 2-x.answered || in.pending.Load() != int64(x.answered) {
			t.Errorf("%s: %v, %d answered, %d discarded, %d pending", name, err, len(in.results), released, in.pending.Load())
		}
		if x.fails != (len(l.unanswered) == 2 && l.unanswered[1].from == 3 && l.unanswered[1].to == 5) {
			t.Errorf("%s: suspects %+v", name, l.unanswered)
		}
	}
}

// laneOf is a lane of a pipeline that does not run, whose queue is of the test.
func laneOf(queued ...command) (l *lane, woken *int) {
	woken = new(int)
	l = &lane{format: "notes", inbox: newInbox(), results: make(resultPool, 1), queue: make(chan command, max(len(queued), 1)), wake: func() { *woken++ }}
	for _, cmd := range queued {
		l.queue <- cmd
	}
	l.inbox.pending.Add(int64(len(queued)))
	return l, woken
}

// lined is a command with frames of ten bytes, and a buffer of a size.
func lined(s *stream, from, to int64, size int) *decode {
	d := &decode{ticket: ticket{stream: s, pos: from}, batch: &frame.Batch{Data: make([]byte, size)}, held: lease{0, newBudget(1), newBudget(1)}}
	for pos := from; pos < to; pos += 10 {
		d.batch.Frames = append(d.batch.Frames, frame.Frame{Pos: pos, End: pos + 10})
	}
	return d
}

// TestRequestsAreBounded by their commands and by their bytes. A command that is suspect is not in one with others.
func TestRequestsAreBounded(t *testing.T) {
	s := &stream{feed: &Feed{}}
	suspect := &stream{feed: &Feed{}}
	suspect.cursor.quarantine.search = search{from: 0, to: 10, crashes: isolateAfter}
	repeat := func(n int, cmd command) []command { return slices.Repeat([]command{cmd}, n) }
	for name, x := range map[string]struct {
		queued []command
		want   []int // commands of each request
	}{
		"one":        {repeat(1, lined(s, 0, 10, 9)), []int{1}},
		"many":       {repeat(requestCommands+6, &flush{ticket: ticket{stream: s}}), []int{requestCommands}},
		"large ones": {repeat(3, lined(s, 0, 10, requestBytes/2)), []int{2}},
		"a little":   {repeat(3, lined(s, 0, 10, requestBytes/3)), []int{3}},
		"suspect":    {[]command{lined(s, 0, 10, 9), lined(suspect, 0, 20, 9), lined(s, 10, 20, 9)}, []int{1, 1, 1, 1}}, // with the opening
	} {
		l, _ := laneOf(x.queued...)
		var got []int
		for _, r := range l.collect(&connection{}, <-l.queue) {
			got = append(got, len(r.commands))
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: %d, want %d", name, got, x.want)
		}
	}
}

// TestSuspectCommandsAreAlone once two processes have ended with them: each frame of the part that is searched, behind the opening of the decoder.
func TestSuspectCommandsAreAlone(t *testing.T) {
	conn := &connection{}
	for i, x := range []struct {
		crashes int
		open    bool
		cmd     func(*stream) command
		want    []string
	}{
		{isolateAfter - 1, false, func(s *stream) command { return lined(s, 0, 40, 9) }, nil},
		{isolateAfter, false, func(s *stream) command { return lined(s, 10, 20, 9) }, nil},
		{isolateAfter, false, func(s *stream) command { return lined(s, 30, 40, 9) }, nil},
		{isolateAfter, false, func(s *stream) command { return lined(s, 0, 40, 9) }, []string{"1 0-1 true", "0 0-20 false", "0 20-30 true", "0 30-40 false"}},
		{isolateAfter, true, func(s *stream) command { return lined(s, 10, 30, 9) }, []string{"0 10-20 false", "0 20-30 true"}},
		{isolateAfter, true, func(s *stream) command { return &flush{ticket: ticket{stream: s, pos: 29}} }, []string{"2 29-30 true"}},
		{isolateAfter, true, func(s *stream) command { return &flush{ticket: ticket{stream: s, pos: 30}} }, nil},
	} {
		s := &stream{feed: &Feed{}}
		s.cursor.quarantine.search = search{from: 20, to: 30, crashes: x.crashes}
		if x.open {
			s.decoder.conn = conn
		}
		l, _ := laneOf()
		l.inbox.pending.Store(1)
		var got []string
		for _, r := range l.isolate(conn, x.cmd(s)) {
			a := r.commands[0].attempt()
			got = append(got, fmt.Sprintf("%d %d-%d %t", a.step, a.from, a.to, r.alone))
		}
		if d := cmp.Diff(x.want, got); d != "" || l.inbox.pending.Load() != int64(max(len(got), 1)) {
			t.Errorf("%d: %d pending %s", i, l.inbox.pending.Load(), d)
		}
	}
}

// TestDecodedAlone: beside a request that is decoded alone there is no other.
func TestDecodedAlone(t *testing.T) {
	conn := &connection{exclusive: new(sync.RWMutex)}
	for _, alone := range []bool{false, true} {
		conn.acquire(request{alone: alone})
		if beside := conn.exclusive.TryRLock(); beside == alone || conn.exclusive.TryLock() {
			t.Fatalf("alone %t: another one beside it %t", alone, beside)
		} else if beside {
			conn.exclusive.RUnlock()
		}
		if conn.release(request{alone: alone}); !conn.exclusive.TryLock() {
			t.Fatalf("alone %t: it is not released", alone)
		}
		conn.exclusive.Unlock()
	}
}

// TestQueuedOrDiscarded: a command is in its lane's queue, and wakes its format, or is discarded: because there is no room in time, the pipeline has stopped, or its process has ended.
func TestQueuedOrDiscarded(t *testing.T) {
	s := &stream{feed: &Feed{}}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, x := range []struct {
		queued  []command
		stopped bool
		err     error
	}{{nil, false, nil}, {[]command{lined(s, 0, 10, 9)}, false, context.Canceled}, {[]command{lined(s, 0, 10, 9)}, true, errStopped}} {
		l, woken := laneOf(x.queued...)
		released := 0
		cmd := lined(s, 10, 20, 9)
		cmd.batch.Release = func() { released++ }
		ctx := ended
		if x.err != context.Canceled {
			ctx = t.Context()
		}
		if x.stopped {
			close(l.inbox.stopped)
		}
		if err := l.put(ctx, cmd); err != x.err || l.inbox.pending.Load() != 1 || (*woken == 1) != (err == nil) || (released == 1) != (err != nil) {
			t.Errorf("%v, want %v: %d pending, woken %d times, released %d times", err, x.err, l.inbox.pending.Load(), *woken, released)
		}
		if l.tryPut(lined(s, 20, 30, 9)) || l.inbox.pending.Load() != 1 || *woken > 1 {
			t.Error("there is room in a full lane")
		}
		if l.empty(); l.inbox.pending.Load() != 0 || released != 1 || len(l.queue) != 0 {
			t.Errorf("emptied: %d pending, released %d times", l.inbox.pending.Load(), released)
		}
		was := *woken
		if !l.tryPut(lined(s, 20, 30, 9)) || l.inbox.pending.Load() != 1 || *woken != was+1 {
			t.Errorf("%d pending, woken %d times", l.inbox.pending.Load(), *woken)
		}
	}
}

// TestNotSent: of the commands of a request those of a stream of which nothing is decoded any more are answered, those of before a rewind are discarded, and all when the connection has ended.
func TestNotSent(t *testing.T) {
	for _, ended := range []bool{false, true} {
		l, _ := laneOf()
		l.inbox.results = make(chan result, 9)
		conn := &connection{exclusive: new(sync.RWMutex), sent: make(chan request)}
		withheld, rewound, live := &stream{feed: &Feed{}}, &stream{feed: &Feed{}}, &stream{feed: &Feed{}}
		withheld.cursor.quarantine.stream = msg.ReasonDecoderCrash
		rewound.cursor.generation = 1
		released := 0
		var r request
		for _, s := range []*stream{withheld, rewound, live}[:map[bool]int{false: 2, true: 3}[ended]] {
			d := lined(s, 0, 10, 9)
			d.batch.Release = func() { released++ }
			r.commands = append(r.commands, d)
		}
		l.inbox.pending.Store(int64(len(r.commands)))
		ctx, cancel := context.WithCancel(t.Context())
		if ended {
			cancel()
			l.inbox.results = make(chan result) // the core takes none any more
		}
		if ok := l.transmit(ctx, conn, r); ok == ended || int(l.inbox.pending.Load()) != len(l.inbox.results) || len(l.inbox.results) == 1 == ended || released != map[bool]int{false: 1, true: 3}[ended] || !conn.exclusive.TryLock() {
			t.Errorf("ended %t: %t, %d pending, %d answered, %d released", ended, ok, l.inbox.pending.Load(), len(l.inbox.results), released)
		}
		cancel()
	}
	l, _ := laneOf()
	l.inbox.pending.Store(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	conn := &connection{exclusive: new(sync.RWMutex), sent: make(chan request)}
	if l.transmit(ctx, conn, request{commands: []command{lined(&stream{feed: &Feed{}}, 0, 10, 9)}}) || l.inbox.pending.Load() != 0 || !conn.exclusive.TryLock() {
		t.Errorf("a request is sent to a process that has ended: %d pending", l.inbox.pending.Load())
	}
}

// TestWhoIsBlamed: for an answer that is late or wrong the commands of its lane, else those of all.
func TestWhoIsBlamed(t *testing.T) {
	a, b := &lane{unanswered: []attempt{{from: 1}}}, &lane{unanswered: []attempt{{from: 2}}}
	f := &format{lanes: []*lane{a, b}}
	for _, x := range []struct {
		of   *lane
		err  error
		want []int64
	}{{nil, errEnded, []int64{1, 2}}, {b, errEnded, []int64{2}}, {nil, nil, nil}} {
		e, attempts := f.explain(nil, exit{err: x.err, reason: msg.ReasonDecoderTimeout, lane: x.of})
		var got []int64
		for _, v := range attempts {
			got = append(got, v.from)
		}
		if !slices.Equal(got, x.want) || e.err != x.err || e.reason != msg.ReasonDecoderTimeout {
			t.Errorf("%v: %d, want %d", e.err, got, x.want)
		}
	}
}
