package pipeline

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestAttemptsAreJoined: of the attempts of a process those in one stream are one.
func TestAttemptsAreJoined(t *testing.T) {
	a, b := &stream{}, &stream{}
	got := joined([]attempt{{stream: a, from: 10, to: 20}, {stream: b, from: 5, to: 6}, {stream: a, from: 0, to: 12}, {stream: a, generation: 1, from: 50, to: 60}, {stream: b, from: 7, to: 9}})
	want := []attempt{{stream: a, from: 0, to: 20}, {stream: b, from: 5, to: 9}, {stream: a, generation: 1, from: 50, to: 60}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestCauseIsWithheld: the command that alone ended its process twice is withheld, which is progress: a record, a flush or a snapshot. A decoder that cannot be opened without one, or that ends at record after record,
// is the cause itself.
func TestCauseIsWithheld(t *testing.T) {
	for name, x := range map[string]struct {
		step     step
		snapshot []byte
		inRow    int
		killed   bool
		crashes  int
		withheld bool
	}{
		"a record":                 {atFrames, nil, 0, false, 2, true},
		"the last of many":         {atFrames, nil, maxInRow - 1, false, 2, true},
		"too many":                 {atFrames, nil, maxInRow, false, 2, false},
		"once":                     {atFrames, nil, 0, false, 1, false},
		"killed twice":             {atFrames, nil, 0, true, 2, false},
		"killed three times":       {atFrames, nil, 0, true, 3, true},
		"a flush":                  {atFlush, nil, 0, false, 2, true},
		"a snapshot":               {atOpen, []byte("state"), 0, false, 2, true},
		"opening without snapshot": {atOpen, nil, 0, false, 2, false},
	} {
		p, feed := stopped(t, Settings{Metrics: telemetry.New()})
		a := opened(t, p, feed, "k", 40)
		a.record.Snapshot, feed.format.inQuarantine, a.search = x.snapshot, x.inRow, search{from: 10, to: 40, crashes: 2}
		e := exit{err: errors.New("by order"), reason: msg.ReasonDecoderCrash, killed: x.killed}
		v := attempt{stream: a.stream, step: x.step, from: 20, to: 30, alone: true}
		for range x.crashes {
			p.core.findPoison([]attempt{v, {stream: &stream{}, from: 0, to: 9}, {stream: a.stream, generation: 9, from: 0, to: 9}}, e)
		}
		q := a.stream.cursor.view().quarantine
		if got := feed.format.circuit.progress.Load() == 1; got != x.withheld || q.search != a.search || (a.search.from == 30) != (x.withheld && x.step == atFrames) || (a.search.alone == 0) != x.withheld {
			t.Errorf("%s: withheld %t, %+v", name, got, a.search)
		}
		var poison map[int64]string
		if x.step == atFrames && x.withheld {
			poison = map[int64]string{20: msg.ReasonDecoderCrash}
		}
		if d := cmp.Diff(poison, a.record.Poison); d != "" || len(q.records) != len(poison) || q.noFlush != (x.step == atFlush) || a.record.Snapshot != nil {
			t.Errorf("%s: not flushed any more %t, a state of %d bytes %s", name, q.noFlush, len(a.record.Snapshot), d)
		}
		if letters := p.core.commits.batch.rows.DeadLetters; len(letters) != map[bool]int{true: 1}[x.step == atFlush] || len(letters) == 1 && (letters[0].Reason != msg.ReasonDecoderCrash || letters[0].Detail != "flush: by order") {
			t.Errorf("%s: dead letters %+v", name, letters)
		}
	}
}

// TestStreamsOfAProcessThatEnded are delivered again from their snapshots, of its format alone; when it had nothing more to do, only those whose decoder is open.
func TestStreamsOfAProcessThatEnded(t *testing.T) {
	for _, idle := range []bool{false, true} {
		p, feed := stopped(t, Settings{})
		other := &Feed{source: "other", format: p.newFormat("other", decoder.Info{}), counters: feed.counters}
		open, closed, apart := opened(t, p, feed, "open", 10), opened(t, p, feed, "closed", 10), opened(t, p, other, "apart", 10)
		open.decoderClosed, closed.decoderClosed, apart.decoderClosed = false, true, false
		for _, a := range []*account{open, closed, apart} {
			a.record.SnapPos, a.decoded = 5, 10
		}
		if idle {
			for range 2 { // answers that the core has not taken yet
				p.inbox.pending.Add(1)
				p.inbox.results <- result{&closeDecoder{ticket{closed.stream, 0, 10}}, &wire.Result{Messages: []msg.Message{said(0, "last")}}}
			}
			if err := p.core.asleep(feed.format); err != nil {
				t.Fatal(err)
			}
			if n := len(p.core.commits.batch.rows.Messages); n != 2 || len(p.results) != 2 || p.inbox.pending.Load() != 0 {
				t.Errorf("%d messages of answers that were there", n)
			}
		} else {
			p.core.processEnded(feed.format, exit{err: errEnded, reason: msg.ReasonDecoderCrash}, []attempt{{stream: open.stream, from: 5, to: 10}})
			if open.search.crashes != 1 {
				t.Errorf("%+v", open.search)
			}
		}
		for i, a := range []*account{open, closed, apart} {
			rewound := i == 0 || i == 1 && !idle
			if next, _ := a.stream.cursor.position(); (a.generation == 1) != rewound || (next == 5) != rewound || (a.decoded == 5) != rewound || a.stream.cursor.generation != a.generation {
				t.Errorf("idle %t: %s is delivered from %d, generation %d", idle, a.record.Key, next, a.generation)
			}
		}
	}
}
