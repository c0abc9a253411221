package inspect

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/verdict"
)

// Top is a snapshot of the work in progress.
type Top struct {
	Now     time.Time    `json:"now"`
	Sources []SourceLoad `json:"sources"`
	Open    []OpenKind   `json:"open"`    // open spans by kind and state
	Running []OpenWork   `json:"running"` // the latest activity first
	Waiting []OpenWork   `json:"waiting"` // for a person, likewise
	Stuck   []OpenWork   `json:"stuck"`   // likewise
	Sidecar *Sidecar     `json:"sidecar,omitempty"`
}

// SourceLoad is a source with its throughput. Rates are since the snapshot
// before; there are none in the first.
type SourceLoad struct {
	Source      string    `json:"source"`
	Streams     uint64    `json:"streams"`
	Messages    int64     `json:"messages"`
	Bytes       int64     `json:"bytes"`
	Problems    int64     `json:"problems"`
	Lost        int64     `json:"unaccounted_bytes"` // anything but 0 is a bug in Earshot
	Last        time.Time `json:"last_account"`      // when an account was last written
	MessageRate float64   `json:"messages_per_second"`
	ByteRate    float64   `json:"bytes_per_second"`
}

// OpenKind counts open spans of a kind in a state.
type OpenKind struct {
	State  string `json:"state"` // running, waiting or stuck
	Kind   string `json:"kind"`
	Count  uint64 `json:"count"`
	Oldest uint64 `json:"oldest_ms"`
}

// OpenWork is an open span. Its State is running, silent (running without a record for a
// while), waiting (for a person) or stuck: it has a verdict that is neither healthy nor a wait.
type OpenWork struct {
	State     string `json:"state"`
	TraceID   string `json:"trace_id"`
	SpanID    string `json:"span_id"`
	SessionID string `json:"session_id"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	AgentName string `json:"agent_name,omitempty"`
	Format    string `json:"format,omitempty"`
	Verdict   string `json:"verdict"`            // healthy, or why it does not advance
	Evidence  string `json:"evidence,omitempty"` // the verdict's reason in a sentence, as it was JudgedMS ago
	JudgedMS  int64  `json:"judged_ms,omitempty"`
	AgeMS     int64  `json:"age_ms"`
	SilentMS  int64  `json:"silent_ms"`
	Leaf      bool   `json:"-"` // it does not wait for something below it
	Leaves    uint64 `json:"-"` // how many leaves are in its state
}

// Advice is a person's next step, if the work is itself the reason.
func (w OpenWork) Advice() string {
	if !w.Leaf {
		return ""
	}
	return verdict.Advice(w.Verdict)
}

// judged is the verdict; empty for a wait that has none, because it was read long after it began: "healthy" would mislead there.
func (w OpenWork) judged() string {
	if w.State == Waiting && w.Verdict == verdict.Healthy.String() {
		return ""
	}
	return w.Verdict
}

// Actor names its agent for a person.
func (w OpenWork) Actor() string { return Agent(w.AgentName, w.Format) }

// Age is how long ago it began.
func (w OpenWork) Age() time.Duration { return time.Duration(w.AgeMS) * time.Millisecond }

// Reason is the evidence with its age: it has the figures of the moment when the verdict was made.
func (w OpenWork) Reason() string {
	if w.Evidence == "" {
		return ""
	}
	return fmt.Sprintf("%s (as of %s ago)", w.Evidence, Span(time.Duration(w.JudgedMS)*time.Millisecond))
}

// Silent is the time since its last record.
func (w OpenWork) Silent() time.Duration { return time.Duration(w.SilentMS) * time.Millisecond }

// The states of open work.
const (
	Running = "running"
	Silent  = "silent"
	Waiting = "waiting"
	Stuck   = "stuck"
)

// OpenWorks returns the open spans for which the condition on v_open_spans is true, or only the leaves:
// at most limit in each state, stuck first, then waiting, running and silent, and within each the latest
// activity first.
func OpenWorks(ctx context.Context, q Querier, where Condition, leaves bool, limit int) ([]OpenWork, error) {
	var out []OpenWork
	err := q.Each(ctx, `
		SELECT state, trace_id, toString(span_id), session_id, toString(kind), toString(name), toString(agent_name), toInt64(age_ms), toInt64(silent_ms), toBool(leaf),
			countIf(leaf) OVER (PARTITION BY state), toString(verdict), toString(evidence), toString(format), judged_ms
		FROM v_open_spans
		WHERE (leaf OR NOT {leaves:Bool}) AND `+where.sql()+`
		ORDER BY indexOf(['stuck', 'waiting', 'running', 'silent'], state), silent_ms, span_id
		LIMIT {limit:UInt32} BY state`, where.with(map[string]string{"leaves": strconv.FormatBool(leaves), "limit": strconv.Itoa(limit)}), func(v []any) error {
		r := reader{values: v}
		out = append(out, OpenWork{
			State: r.str(), TraceID: r.str(), SpanID: r.str(), SessionID: r.str(), Kind: r.str(), Name: r.str(), AgentName: r.str(),
			AgeMS: r.signed(), SilentMS: r.signed(), Leaf: r.flag(), Leaves: r.num(), Verdict: r.str(), Evidence: r.str(), Format: r.str(), JudgedMS: r.signed(),
		})
		return r.err
	})
	if err != nil {
		return nil, fmt.Errorf("open spans: %w", err)
	}
	return out, nil
}

// Sidecar is the state that a running sidecar reports.
type Sidecar struct {
	Streams   float64            `json:"streams"`
	InFlight  float64            `json:"in_flight_bytes"`
	LagBy     map[string]float64 `json:"lag_seconds"` // by exporter: age of the oldest batch that it has not accepted
	Delivered float64            `json:"records_delivered"`
}

// LoadTop takes a snapshot. Rates are computed against before, if there is one.
func LoadTop(ctx context.Context, q Querier, before *Top, limit int, now time.Time) (*Top, error) {
	t := &Top{Now: now.UTC(), Sources: []SourceLoad{}, Open: []OpenKind{}, Running: []OpenWork{}, Waiting: []OpenWork{}, Stuck: []OpenWork{}}
	err := q.Each(ctx, `
		SELECT source, count(), sum(messages), sum(read_bytes), sum(problems), sum(unaccounted_bytes), max(seen_at)
		FROM source_ledger GROUP BY source ORDER BY source`, nil, func(v []any) error {
		r := reader{values: v}
		s := SourceLoad{Source: r.str(), Streams: r.num(), Messages: r.signed(), Bytes: r.signed(), Problems: r.signed(), Lost: r.signed(), Last: r.time()}
		t.Sources = append(t.Sources, s)
		return r.err
	})
	if err != nil {
		return nil, fmt.Errorf("top: sources: %w", err)
	}
	err = q.Each(ctx, `
		SELECT if(state = 'silent', 'running', state) AS does, toString(kind), count(), toUInt64(max(age_ms))
		FROM v_open_spans GROUP BY does, kind ORDER BY indexOf(['stuck', 'waiting', 'running'], does), kind`, nil, func(v []any) error {
		r := reader{values: v}
		t.Open = append(t.Open, OpenKind{State: r.str(), Kind: r.str(), Count: r.num(), Oldest: r.num()})
		return r.err
	})
	if err != nil {
		return nil, fmt.Errorf("top: open spans: %w", err)
	}
	works, err := OpenWorks(ctx, q, Condition{}, true, limit)
	if err != nil {
		return nil, fmt.Errorf("top: %w", err)
	}
	for _, w := range works {
		switch w.State {
		case Waiting:
			t.Waiting = append(t.Waiting, w)
		case Stuck:
			t.Stuck = append(t.Stuck, w)
		default:
			t.Running = append(t.Running, w)
		}
	}
	t.rates(before)
	return t, nil
}

func (t *Top) rates(before *Top) {
	if before == nil {
		return
	}
	sec := t.Now.Sub(before.Now).Seconds()
	if sec <= 0 {
		return
	}
	for i := range t.Sources {
		s := &t.Sources[i]
		for _, b := range before.Sources {
			if b.Source == s.Source {
				s.MessageRate = max(0, float64(s.Messages-b.Messages)/sec)
				s.ByteRate = max(0, float64(s.Bytes-b.Bytes)/sec)
			}
		}
	}
}

// Write draws the snapshot.
func (t *Top) Write(out io.Writer, st Style) error {
	work := newWorkLine(st.Width)
	if st.Width <= 0 {
		st.Width = 100
	}
	p := &printer{w: out, Style: st}
	head := "earshot top · " + t.Now.In(st.zone()).Format("15:04:05 MST")
	if s := t.Sidecar; s != nil {
		head += fmt.Sprintf(" · sidecar: %.0f streams, %.1f MB in flight, %.0f records delivered", s.Streams, s.InFlight/1e6, s.Delivered)
		for _, name := range slices.Sorted(maps.Keys(s.LagBy)) {
			head += fmt.Sprintf(", %s %.1fs behind", name, s.LagBy[name])
		}
	} else {
		head += " · no sidecar runs on this data_dir, or it has no metrics"
	}
	for _, part := range Fold(head, st.Width) {
		p.line("", p.bold(part))
	}
	p.line("", "")
	p.line("", p.dim(fmt.Sprintf("%-16s %7s %9s %7s %8s %7s %8s  %s", "source", "streams", "messages", "msg/s", "MB read", "kB/s", "problems", "updated")))
	for _, s := range t.Sources {
		line := fmt.Sprintf("%s %7d %9d %7.1f %8.1f %7.1f %8d  %s ago", Pad(Clip(s.Source, 16), 16), s.Streams, s.Messages, s.MessageRate, float64(s.Bytes)/1e6, s.ByteRate/1e3,
			s.Problems, Span(max(0, t.Now.Sub(s.Last))))
		if s.Lost != 0 {
			line += p.bad(fmt.Sprintf("  %d bytes unaccounted for", s.Lost))
		}
		p.line("", line)
	}
	p.line("", "")
	for _, state := range []struct {
		name, words string
		works       []OpenWork
	}{{Stuck, "stuck", t.Stuck}, {Waiting, "waiting for a person", t.Waiting}, {Running, "running", t.Running}} {
		var open []string
		for _, k := range t.Open {
			if k.State == state.name {
				open = append(open, fmt.Sprintf("%s (oldest %s)", plural(int(k.Count), k.Kind), Span(time.Duration(k.Oldest)*time.Millisecond)))
			}
		}
		p.line("", p.bold(state.words+": "), or(strings.Join(open, ", "), "nothing"))
		p.works(state.works, work)
	}
	return p.err
}

// workLine is how many columns the texts of a step have; 0: it is left out.
type workLine struct{ what, agent, session, trace int }

// newWorkLine fits a line into a terminal: the beginnings of ids are enough for other commands, and a step is below its agent's
// run. Without a terminal ids are whole.
func newWorkLine(width int) workLine {
	const figures, ids = 9 + 1 + 9 + 2 + 18 + 1, 8 + 1 + 8
	l := workLine{34, 20, 8, 8}
	switch {
	case width <= 0:
		return workLine{34, 20, 36, 32}
	case width < figures+24+1+l.agent+1+ids:
		l.agent = 0
	}
	l.what = min(l.what, max(12, width-figures-1-ids))
	if l.agent > 0 {
		l.what = min(l.what, width-figures-1-l.agent-1-ids)
	}
	return l
}

func (l workLine) text(silent, age, verdict, what, agent, session, trace string) string {
	s := fmt.Sprintf("%9s %9s  %-18s %s ", silent, age, verdict, Pad(Clip(what, l.what), l.what))
	if l.agent > 0 {
		s += Pad(Clip(agent, l.agent), l.agent) + " "
	}
	return s + Pad(begin(session, l.session), l.session) + " " + begin(trace, l.trace)
}

// begin is the beginning of an id.
func begin(id string, n int) string { return First(printable(id), n) }

func (p *printer) works(list []OpenWork, line workLine) {
	if len(list) > 0 {
		p.line("", p.dim(line.text("silent", "age", "verdict", "what", "agent", "session", "trace")))
	}
	for _, w := range list {
		p.line("", line.text(Span(w.Silent()), Span(w.Age()), w.judged(), w.Name, w.Actor(), w.SessionID, w.TraceID))
		if why := w.Reason(); why != "" {
			p.line("", p.dim(fmt.Sprintf("%20s %s", "", Clip(why, max(40, p.Width-21)))))
		}
		if act := w.Advice(); act != "" {
			p.line("", fmt.Sprintf("%20s %s", "", Clip(act, max(40, p.Width-21))))
		}
	}
}
