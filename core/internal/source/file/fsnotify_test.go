//go:build !windows

package file

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// notified has a source on fsnotify, which systems with kqueue use, alone.
func notified(t *testing.T, paths ...string) *env {
	e := newEnv(t, paths...)
	e.prepare = func(s *Source) { s.watch = newNotifier }
	return e
}

// TestFSNotify follows files through creation, writes, renames and deletion, in new and renamed
// directories, without a poll.
func TestFSNotify(t *testing.T) {
	e := notified(t, "**/*.jsonl")
	e.write("x.jsonl", text("x"))
	e.start().want("x")
	e.add("x.jsonl", text("more"))
	e.want("x", "more")
	e.must(os.MkdirAll(e.path("d/e"), 0o700))
	e.write("d/e/y.jsonl", text("y"))
	e.want("x", "more", "y")
	e.rename("d", "moved")
	e.add("moved/e/y.jsonl", text("after"))
	e.want("x", "more", "y", "after")
	e.write("moved/z.jsonl", text("z"))
	e.want("x", "more", "y", "after", "z")
	e.rename("x.jsonl", "x.jsonl.1")
	e.write("x.jsonl", text("rotated"))
	e.want("x", "more", "y", "after", "z", "rotated")
	e.must(os.Remove(e.path("moved/z.jsonl")))
	e.write("moved/z.jsonl", text("again"))
	e.want("x", "more", "y", "after", "z", "rotated", "again")
}

// TestFSNotifyHasALimit polls directories with more files than there may be descriptors for.
func TestFSNotifyHasALimit(t *testing.T) {
	dir := t.TempDir()
	w, err := newNotifier()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	n := w.(*notifier)
	n.total = maxNotified - 1
	for i := range 2 {
		if err := os.WriteFile(fmt.Sprintf("%s/%d", dir, i), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Add(dir); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("a directory beyond the limit is watched: %v", err)
	}
	n.mu.Lock()
	n.total = maxNotified - 2
	n.mu.Unlock()
	if err := w.Add(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/another", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-w.Events()
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.entries) != 0 || n.total != maxNotified-2 {
		t.Errorf("a directory that got too many files is watched: %v of %d", n.entries, n.total)
	}
}
