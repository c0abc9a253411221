package main

import (
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/app"
)

// TestProgressLine: a backlog of files has a bar with files, bytes, rate and the time that is left.
func TestProgressLine(t *testing.T) {
	began := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	p := &progress{began: began}
	at := func(seconds float64, bytes, left int64, files int) (string, time.Time) {
		n := app.Progress{FilesLeft: files, BytesLeft: left}
		n.Bytes, n.Messages, n.Committed = bytes, bytes/1000, bytes/2000
		now := began.Add(time.Duration(seconds * float64(time.Second)))
		return p.line(n, now), now
	}
	for _, c := range []struct {
		seconds     float64
		bytes, left int64
		files       int
		want        string
	}{
		{0, 0, 400e6, 40, "0ms  [....................]  0 B of 400 MB  0 of 40 files  0 messages  0 rows stored"},
		{2, 100e6, 300e6, 30, "2.0s  [#####...............]  100 MB of 400 MB  10 of 40 files  50 MB/s  6.0s left  100000 messages  50000 rows stored"},
		{10, 390e6, 10e6, 1, "10s  [###################.]  390 MB of 400 MB  39 of 40 files  36 MB/s  1.0s left  390000 messages  195000 rows stored"},
		{11, 400e6, 0, 0, "11s  400 MB read  400000 messages  200000 rows stored"},
	} {
		if got, _ := at(c.seconds, c.bytes, c.left, c.files); got != c.want {
			t.Errorf("after %v s\n got %q\nwant %q", c.seconds, got, c.want)
		}
	}
}

// TestCaughtUp: a backlog has ended when all of it is stored, not when it was read.
func TestCaughtUp(t *testing.T) {
	began := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	read := func(files int, stored bool) app.Progress {
		n := app.Progress{FilesLeft: files, Stored: stored}
		n.Delivered, n.Bytes = 150, 100 // some were read twice, for a link
		return n
	}
	waiting := read(0, false)
	waiting.Undecoded = 50
	for _, c := range []struct {
		name  string
		steps []app.Progress
		every time.Duration
		want  int // the step at which it is done; -1: none
	}{
		{"stored at once", []app.Progress{read(0, true), read(0, true), read(0, true), read(0, true), read(0, true)}, time.Second, 3},
		{"stored later", []app.Progress{read(0, false), read(0, false), read(0, false), read(0, false), read(0, false), read(0, true)}, time.Second, 5},
		{"a file is left", []app.Progress{read(1, true), read(1, true), read(1, true), read(1, true), read(1, true)}, time.Second, -1},
		{"a decoder that takes nothing", []app.Progress{waiting, waiting, waiting}, 8 * time.Second, -1},
		{"a store that takes nothing", []app.Progress{read(0, false), read(0, false), read(0, false)}, 8 * time.Second, 2},
	} {
		u, got := caughtUp{after: 2 * time.Second, patience: 15 * time.Second}, -1
		for i, n := range c.steps {
			if u.now(n, began.Add(time.Duration(i)*c.every)) {
				got = i
			}
		}
		if got != c.want {
			t.Errorf("%s: at step %d, want %d", c.name, got, c.want)
		}
	}
}
