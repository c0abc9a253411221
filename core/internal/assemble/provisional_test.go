package assemble

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

// byStart keeps spans as a table does whose sort key has the start, and a tombstone just below
// the current version.
type byStart map[string]msg.Span

func (t byStart) add(s msg.Span) {
	if s.State == msg.SpanOpen && s.Kind != msg.SpanTool || s.Amends {
		return
	}
	if s.Tombstone {
		s.Ver--
	}
	key := fmt.Sprint(s.Start, s.TraceID, s.ID)
	if old, ok := t[key]; !ok || s.Ver >= old.Ver {
		t[key] = s
	}
}

func (t byStart) shows() []string {
	var out []string
	for _, s := range t {
		if !s.Tombstone {
			out = append(out, label(s))
		}
	}
	slices.Sort(out)
	return out
}

func (w *harness) flush(stream uint64, list ...msg.Message) {
	w.t.Helper()
	w.at++
	for _, m := range list {
		m.Session, m.Host = "s", msg.Host{Tenant: "default", Format: "f", Source: "src", Ver: w.at}
		if m.Key == "" {
			m.Key = fmt.Sprintf("%s/%s/%s", m.Kind, m.Run, m.Tool.CallID)
		}
		m.Time = t0 + m.Time*sec
		if _, err := w.a.ApplyOpen(&m, stream, 1, time.Unix(0, 0), 0); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *harness) finish() {
	if err := w.a.Finish(); err != nil {
		w.t.Fatal(err)
	}
	w.commit()
}

// TestProvisional flushes the open messages in the middle of each story, with and without an
// end by silence and a restart, and compares the rows with those of the story alone.
func TestProvisional(t *testing.T) {
	part := func(m msg.Message, tokens uint64) msg.Message {
		m.Usage.Input = tokens
		return m
	}
	end := msg.Message{Kind: msg.Status, Run: "a", Time: 20, Signal: msg.RunEnd}
	for name, c := range map[string]struct{ before, open, after []msg.Message }{
		"the run begins with it": {
			nil, []msg.Message{said("a", "r1", 3)}, []msg.Message{said("a", "r1", 9), end},
		},
		"the answer, and its usage so far": {
			[]msg.Message{user("a", 1)},
			[]msg.Message{said("a", "r1", 3), part(msg.Message{Key: "usage:r1", Kind: msg.Usage, Run: "a", ResponseID: "r1", Time: 3}, 7)},
			[]msg.Message{said("a", "r1", 5), tokens("a", "r1", 5, 9), end},
		},
		"a response whose call runs": {
			[]msg.Message{user("a", 1), said("a", "r1", 3), called("a", "c", "look", 3)}, []msg.Message{toldInFull("r1", 3)},
			[]msg.Message{tokens("a", "r1", 3, 9), result("a", "c", 8), said("a", "r2", 9), end},
		},
		"a response that goes on beside its call": {
			[]msg.Message{user("a", 1), said("a", "r1", 3), called("a", "c", "look", 3)}, []msg.Message{toldInFull("r1", 3)},
			[]msg.Message{said("a", "r1", 5), tokens("a", "r1", 5, 9), result("a", "c", 8), end},
		},
		"a call whose arguments are cut": {
			[]msg.Message{user("a", 1)}, []msg.Message{called("a", "c", "look", 2)}, []msg.Message{called("a", "c", "look", 6), result("a", "c", 8), end},
		},
		"a call that an earlier result answers": {
			[]msg.Message{user("a", 1), result("a", "c", 8)}, []msg.Message{called("a", "c", "look", 2)}, []msg.Message{called("a", "c", "look", 6), end},
		},
		"another response ends the one before": {
			[]msg.Message{user("a", 1), said("a", "r1", 3)}, []msg.Message{said("a", "r2", 4)}, []msg.Message{tokens("a", "r1", 5, 9), said("a", "r2", 7), end},
		},
		"another turn ends the one before": {
			[]msg.Message{user("a", 1), said("a", "r1", 3)}, []msg.Message{said("b", "r2", 4)},
			[]msg.Message{said("a", "r1", 6), end, user("b", 21), said("b", "r2", 22)},
		},
		"a child": {
			[]msg.Message{user("a", 1), delegated("a", "d", "scout", 2)},
			[]msg.Message{{Kind: msg.Assistant, Run: "b", ParentRun: "a", ParentCall: "d", ResponseID: "r2", Time: 3}},
			[]msg.Message{{Kind: msg.Assistant, Run: "b", ParentRun: "a", ParentCall: "d", ResponseID: "r2", Time: 6}, answered("a", "d", 7), end},
		},
		"a response that is named only later": {
			[]msg.Message{user("a", 1)}, []msg.Message{{Key: "x", Kind: msg.Assistant, Run: "a", Time: 2}},
			[]msg.Message{{Key: "w", Kind: msg.Reasoning, Run: "a", Time: 3}, {Key: "x", Kind: msg.Assistant, Run: "a", Time: 5}, end},
		},
		"an error that passes": {
			[]msg.Message{user("a", 1)}, []msg.Message{{Kind: msg.Error, Run: "a", Time: 2}}, []msg.Message{said("a", "r1", 3), end},
		},
	} {
		for between, do := range map[string]func(*harness){
			"nothing": func(*harness) {}, "a commit": (*harness).commit, "an end": (*harness).finish,
			"a restart": (*harness).restart, "an end and a restart": func(w *harness) { w.finish(); w.restart() },
		} {
			tell := func(flush bool) (rows []string, open map[msg.SpanID]bool) {
				w, table := newHarness(t), byStart{}
				w.emitted = table.add
				w.apply(c.before...)
				do(w)
				if flush {
					for range 2 {
						w.flush(1, c.open...)
						do(w)
					}
				}
				w.apply(c.after...)
				w.finish()
				return table.shows(), w.open
			}
			want, _ := tell(false)
			got, open := tell(true)
			if diff := cmp.Diff(want, got); diff != "" || len(open) > 0 {
				t.Errorf("%s, and %s (-not flushed +flushed):\n%s%d are open", name, between, diff, len(open))
			}
		}
	}
}

// toldInFull is the usage that a flush has of a response that is over, before its stream closes it.
func toldInFull(resp string, t int64) msg.Message {
	m := tokens("a", resp, t, 9)
	m.Complete, m.Usage.Provenance = msg.Partial, msg.TranscriptFinal
	return m
}

// TestAnswerOfARunningCall: while a call runs, the response that made it is there, and one that goes on is not.
func TestAnswerOfARunningCall(t *testing.T) {
	for name, c := range map[string]struct {
		before []msg.Message
		shown  bool
	}{
		"its call runs":        {[]msg.Message{user("a", 1), said("a", "r1", 3), called("a", "c", "look", 3)}, true},
		"nothing waits for it": {[]msg.Message{user("a", 1), said("a", "r1", 3)}, false},
	} {
		w, table := newHarness(t), byStart{}
		w.emitted = table.add
		w.apply(c.before...)
		w.flush(1, toldInFull("r1", 3))
		w.commit()
		if got := strings.Join(table.shows(), ", "); strings.Contains(got, "chat r1 1-3") != c.shown {
			t.Errorf("%s: the rows are %s", name, got)
		}
	}
}

// TestProvisionalOfAnotherStream: a stream has a message of a run in which another one has an
// open message: the assembler requests that again.
func TestProvisionalOfAnotherStream(t *testing.T) {
	w := newHarness(t)
	w.apply(user("a", 1))
	w.flush(2, said("a", "r1", 3))
	w.apply(said("a", "r2", 5))
	if !slices.Equal(w.flushed, []uint64{2}) {
		t.Errorf("streams that are to be flushed again: %d", w.flushed)
	}
	w.flush(2, said("a", "r1", 6))
	if err := w.a.CloseStream(2, []RunRef{{"default", "f", "s", "a"}}); err != nil { // it stays as it is
		t.Fatal(err)
	}
	w.apply(msg.Message{Kind: msg.Status, Run: "a", Time: 9, Signal: msg.RunEnd})
	w.want(`
		run a 1-9
		  chat r2 1-5
		  chat r1 5-6
	`)
	if len(w.flushed) != 1 {
		t.Errorf("a stream that has ended is to be flushed again")
	}
}

// TestHistoryBeganThen has a run whose first messages state no time, so that they have the time
// at which they were read, an hour or a moment later.
func TestHistoryBeganThen(t *testing.T) {
	for late, want := range map[int64]string{3600: "10", 2: "12"} {
		w, table := newHarness(t), byStart{}
		w.emitted = table.add
		undated := user("a", 10+late)
		undated.Precision = msg.Inferred
		call := called("a", "c", "look", 10+late)
		dated := result("a", "c", 11)
		dated.Precision = msg.Seconds
		begun := said("a", "r", 10)
		begun.Precision = msg.Seconds
		w.apply(undated, call)
		w.finish()
		w.apply(begun, dated)
		w.finish()
		got := strings.Join(table.shows(), ", ")
		if !strings.Contains(got, "run a "+want+"-") || strings.Count(got, "run a") != 1 || strings.Count(got, "look") != 1 || strings.Contains(got, "3610") {
			t.Errorf("read %d s later: %s", late, got)
		}
	}
}
