package httpd

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/engine"
)

// flushes has the writers that hold rows back flush them for a reader. Each keeps a request
// open at /flush, which is answered when a statement is about to read, with the number of such
// statements so far; its next request has that number as done. A statement waits until every writer's is.
type flushes struct {
	mu      sync.Mutex
	asked   uint64
	writers map[string]*writer
	changed chan struct{} // closed, and another one made, when asked or a writer changes
	stopped chan struct{} // closed when the server shuts down
	stop    sync.Once
}

// writer is a program that holds rows back.
type writer struct {
	done     uint64
	open     bool      // it waits
	answered time.Time // when it was last answered: it is flushing
}

const (
	// readWaits is how long a statement waits for a flush.
	readWaits = 250 * time.Millisecond
	// writerWaits is after how long without a statement the request of a writer is answered: there
	// is no reader any more.
	writerWaits = 10 * time.Second
	// flushTakes is how long a writer is expected to come back.
	flushTakes = time.Second
)

// Flushed is the state of flushes that a program leaves to the next one on the same socket.
type Flushed struct {
	Asked   uint64   // the number of statements that have read
	Writers []string // that were asked for a flush last, and will come back
}

func newFlushes(from Flushed) *flushes {
	f := &flushes{asked: from.Asked, writers: make(map[string]*writer), changed: make(chan struct{}), stopped: make(chan struct{})}
	for _, name := range from.Writers {
		f.writers[name] = &writer{answered: time.Now()}
	}
	return f
}

// close answers the writers.
func (f *flushes) close() { f.stop.Do(func() { close(f.stopped) }) }

// announce wakes those that wait. mu is held.
func (f *flushes) announce() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// read asks the writers for a flush, and waits for it.
func (f *flushes) read(ctx context.Context) {
	f.mu.Lock()
	f.asked++
	mine := f.asked
	f.announce()
	f.mu.Unlock()
	late := time.NewTimer(readWaits)
	defer late.Stop()
	for {
		flushed, changed := f.flushed(mine)
		if flushed {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// flushed reports whether every writer has flushed for a statement. One that does not come back is
// forgotten.
func (f *flushes) flushed(statement uint64) (ok bool, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ok = true
	for name, w := range f.writers {
		if !w.open && time.Since(w.answered) > flushTakes {
			delete(f.writers, name)
		} else if w.done < statement {
			ok = false
		}
	}
	return ok, f.changed
}

// next returns how many statements have read when it is another number than done, or after a while; for a new
// writer at once.
func (f *flushes) next(ctx context.Context, name string, done uint64) uint64 {
	f.mu.Lock()
	w, known := f.writers[name]
	if !known {
		w = new(writer)
		f.writers[name] = w
	}
	w.open = true
	if done <= f.asked { // not one that counts the statements of an earlier store
		w.done = done
	}
	f.announce()
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		w.open, w.answered = false, time.Now()
		f.mu.Unlock()
	}()
	late := time.NewTimer(writerWaits)
	defer late.Stop()
	for {
		f.mu.Lock()
		asked, changed := f.asked, f.changed
		f.mu.Unlock()
		if asked != done || !known {
			return asked
		}
		select {
		case <-changed:
			continue
		case <-late.C:
		case <-f.stopped:
		case <-ctx.Done():
		}
		return asked
	}
}

// serve answers the request of a writer.
func (f *flushes) serve(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	if reader, err := isReader(r, values); err != nil || reader {
		http.Error(w, engine.AccessDenied.New("reader: Not enough privileges: this user may only read.").Error(), http.StatusForbidden)
		return
	}
	done, err := strconv.ParseUint(values.Get("done"), 10, 64)
	if err != nil || r.Method != http.MethodPost {
		http.Error(w, "POST /flush?writer=NAME&done=N, with the number of the last answer", http.StatusBadRequest)
		return
	}
	fmt.Fprintln(w, f.next(r.Context(), values.Get("writer"), done))
}
