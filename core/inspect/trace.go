package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/blame"
	"github.com/earshot-dev/earshot/core/price"
)

// Trace is one turn: its spans as they are in the store, and as a tree.
type Trace struct {
	ID      string
	Session string
	Works   map[string]*Work // by span id

	Tree  *blame.Tree
	works []*Work        // by the number of their node
	spent []Cost         // the same
	zone  *time.Location // of times in sentences

	from, to int64 // of the first start and the last end, Unix nanoseconds
}

// Work is a span with the facts that a person needs beside its times.
type Work struct {
	blame.Span
	Session string
	Status  string // error, cancelled, running, lost (its end never arrived); empty when all is well
	Error   string
	Model   string // of a model turn, or of a run as far as it is one
	Link    string // how a run was found to belong to its call
	Tokens  Tokens
	Tier    string // of the service that the tokens are billed by; empty: the standard one
	Stated  uint64 // their cost as the protocol states it, in US dollars times 10^12; 0: it states none
	// Findings describe the anomalies detected in a run.
	Findings []string
	Events   []Event
	Silent   time.Duration // of a running one, since its last sign of life

	SeenBy   []string // formats, where several show it; the one of its row first
	From     Origins  // of its numbers
	Conflict string   // on what they differ

	child  string // the run that a call caused
	format string // of a span without the name of an agent
}

// Actor names the agent of the span for a person.
func (s *Work) Actor() string { return Agent(s.Agent, s.format) }

// LoadTrace reads a trace. id may be the beginning of one if no other begins so.
// Open spans last until now, whose zone is that of times in sentences; costs use the prices, or
// Earshot's own where they are nil.
func LoadTrace(ctx context.Context, q Querier, id string, prices *price.Table, now time.Time) (*Trace, error) {
	if id = strings.ToLower(id); strings.Trim(id, "0123456789abcdef") != "" {
		return nil, noTrace(id)
	}
	if len(id) < 32 {
		whole, err := resolveTrace(ctx, q, id)
		if err != nil {
			return nil, err
		}
		id = whole
	}
	t, err := loadTrace(ctx, q, id, prices, now)
	if err == nil && len(t.works) == 0 {
		return nil, noTrace(id)
	}
	return t, err
}

// LoadTurn is LoadTrace, or reads the latest turn of the session that has the id or begins so.
func LoadTurn(ctx context.Context, q Querier, id Ref, prices *price.Table, now time.Time) (*Trace, error) {
	t, none := LoadTrace(ctx, q, id.ID, prices, now)
	if !errors.Is(none, ErrNoTrace) {
		return t, none
	}
	session, err := id.resolve(ctx, q)
	if errors.Is(err, ErrNoSession) {
		return nil, none
	} else if err != nil {
		return nil, err
	}
	trace := ""
	err = q.Each(ctx, `SELECT trace_id FROM v_turns WHERE `+ofSession+` ORDER BY ts DESC, trace_id LIMIT 1`, session.params(), func(v []any) error {
		r := reader{values: v}
		trace = r.str()
		return r.err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("session %s: turns: %w", session.ID, err)
	case trace == "":
		return nil, fmt.Errorf("session %s has no turns", session.ID)
	}
	return LoadTrace(ctx, q, trace, prices, now)
}

// ErrNoTrace is wrapped by LoadTrace's error for a trace that is not there.
var ErrNoTrace = errors.New("there is none")

func noTrace(id string) error {
	return fmt.Errorf("trace %s: %w; `earshot show SESSION` and `earshot slow` name traces", id, ErrNoTrace)
}

// resolveTrace completes the id of a trace.
func resolveTrace(ctx context.Context, q Querier, id string) (string, error) {
	var found []string
	err := q.Each(ctx, `
		SELECT id FROM
		(
			SELECT TraceId AS id FROM otel_traces_trace_id_ts WHERE startsWith(TraceId, {id:String})
			UNION DISTINCT
			SELECT trace_id AS id FROM open_spans WHERE startsWith(trace_id, {id:String})
		)
		ORDER BY id LIMIT 6`,
		map[string]string{"id": id}, func(v []any) error {
			r := reader{values: v}
			found = append(found, r.str())
			return r.err
		})
	switch {
	case err != nil:
		return "", fmt.Errorf("trace %s: %w", id, err)
	case id == "" || len(found) == 0:
		return "", noTrace(id)
	case len(found) == 1:
		return found[0], nil
	}
	return "", fmt.Errorf("trace %s: several begin so: %s", id, strings.Join(found, " "))
}

func loadTrace(ctx context.Context, q Querier, id string, prices *price.Table, now time.Time) (*Trace, error) {
	t := newTrace(id, now)
	if err := t.read(ctx, q, id, now); err != nil {
		return nil, fmt.Errorf("trace %s: %w", id, err)
	}
	return t, t.complete(ctx, q, prices, now)
}

func newTrace(id string, now time.Time) *Trace {
	return &Trace{ID: id, Works: make(map[string]*Work), zone: now.Location()}
}

// complete adds to the spans of the trace those that are apart, and arranges all.
func (t *Trace) complete(ctx context.Context, q Querier, prices *price.Table, now time.Time) error {
	if prices == nil {
		prices = price.Default()
	}
	if err := t.addLinked(ctx, q, now); err != nil {
		return fmt.Errorf("trace %s: %w", t.ID, err)
	}
	t.arrange(prices)
	return nil
}

// shortTrace is how many spans of each trace are read together with those of others.
const shortTrace = 4_000

// loadTraces calls use with each of the traces, in any order. A query costs a store more than the rows of a turn, so short
// traces are read together; longer ones one by one, and one is held at a time.
func loadTraces(ctx context.Context, q Querier, ids []string, prices *price.Table, now time.Time, use func(*Trace) error) error {
	if len(ids) == 0 {
		return nil
	}
	found := make(map[string]*Trace, len(ids))
	err := readSpans(ctx, q, ids, shortTrace, now, func(trace string, w *Work) {
		t := found[trace]
		if t == nil {
			t = newTrace(trace, now)
			found[trace] = t
		}
		t.add(w)
	})
	if err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	for _, id := range ids {
		t := found[id]
		switch {
		case t == nil: // it was taken back meanwhile
			continue
		case len(t.works) >= shortTrace: // there may be more of it
			delete(found, id)
			if t, err = loadTrace(ctx, q, id, prices, now); err != nil {
				return err
			}
		default:
			if err := t.complete(ctx, q, prices, now); err != nil {
				return err
			}
		}
		if err := use(t); err != nil {
			return err
		}
	}
	return nil
}

// arrange makes the tree of the works, with the cost of each.
func (t *Trace) arrange(prices *price.Table) {
	spans := make([]blame.Span, 0, len(t.works))
	for _, s := range t.works {
		if s.Kind == blame.Run && s.Name == "" {
			if p := t.Works[s.Parent]; p != nil && p.Kind != blame.Run {
				s.Name = p.To
			}
		}
		spans = append(spans, s.Span)
		if t.from == 0 || s.Start < t.from {
			t.from = s.Start
		}
		t.to = max(t.to, s.End)
	}
	t.Tree = blame.New(delegations(spans))
	for _, n := range t.Tree.Roots() {
		t.who(n, "")
		if t.Session == "" {
			t.Session = t.works[n.Number()].Session
		}
	}
	t.spent = make([]Cost, len(t.works))
	bill := tariff{prices, make(map[string]price.Prices)}
	for _, n := range t.Tree.Roots() {
		t.addCost(n, bill)
	}
}

// who sets the agent's name on the steps of a run: for some runs only the delegation that
// caused the run has it.
func (t *Trace) who(n *blame.Node, agent string) {
	if n.Kind == blame.Run && n.Name != "" {
		agent = n.Name
	}
	if n.Agent == "" {
		n.Agent = agent
	}
	w := t.Works[n.ID]
	w.Agent = n.Agent
	t.works[n.Number()] = w
	for _, c := range n.Children() {
		t.who(c, agent)
	}
}

// spansSQL reads the spans of traces, of each at most so many: Earshot's own from the table, because the view of it makes a
// map of each span's attributes, and those that agents sent.
var spansSQL = `
	SELECT * FROM
	(
	SELECT lower(hex(trace_id)) AS trace, lower(hex(span_id)), if(empty(parent_span_id), '', lower(hex(parent_span_id))), toString(kind), toString(tool_name), toString(agent_name), toString(delegate_to),
		toString(if(response_model != '', response_model, request_model)), toUnixTimestamp64Nano(ts), toInt64(duration_ns), toInt64(first_token_ns), toString(state),
		toUInt8(async), toString(outcome), toString(multiIf(outcome != 'error', '', error_type = '', '_OTHER', error_type)), if(outcome = 'error', status_message, ''),
		toString(link_method), session_id, events.time, CAST(events.name, 'Array(String)'), CAST(events.attributes, 'Array(Map(String, String))'), child_run_id,
		input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, cache_write_1h_tokens, toString(tier), stated_picodollars, toUnixTimestamp64Nano(last_seen), toUInt8(waits_for != ''),
		if(agent_name = '', toString(format), ''), ` + originsSQL("attributes") + `
	FROM spans FINAL
	WHERE lower(hex(trace_id)) IN ({traces:Array(String)}) AND name != ''
	UNION ALL
	SELECT TraceId, SpanId, ParentSpanId, toString(Kind), toString(ToolName), toString(AgentName), SpanAttributes['earshot.delegate.to'],
		toString(Model), toUnixTimestamp64Nano(Timestamp), toInt64(Duration), toInt64(1e9 * toFloat64OrZero(SpanAttributes['gen_ai.response.time_to_first_chunk'])), '',
		0, toString(Outcome), SpanAttributes['error.type'], StatusMessage,
		'', SessionId, Events.Timestamp, CAST(Events.Name, 'Array(String)'), CAST(Events.Attributes, 'Array(Map(String, String))'), '',
		toUInt64(input - least(input, read + written)), toUInt64(output - least(output, reasoning)), read, written, reasoning, toUInt64(0), '', toUInt64(0), toInt64(0), 0,
		if(AgentName = '', toString(Format), ''), [], '', '', '', ''
	FROM
	(
		SELECT *, Kind, ToolName, AgentName, Model, Outcome, SessionId, Format,
			toUInt64OrZero(SpanAttributes['gen_ai.usage.input_tokens']) AS input, toUInt64OrZero(SpanAttributes['gen_ai.usage.output_tokens']) AS output,
			toUInt64OrZero(SpanAttributes['gen_ai.usage.cache_read.input_tokens']) AS read,
			toUInt64OrZero(SpanAttributes['gen_ai.usage.cache_creation.input_tokens']) + toUInt64OrZero(SpanAttributes['gen_ai.usage.cache_write.input_tokens']) AS written,
			toUInt64OrZero(SpanAttributes['gen_ai.usage.reasoning.output_tokens']) AS reasoning
		FROM agent_spans FINAL -- the convention's input contains the cached tokens, its output the reasoning
		WHERE TraceId IN ({traces:Array(String)})
	)
	)`

// add adds a work, unless its span is there.
func (t *Trace) add(s *Work) {
	if t.Works[s.ID] == nil {
		t.Works[s.ID] = s
		t.works = append(t.works, s)
	}
}

func (t *Trace) read(ctx context.Context, q Querier, id string, now time.Time) error {
	return readSpans(ctx, q, []string{id}, 0, now, func(_ string, w *Work) { t.add(w) })
}

// readSpans calls add with the spans of traces, of each at most that many; 0: all.
func readSpans(ctx context.Context, q Querier, traces []string, most int, now time.Time, add func(trace string, w *Work)) error {
	sql := spansSQL
	if most > 0 {
		sql += fmt.Sprintf("\n\tLIMIT %d BY trace", most)
	}
	err := q.Each(ctx, sql, map[string]string{"traces": "['" + strings.Join(traces, "','") + "']"}, func(v []any) error {
		r := reader{values: v}
		trace, s := r.str(), &Work{}
		s.ID, s.Parent = r.str(), r.str()
		kind, tool, agent, to, model := r.str(), r.str(), r.str(), r.str(), r.str()
		s.Start = r.signed()
		s.End = s.Start + r.signed()
		if first := r.signed(); first > 0 {
			s.FirstToken = s.Start + first
		}
		facts := spanColumns{state: r.str()}
		s.Async = r.small() != 0
		outcome := r.str()
		s.Error = r.str()
		if message := r.str(); s.Error == "" {
			s.Error = message
		}
		s.Link, s.Session = r.str(), r.str()
		facts.at, facts.names, facts.attrs = r.times(), r.list(), r.maps()
		s.child = r.str()
		s.Tokens = Tokens{r.num(), r.num(), r.num(), r.num(), r.num(), r.num()}
		s.Tier, s.Stated = r.str(), r.num()
		seen, waits := r.signed(), r.small() != 0
		s.format = r.str()
		s.SeenBy, s.From, s.Conflict = originsOf(&r)
		if r.err != nil {
			return r.err
		}
		s.Agent, s.To, s.Model = agent, to, model
		switch {
		case kind == "delegation" || kind == "tool" && to != "":
			s.Kind, s.Name = blame.Delegation, tool
		case kind == "tool":
			s.Kind, s.Name = blame.Tool, tool
		case kind == "chat":
			s.Kind, s.Name = blame.Chat, model
		default:
			s.Kind, s.Name, s.Step = blame.Run, agent, kind == "workflow"
		}
		switch {
		case facts.state == "open":
			s.Status, s.End, s.Silent = "running", max(now.UnixNano(), seen), max(0, time.Duration(now.UnixNano()-seen))
			if waits { // asking was the last that it did
				s.Waits = []blame.Interval{{From: seen}}
			}
		case facts.state == "idle" && s.call() && outcome != "": // else its record never has results
			s.Status = "lost"
		case outcome == "error" || outcome == "cancelled":
			s.Status = outcome
		}
		facts.on(&s.Span)
		s.findings(facts)
		s.events(facts)
		add(trace, s)
		return nil
	})
	if err != nil {
		return fmt.Errorf("spans: %w", err)
	}
	return nil
}

// call reports whether the work is a call of a tool or of another agent.
func (s *Work) call() bool { return s.Kind == blame.Tool || s.Kind == blame.Delegation }

func less(a, b uint64) uint64 { return a - min(a, b) }

// spanColumns are the columns of a span beside its times.
type spanColumns struct {
	state, async, first string
	at                  []time.Time // of the events
	names               []string
	attrs               []map[string]string
}

// on puts it on the span.
func (f spanColumns) on(s *blame.Span) {
	s.Async = s.Async || f.async != ""
	s.Open = f.state == "idle" || f.state == "open"
	if f.first != "" {
		if sec, err := strconv.ParseFloat(f.first, 64); err == nil && sec > 0 && sec < 1e9 {
			s.FirstToken = s.Start + int64(sec*1e9)
		}
	}
	for i, name := range f.names[:min(len(f.names), len(f.at))] {
		ns := f.at[i].UnixNano()
		switch strings.TrimPrefix(name, "earshot.") {
		case "wait_start", "run_pause":
			if i < len(f.attrs) && f.attrs[i]["earshot.waits_for"] == "outside" { // no person: the time is the work's own
				continue
			}
			if n := len(s.Waits); n == 0 || s.Waits[n-1].To != 0 {
				s.Waits = append(s.Waits, blame.Interval{From: ns})
			}
		case "wait_end", "run_resume":
			if n := len(s.Waits); n > 0 && s.Waits[n-1].To == 0 {
				s.Waits[n-1].To = max(ns, s.Waits[n-1].From+1)
			}
		case "retry":
			s.Retries = append(s.Retries, ns)
		}
	}
}

// findings adds the anomalies that were detected in a run, of each kind and tool the largest: one that goes on is
// reported again when it has doubled.
func (s *Work) findings(f spanColumns) {
	var found []finding
	for i, name := range f.names[:min(len(f.names), len(f.attrs))] {
		if strings.TrimPrefix(name, "earshot.") != "finding" {
			continue
		}
		count, _ := strconv.ParseInt(f.attrs[i]["earshot.finding.count"], 10, 64)
		n := finding{kind: f.attrs[i]["earshot.finding.kind"], tool: f.attrs[i]["earshot.finding.tool"], count: count}
		if at := slices.IndexFunc(found, func(o finding) bool { return o.kind == n.kind && o.tool == n.tool }); at < 0 {
			found = append(found, n)
		} else {
			found[at].count = max(found[at].count, n.count)
		}
	}
	for _, n := range found {
		s.Findings = append(s.Findings, n.String())
	}
}

// Event is something that happened within a span.
type Event struct {
	Time  int64  `json:"time_unix_nano"`
	Name  string `json:"name"`            // wait_start, wait_end, retry, compaction, ...
	Facts string `json:"facts,omitempty"` // its attributes, name=value
}

func (s *Work) events(f spanColumns) {
	for i, name := range f.names[:min(len(f.names), len(f.at))] {
		e := Event{Time: f.at[i].UnixNano(), Name: strings.TrimPrefix(name, "earshot.")}
		if i < len(f.attrs) {
			var facts []string
			for _, k := range slices.Sorted(maps.Keys(f.attrs[i])) {
				facts = append(facts, strings.TrimPrefix(k, "earshot.")+"="+f.attrs[i][k])
			}
			e.Facts = strings.Join(facts, " ")
		}
		s.Events = append(s.Events, e)
	}
}

// finding is an anomaly. Its count is that of the last report: there may have been up to twice as many.
type finding struct {
	kind, tool string
	count      int64
}

// String describes it in words.
func (f finding) String() string {
	tool := or(f.tool, "a tool")
	switch f.kind {
	case "repeat":
		return fmt.Sprintf("called %s at least %d times running with the same arguments and the same result", tool, f.count)
	case "ping_pong":
		return fmt.Sprintf("made the same few calls in turn, %s the last, for at least %d results", tool, f.count)
	case "error_storm":
		return fmt.Sprintf("saw %s fail at least %d times running", tool, f.count)
	case "fan_out":
		return fmt.Sprintf("had at least %d delegations at work at once", f.count)
	case "silence":
		return fmt.Sprintf("was silent for %s and no recorded work explains it", Span(time.Duration(f.count)*time.Second))
	default:
		return fmt.Sprintf("%s %s %d", f.kind, tool, f.count)
	}
}
