package conversation

import (
	"strconv"
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
)

// TestWaits: a question has one answer, and the oldest questions are forgotten.
func TestWaits(t *testing.T) {
	var q Waits
	for i := range MaxWaits + 1 {
		q.Ask(Wait{ID: strconv.Itoa(i), Run: "r"})
	}
	if _, asked := q.Answer("0"); asked || len(q) != MaxWaits {
		t.Errorf("%d questions, the oldest among them: %t", len(q), asked)
	}
	w, asked := q.Answer("7")
	if _, again := q.Answer("7"); !asked || again || w.Run != "r" {
		t.Errorf("%+v, asked %t, again %t", w, asked, again)
	}
}

// TestWhatWaits: a call waits, or the run if there is none.
func TestWhatWaits(t *testing.T) {
	for w, want := range map[Wait][2]msg.Signal{{Call: "c"}: {msg.WaitStart, msg.WaitEnd}, {}: {msg.RunPause, msg.RunResume}} {
		for i, ends := range []bool{false, true} {
			if got := w.Signal(ends); got != want[i] {
				t.Errorf("%+v, ends %t: %v", w, ends, got)
			}
		}
	}
}
