package httpd

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestMemoryIsReturnedOnce: memory is returned when statements have stopped, once, and later while the engine is
// busy; not while one runs, and not for the short questions of an idle sidecar.
func TestMemoryIsReturnedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var trims []time.Duration
		began, busy := time.Now(), 2
		c := newCalm(func() (bool, error) {
			trims = append(trims, time.Since(began))
			busy--
			return busy < 0, nil
		})
		defer c.close()
		want := func(what string, at ...time.Duration) {
			t.Helper()
			synctest.Wait()
			if len(trims) != len(at) {
				t.Fatalf("%s: returned at %v, want %v", what, trims, at)
			}
			for i := range at {
				if trims[i] != at[i] {
					t.Fatalf("%s: returned at %v, want %v", what, trims, at)
				}
			}
			trims, began = nil, time.Now()
		}
		run := func(d time.Duration) {
			end := c.statement()
			time.Sleep(d)
			end()
		}
		for range 5 {
			run(10 * time.Millisecond)
			time.Sleep(time.Minute)
		}
		want("short questions")
		long := c.statement()
		for range 5 {
			run(time.Second)
			time.Sleep(time.Minute)
		}
		want("a statement runs")
		long()
		run(time.Second)
		time.Sleep(10 * time.Minute)
		want("busy twice", time.Second+calmAfter, time.Second+2*calmAfter, time.Second+3*calmAfter)
		run(time.Second)
		time.Sleep(30 * time.Second)
		run(time.Second)
		time.Sleep(10 * time.Minute)
		want("twice within two minutes", time.Second+calmAfter, time.Second+calmAfter+trimAgain)
		c.trim = func() (bool, error) { trims = append(trims, time.Since(began)); return false, errors.New("no /proc") }
		run(time.Second)
		time.Sleep(10 * time.Minute)
		want("without the means", time.Second+calmAfter)
		run(time.Second)
		c.close()
		time.Sleep(10 * time.Minute)
		want("shut down")
	})
}
