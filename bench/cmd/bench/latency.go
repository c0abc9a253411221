package main

import (
	"context"
	"fmt"
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
}

// arrivals are the times from the write of each line until a query returned it.
type arrivals []time.Duration

// at returns the time within which a share of the lines arrived.
func (a arrivals) at(share float64) time.Duration {
	return a[min(int(share*float64(len(a))), len(a)-1)]
}

// latency runs Earshot at its default settings on live traffic. It queries without a pause, so
// a figure is too high by the time of one query.
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
	for tally.left > 0 {
		got, err := db.query(ctx, fmt.Sprintf("SELECT arrayStringConcat(groupArray(content), ' ') FROM earshot.messages WHERE toInt64OrDefault(content, toInt64(-1)) >= %d", tally.low))
		now := time.Now()
		if err != nil {
			return nil, err
		}
		if _, err := tally.note(got[0], now, w.written); err != nil {
			return nil, err
		}
	}
	return tally.sorted(), nil
}

// tally records the arrival of the numbers from 0 on.
type tally struct {
	arrived arrivals
	low     int // the lowest missing number: queries ask for it and those beyond it
	left    int
}

func newTally(n int) *tally { return &tally{arrived: make(arrivals, n), left: n} }

// note records the numbers of a query's answer, with blanks between them, that arrived at now;
// began returns the time of each write. It returns how many are new.
func (t *tally) note(answer string, now time.Time, began func(n int) time.Time) (moved int, err error) {
	for _, text := range strings.Fields(answer) {
		n, err := strconv.Atoi(text)
		if err != nil || n >= len(t.arrived) {
			return moved, fmt.Errorf("a message has the text %q", text)
		}
		if t.arrived[n] == 0 {
			t.arrived[n] = max(now.Sub(began(n)), 1)
			moved++
		}
	}
	t.left -= moved
	for t.low < len(t.arrived) && t.arrived[t.low] != 0 {
		t.low++
	}
	return moved, nil
}

func (t *tally) sorted() arrivals {
	slices.Sort(t.arrived)
	return t.arrived
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
		if w.writeLine(n%w.liveTraffic.files, strconv.Itoa(n)) != nil {
			return
		}
	}
}

func (w *writer) written(n int) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at[n]
}

func (w *writer) close() {
	for _, f := range w.files {
		_ = f.Close()
	}
}
