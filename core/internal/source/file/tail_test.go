package file

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// swapped is a content that is another one from the nth read on.
type swapped struct {
	now, then []byte
	reads, at int
}

func (r *swapped) ReadAt(p []byte, off int64) (int, error) {
	r.reads++
	if r.reads > r.at {
		r.now = r.then
	}
	return bytes.NewReader(r.now).ReadAt(p, off)
}

// TestReplacedWhileRead replaces a content before each of the reads: the accepted lines and
// the fingerprint are always those of the stream.
func TestReplacedWhileRead(t *testing.T) {
	began := text(numbered("began", 40)...)
	other := []byte(text(numbered("other", 400)...))
	tests := []struct{ name, rest string }{
		{"lines", text(a...)},
		{"line beyond the limit", strings.Repeat("l", 3*minRead) + "\n"},
		{"allocated ahead", strings.Repeat("\x00", 3*minRead) + text(a...)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reader := newReader(minRead, minRead)
			content := []byte(began + tt.rest)
			m, err := fingerprintAt(bytes.NewReader(content), int64(len(began)), 1)
			if err != nil {
				t.Fatal(err)
			}
			for at := 0; ; at++ {
				st := &stream{fingerprint: m, cursor: cursor{}.at(m.off)}
				r := &swapped{now: content, then: other, at: at}
				// A line beyond the limit takes several turns.
				for err == nil && st.fingerprint.off == m.off && r.reads <= 100 {
					var rd lines
					var to fingerprint
					rd, to, _, err = reader.next(st, r, int64(len(content)), false)
					rd.release()
					if err == nil {
						st.cursor, st.fingerprint = rd.to, to
					}
				}
				if err != nil && !errors.Is(err, errReplaced) {
					t.Fatal(err)
				}
				if is, err := st.fingerprint.in(bytes.NewReader(content)); err != nil || !is {
					t.Errorf("replaced before read %d: the fingerprint at %d is of the other content (%v)", at, st.fingerprint.off, err)
				}
				if err == nil && r.reads <= at {
					return // it was not replaced at all
				}
				err = nil
			}
		})
	}
}

// TestReplacedWhileMoved is the same where the place to go on from is another one
// than the one that was read last.
func TestReplacedWhileMoved(t *testing.T) {
	tailer := &tailer{files: newFileset(nil, 0)}
	content, other := []byte(text(a...)), []byte(text(b...))
	m, err := fingerprintAt(bytes.NewReader(content), int64(len(text(a[:30]...))), 1)
	if err != nil {
		t.Fatal(err)
	}
	for at := range 10 {
		st := &stream{fingerprint: m}
		r := &swapped{now: content, then: other, at: at}
		err := tailer.seek(st, r, int64(len(text(a[:10]...))))
		if is, _ := st.fingerprint.in(bytes.NewReader(content)); !is {
			t.Errorf("replaced before read %d: the fingerprint is of the other content", at)
		}
		if replaced := r.reads > at; replaced != errors.Is(err, errReplaced) {
			t.Errorf("replaced before read %d of %d: %v", at, r.reads, err)
		}
	}
}

// TestBacklog: frames that were in a file when its end was first reached are backlog, and
// so are frames that are delivered again.
func TestBacklog(t *testing.T) {
	e := newEnv(t, "*.jsonl")
	e.write("a.jsonl", text("one", "two"))
	e.start()
	e.want("one", "two")
	e.idle()
	e.add("a.jsonl", text("three"))
	e.want("one", "two", "three")
	e.idle()
	e.sink.mu.Lock()
	again := e.sink.streams[e.sink.order[0]]
	got := fmt.Sprint(e.sink.backlog)
	e.sink.backlog = nil
	again.next, again.rewinding = 0, true
	e.sink.mu.Unlock()
	if got != "[true false]" {
		t.Errorf("backlog: %s, want [true false]", got)
	}
	again.rewind(0)
	e.idle()
	e.sink.mu.Lock()
	defer e.sink.mu.Unlock()
	if slices.Contains(e.sink.backlog, false) || len(e.sink.backlog) == 0 {
		t.Errorf("delivered again: %v", e.sink.backlog)
	}
}
