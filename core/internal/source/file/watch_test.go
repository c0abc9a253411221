package file

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// fakeWatcher drops all notifications but those that the test makes.
type fakeWatcher struct {
	add  func(string) error
	out  chan []event
	once sync.Once
}

func (w *fakeWatcher) Add(dir string) error   { return w.add(dir) }
func (w *fakeWatcher) Events() <-chan []event { return w.out }
func (w *fakeWatcher) Close() error           { w.once.Do(func() { close(w.out) }); return nil }

func watchWith(w *fakeWatcher) func(*Source) {
	w.out = make(chan []event)
	return func(s *Source) { s.watch = func() (watcher, error) { return w, nil } }
}

// TestNotificationsDropped finds everything by the poll alone.
func TestNotificationsDropped(t *testing.T) {
	e := newEnv(t, "**/*.jsonl")
	e.settings.PollInterval = 5 * time.Millisecond
	e.prepare = watchWith(&fakeWatcher{add: func(string) error { return nil }})
	e.write("x.jsonl", text("x"))
	e.start().want("x")
	e.add("x.jsonl", text("more"))
	e.write("d/y.jsonl", text("y"))
	e.want("x", "more", "y")
	e.rename("x.jsonl", "z")
	e.add("z", text("after"))
	e.want("x", "more", "y", "after")
}

// TestNotificationsOverflow scans when it learns that notifications were lost.
func TestNotificationsOverflow(t *testing.T) {
	e := newEnv(t, "**/*.jsonl")
	w := &fakeWatcher{add: func(string) error { return nil }}
	e.prepare = watchWith(w)
	e.start().idle()
	e.write("x.jsonl", text("x"))
	w.out <- []event{{kind: overflowed}}
	e.want("x")
}

// TestWatchLimit polls the directories that cannot be watched.
func TestWatchLimit(t *testing.T) {
	e := newEnv(t, "**/*.jsonl")
	e.settings.PollInterval = 5 * time.Millisecond
	var asked atomic.Int32
	e.prepare = watchWith(&fakeWatcher{add: func(string) error {
		asked.Add(1)
		return fmt.Errorf("add: %w", syscall.ENOSPC)
	}})
	var log lockedBuffer
	e.settings.Logger = log.logger()
	e.write("a/b/c/x.jsonl", text("x"))
	e.start().want("x")
	e.add("a/b/c/x.jsonl", text("y"))
	e.want("x", "y")
	e.until("another scan", func() bool { return asked.Load() > 8 })
	e.stop()
	if n := strings.Count(log.String(), "limit of watches reached"); n != 1 {
		t.Errorf("said %d times that the limit is reached, want once:\n%s", n, log.String())
	}
}

// TestNoInotify polls when there are no notifications at all.
func TestNoInotify(t *testing.T) {
	e := newEnv(t, "*.jsonl")
	e.settings.PollInterval = 5 * time.Millisecond
	e.prepare = func(s *Source) { s.watch = func() (watcher, error) { return nil, errors.New("too many instances") } }
	e.start().idle()
	e.write("x.jsonl", text("x"))
	e.want("x")
}
