package pipeline

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/wire"
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
