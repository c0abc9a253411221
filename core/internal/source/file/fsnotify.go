//go:build !windows

package file

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// maxNotified is the number of files in directories that fsnotify watches: kqueue has an open descriptor
// for each of them, and the sidecar needs descriptors for other things. Directories beyond it are polled.
const maxNotified = 4096

// notifier watches directories by fsnotify, for systems that have kqueue. It knows a directory by
// one name only; the poll finds changes under the others.
type notifier struct {
	fs   *fsnotify.Watcher
	out  chan []event
	stop chan struct{}
	done chan struct{}

	mu      sync.Mutex
	entries map[string]int // the number of files of each watched directory
	total   int
}

func newNotifier() (watcher, error) {
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("fsnotify: %w", err)
	}
	w := &notifier{fs: fs, out: make(chan []event), stop: make(chan struct{}), done: make(chan struct{}), entries: make(map[string]int)}
	go w.read()
	return w, nil
}

// Add watches a directory, unless it and those before it have too many files: the error is then that of
// a kernel whose limit of watches is reached.
func (w *notifier) Add(dir string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.entries[dir]; ok {
		return nil
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("fsnotify: watch %s: %w", dir, err)
	}
	if w.total+len(list) > maxNotified {
		return fmt.Errorf("fsnotify: watch %s: %w", dir, syscall.ENOSPC)
	}
	if err := w.fs.Add(dir); err != nil {
		return fmt.Errorf("fsnotify: watch %s: %w", dir, err)
	}
	w.entries[dir] = len(list)
	w.total += len(list)
	return nil
}

func (w *notifier) Events() <-chan []event { return w.out }

func (w *notifier) Close() error {
	close(w.stop)
	err := w.fs.Close()
	<-w.done
	return err
}

func (w *notifier) read() {
	defer close(w.done)
	for {
		var batch []event
		select {
		case e, ok := <-w.fs.Events:
			if !ok {
				return
			}
			batch = w.event(e)
		case _, ok := <-w.fs.Errors: // an overflow, or a directory that could not be read
			if !ok {
				return
			}
			batch = []event{{kind: overflowed}}
		}
		select {
		case w.out <- batch:
		case <-w.stop:
			return
		}
	}
}

// event is a change of a watched directory itself, or in one.
func (w *notifier) event(e fsnotify.Event) []event {
	gone := e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
	if gone && w.forget(e.Name) {
		return []event{{dirMoved, e.Name}}
	}
	w.count(e, gone)
	switch {
	case e.Has(fsnotify.Remove):
		return []event{{deleted, e.Name}}
	case e.Has(fsnotify.Rename):
		return []event{{movedAway, e.Name}}
	case e.Has(fsnotify.Write):
		return []event{{wrote, e.Name}}
	}
	return []event{{appeared, e.Name}}
}

// count follows the number of files, and ends the watch of a directory that gets too many.
func (w *notifier) count(e fsnotify.Event, gone bool) {
	dir, n := filepath.Dir(e.Name), 0
	switch {
	case gone:
		n = -1
	case e.Has(fsnotify.Create):
		n = 1
	}
	w.mu.Lock()
	if _, ok := w.entries[dir]; ok {
		w.entries[dir] += n
		w.total += n
	}
	over := w.total > maxNotified
	w.mu.Unlock()
	if over && n > 0 {
		w.forget(dir)
	}
}

// forget ends the watch of a directory that is gone from its path. The walk that follows adds it
// again under its new one. It returns false for a path that is not watched.
func (w *notifier) forget(dir string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, ok := w.entries[dir]
	if ok {
		_ = w.fs.Remove(dir) // fsnotify may have removed it already
		delete(w.entries, dir)
		w.total -= n
	}
	return ok
}
