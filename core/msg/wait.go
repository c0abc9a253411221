package msg

// A wait is reported by signals (WaitStart, WaitEnd of a call, RunPause, RunResume of a
// run), which a span keeps as events. A person is waited for unless the message's
// attribute AttrWaitsFor names something else, a reviewer that is a model or a tool
// that runs elsewhere; the event then has it as its attribute EventWaitsFor.
const (
	AttrWaitsFor  = "waits_for"
	EventWaitsFor = "earshot.waits_for"

	ForPerson  = "person"
	ForOutside = "outside" // an outside program: its time is the call's own
)

// Interval is the time from From up to and without To, in Unix ns.
type Interval struct{ From, To int64 }

// WaitsForPerson are the times at which a span with those events waited for a
// person, in order and disjoint. The To of one that has not ended is zero.
func WaitsForPerson(events []SpanEvent) (out []Interval) {
	open := false
	for i := range events {
		e := &events[i]
		switch e.Name {
		case WaitStart.String(), RunPause.String():
			if !open && e.waitsFor() == ForPerson {
				out, open = append(out, Interval{From: e.Time}), true
			}
		case WaitEnd.String(), RunResume.String():
			if open {
				// A wait takes time, so that an empty one is not taken for one without an end.
				out[len(out)-1].To, open = max(e.Time, out[len(out)-1].From+1), false
			}
		}
	}
	return out
}

func (e *SpanEvent) waitsFor() string {
	for _, a := range e.Attrs {
		if a.Key == EventWaitsFor {
			return a.Value
		}
	}
	return ForPerson
}

// WaitsFor is the cause of a span's wait: of an open one, that of the present wait; of one
// that has ended, that of any wait in it. It is ForPerson or empty.
func (s *Span) WaitsFor() string {
	waits := WaitsForPerson(s.Events)
	if n := len(waits); n > 0 && (s.State != SpanOpen || waits[n-1].To == 0) {
		return ForPerson
	}
	return ""
}

// Waited is how many nanoseconds of a span that has ended were spent waiting for a
// person; 0 while it is open.
func (s *Span) Waited() (sum int64) {
	if s.State == SpanOpen {
		return 0
	}
	for _, w := range WaitsForPerson(s.Events) {
		to := s.End
		if w.To != 0 {
			to = min(w.To, s.End)
		}
		sum += max(to-max(w.From, s.Start), 0)
	}
	return sum
}
