package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// liveTraffic is traffic that is written while it is read: files that grow by a line in
// turn, at a steady rate.
type liveTraffic struct {
	files int
	rate  int // lines a second, all files together
	lines int
	// prefix of the number that is the text of a line
	prefix string
}

// arrivals are the times from the write of each line until a query returned it.
type arrivals []time.Duration

// at returns the time within which a share of the lines arrived.
func (a arrivals) at(share float64) time.Duration {
	return a[min(int(share*float64(len(a))), len(a)-1)]
}

// latency runs Earshot at its default settings on live traffic.
func latency(ctx context.Context, e *env, l liveTraffic) (a arrivals, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("latency: %w", err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, subjectTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "earshot-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	db, err := startEngine(ctx, e.bin, dir)
	if err != nil {
		return nil, err
	}
	defer db.close()
	own := *e
	own.corpus = &corpus{dir: dir}
	args, err := earshotCommand(&own, dir, db)
	if err != nil {
		return nil, err
	}
	w := writer{dir: dir, liveTraffic: l, at: make([]time.Time, 0, l.lines)}
	defer w.close()
	if err := w.begin(); err != nil {
		return nil, err
	}
	p, err := start(args[:len(args)-2]) // without --until-idle and its time
	if err != nil {
		return nil, err
	}
	defer p.kill()
	// The count begins when the tables, the decoder and every file are ready.
	for got := 0; got < l.files; time.Sleep(10 * time.Millisecond) {
		n, err := db.query(ctx, "SELECT count() FROM earshot.messages")
		if err == nil {
			got, _ = strconv.Atoi(n[0])
		}
		if ctx.Err() != nil || p.ended() {
			return nil, fmt.Errorf("%d of %d files are read\n%s", got, l.files, lastLines(p.log.String()))
		}
	}
	go w.run(ctx)
	tally := newTally(l.lines)
	for ; tally.left > 0; pause(ctx) {
		got, err := db.query(ctx, fmt.Sprintf("SELECT arrayStringConcat(groupArray(content), ' ') FROM earshot.messages WHERE toInt64OrDefault(content, toInt64(-1)) >= %d", tally.low))
		now := time.Now()
		if err != nil {
			return nil, err
		}
		if _, err := tally.note(got[0], now, w.written); err != nil {
			return nil, err
		}
	}
	return tally.arrivals(), nil
}

// pause is the time between two questions. They are rare, because the engine spends more on
// one than on many an insert, and not regular, because inserts are.
func pause(ctx context.Context) {
	select {
	case <-time.After(time.Second + rand.N(300*time.Millisecond)):
	case <-ctx.Done():
	}
}

// tally follows which of the numbers from 0 on have arrived. A question shows of every number how
// old it is, and whether it is there: the share of those of an age that are there is the share
// that arrives within that time. So the questions may be rare, and the figures are finer than
// the time between two.
type tally struct {
	arrived []bool
	low     int // the lowest missing number: queries ask for it and those beyond it
	left    int
	seen    []sighting
}

// sighting is a number in one question.
type sighting struct {
	age   time.Duration
	there bool
}

// oldest is the age from which a number that has arrived is left out.
const oldest = 10 * time.Second

func newTally(n int) *tally { return &tally{arrived: make([]bool, n), left: n} }

// note records the numbers of a query's answer, with blanks between them, that arrived at now;
// began returns the time of each write, zero before it. It returns how many are new.
func (t *tally) note(answer string, now time.Time, began func(n int) time.Time) (moved int, err error) {
	for _, text := range strings.Fields(answer) {
		n, err := strconv.Atoi(text)
		if err != nil || n >= len(t.arrived) {
			return moved, fmt.Errorf("a message has the text %q", text)
		}
		if !t.arrived[n] {
			t.arrived[n] = true
			moved++
		}
	}
	t.left -= moved
	for n, there := range t.arrived {
		at := began(n)
		if age := now.Sub(at); !at.IsZero() && (!there || age < oldest) {
			t.seen = append(t.seen, sighting{age, there})
		}
	}
	for t.low < len(t.arrived) && t.arrived[t.low] {
		t.low++
	}
	return moved, nil
}

// arrivals returns a thousand quantiles of the time until a number arrives, and the age of the
// oldest that was missing. The share that is there cannot fall with age: neighbours of which the
// older has the lower share are taken together, until there are none (isotonic regression).
func (t *tally) arrivals() arrivals {
	slices.SortFunc(t.seen, func(a, b sighting) int { return cmp.Compare(a.age, b.age) })
	type group struct {
		from     time.Duration
		there, n float64
	}
	var groups []group
	most := time.Duration(0)
	for _, s := range t.seen {
		g := group{from: s.age, n: 1}
		if s.there {
			g.there = 1
		} else {
			most = s.age
		}
		for len(groups) > 0 && groups[len(groups)-1].there/groups[len(groups)-1].n >= g.there/g.n {
			last := groups[len(groups)-1]
			groups = groups[:len(groups)-1]
			g = group{last.from, last.there + g.there, last.n + g.n}
		}
		groups = append(groups, g)
	}
	const quantiles = 1000
	out := make(arrivals, 0, quantiles+1)
	for _, g := range groups {
		for float64(len(out)) < quantiles*g.there/g.n {
			out = append(out, g.from)
		}
	}
	for len(out) <= quantiles {
		out = append(out, most)
	}
	return out
}

// writer writes lines with the numbers from 0 on, and records the time of each.
type writer struct {
	liveTraffic
	dir   string
	files []*os.File

	mu sync.Mutex
	at []time.Time
}

// begin creates the files, with a first line each that does not count.
func (w *writer) begin() error {
	for i := range w.liveTraffic.files {
		dir := filepath.Join(w.dir, "sessions", fmt.Sprintf("s%05d", i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		f, err := os.Create(filepath.Join(dir, "messages.jsonl"))
		if err != nil {
			return err
		}
		w.files = append(w.files, f)
		if err := w.writeLine(i, "hello"); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) writeLine(file int, text string) error {
	now := time.Now()
	_, err := fmt.Fprintf(w.files[file], `{"type":"user","content":%q,"timestamp":%d.%09d}`+"\n", text, now.Unix(), now.Nanosecond())
	return err
}

func (w *writer) run(ctx context.Context) {
	began := time.Now()
	for n := 0; n < w.lines && ctx.Err() == nil; n++ {
		time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(w.rate))))
		w.mu.Lock()
		w.at = append(w.at, time.Now())
		w.mu.Unlock()
		if w.writeLine(n%w.liveTraffic.files, w.prefix+strconv.Itoa(n)) != nil {
			return
		}
	}
}

func (w *writer) written(n int) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n >= len(w.at) {
		return time.Time{}
	}
	return w.at[n]
}

func (w *writer) close() {
	for _, f := range w.files {
		_ = f.Close()
	}
}
