package httpd

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestSilence: it is reached after the last statement that breaks it, not while one runs or the engine works, and
// the questions of a sidecar do not put it off.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works := true
		s := newSilence(2*time.Minute, func() (bool, error) { return works, nil })
		reached := func() bool {
			synctest.Wait()
			select {
			case <-s.reached:
				return true
			default:
				return false
			}
		}
		time.Sleep(time.Minute)
		s.statement()(true)
		time.Sleep(119 * time.Second)
		if reached() {
			t.Error("reached before its time")
		}
		end := s.statement()
		time.Sleep(time.Hour)
		end(false)
		time.Sleep(time.Second)
		if reached() {
			t.Error("reached while the engine works")
		}
		works = false
		for range 4 {
			time.Sleep(40 * time.Second)
			s.statement()(false)
		}
		if !reached() {
			t.Error("the questions of a sidecar put it off")
		}
	})
}
