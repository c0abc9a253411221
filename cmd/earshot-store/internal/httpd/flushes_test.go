package httpd

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// TestReadWaitsForAFlush: a statement waits until every writer has come back with its number, and for no
// more than a quarter of a second; where no writer is, it does not wait.
func TestReadWaitsForAFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlushes(Flushed{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		waits := func() time.Duration {
			began := time.Now()
			f.read(ctx)
			return time.Since(began)
		}
		if d := waits(); d != 0 {
			t.Errorf("without a writer a statement waits for %s", d)
		}
		flush := func(name string, takes time.Duration) {
			done := f.next(ctx, name, 0) // at once: it is new
			for ctx.Err() == nil {
				asked := f.next(ctx, name, done)
				if asked != done {
					time.Sleep(takes)
				}
				done = asked
			}
		}
		go flush("quick", 10*time.Millisecond)
		go flush("slow", 40*time.Millisecond)
		synctest.Wait()
		for range 3 { // the first is for the statement before
			waits()
			synctest.Wait()
		}
		if d := waits(); d != 40*time.Millisecond {
			t.Errorf("a statement waits for %s", d)
		}
		go flush("hangs", time.Hour)
		synctest.Wait()
		if d := waits(); d != readWaits {
			t.Errorf("with a writer that hangs a statement waits for %s", d)
		}
		time.Sleep(2 * flushTakes)
		if d := waits(); d != 40*time.Millisecond {
			t.Errorf("behind a writer that is gone a statement waits for %s", d)
		}
		began := time.Now()
		if asked := f.next(ctx, "quick", f.asked); asked != f.asked || time.Since(began) != writerWaits {
			t.Errorf("a writer is answered %d of %d after %s", asked, f.asked, time.Since(began))
		}
		f.close()
		cancel()
		time.Sleep(2 * time.Hour)
	})
}

// TestFlushIsForWriters: a reader cannot take a writer's place.
func TestFlushIsForWriters(t *testing.T) {
	for target, want := range map[string]int{"/flush?writer=1&done=0&user=reader": 403, "/flush?writer=1": 400, "/flush?writer=1&done=0": 200} {
		w := httptest.NewRecorder()
		newFlushes(Flushed{}).serve(w, httptest.NewRequest(http.MethodPost, target, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", target, w.Code, want)
		}
	}
}
