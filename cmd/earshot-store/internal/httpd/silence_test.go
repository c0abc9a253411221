package httpd

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/sqltext"
)

// TestSilenceBehindWriter: a writer's statement keeps the engine for a minute and a quarter, and does not shorten a reader's time.
func TestSilenceBehindWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			statements []by
			after      time.Duration
		}{
			"begin":         {nil, startKeeps},
			"first":         {[]by{bySelf}, startKeeps},
			"writer":        {[]by{byWriter}, writerKeeps},
			"question":      {[]by{byWriter, bySelf}, writerKeeps},
			"reader":        {[]by{byReader}, 2 * time.Minute},
			"reader before": {[]by{byReader, byWriter, bySelf}, 2 * time.Minute},
			"reader behind": {[]by{byWriter, byReader}, 2 * time.Minute},
		} {
			s := newSilence(2*time.Minute, func() (bool, error) { return false, nil })
			for _, who := range c.statements {
				s.statement()(who)
			}
			began := time.Now()
			<-s.reached
			if took := time.Since(began); took != c.after {
				t.Errorf("%s: reached after %s, want %s", name, took, c.after)
			}
		}
	})
}

// TestOfWriter: the tables that a writer has computed, and its notes of that, are not rows of traffic.
func TestOfWriter(t *testing.T) {
	for text, want := range map[string]by{
		"INSERT INTO earshot.messages (id) FORMAT Native\n":                                byWriter,
		"INSERT INTO earshot.messages_rollup (ts) SELECT ts FROM earshot.messages":         bySelf,
		"INSERT INTO earshot.rollup_hours (name, until) VALUES ('all messages', now64(3))": bySelf,
		"SELECT 1": bySelf,
		"ALTER TABLE earshot.spans DROP PART '1'": bySelf,
	} {
		if got := ofWriter(sqltext.Parse(text)); got != want {
			t.Errorf("%s: %d", text, got)
		}
	}
}

// TestWriterComesEachMinute: rows that come each minute keep the engine open until they stop.
func TestWriterComesEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSilence(2*time.Minute, func() (bool, error) { return false, nil })
		for range 5 {
			for range 3 { // tables
				s.statement()(byWriter)
				s.statement()(bySelf)
				time.Sleep(time.Second)
			}
			time.Sleep(57 * time.Second)
			select {
			case <-s.reached:
				t.Fatal("closed between the rows of two minutes")
			default:
			}
		}
		began := time.Now()
		<-s.reached
		if took := time.Since(began); took > writerKeeps {
			t.Errorf("closed %s after the last rows", took)
		}
	})
}

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
		s.statement()(byReader)
		time.Sleep(119 * time.Second)
		if reached() {
			t.Error("reached before its time")
		}
		end := s.statement()
		time.Sleep(time.Hour)
		end(bySelf)
		time.Sleep(time.Second)
		if reached() {
			t.Error("reached while the engine works")
		}
		works = false
		for range 4 {
			time.Sleep(4 * time.Second)
			s.statement()(bySelf)
		}
		if !reached() {
			t.Error("the questions of a sidecar put it off")
		}
	})
}

// TestStatementMeanwhile: a reader whose statement ran while the silence looked whether the engine works is waited for as any other.
func TestStatementMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSilence(2*time.Minute, func() (bool, error) { time.Sleep(time.Second); return false, nil })
		time.Sleep(startKeeps + 500*time.Millisecond)
		s.statement()(byReader)
		began := time.Now()
		<-s.reached
		if took := time.Since(began); took < 2*time.Minute || took > 2*time.Minute+2*time.Second {
			t.Errorf("reached %s after the reader's statement", took)
		}
	})
}
