package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/blame"
)

// Conversation is a session in turns.
type Conversation struct {
	Session Session `json:"session"`
	Turns   []Turn  `json:"turns"`
}

// Turn is a user's prompt, the steps behind the scenes, and the answer.
type Turn struct {
	TraceID string    `json:"trace_id"`
	Agent   string    `json:"agent,omitempty"`
	Started time.Time `json:"started"`
	Prompt  string    `json:"prompt,omitempty"`
	Steps   []*Step   `json:"steps"`
	Answer  string    `json:"answer,omitempty"`
	Root    *Step     `json:"-"`
}

// Outside reports whether these are the messages of no turn.
func (t *Turn) Outside() bool { return t.Root == nil && t.TraceID == "" }

// Step is a span with its content and the steps below it.
type Step struct {
	SpanID    string        `json:"span_id"`
	Kind      string        `json:"kind"` // run, chat, tool, delegation, workflow, message
	Name      string        `json:"name"`
	Started   time.Time     `json:"started"`
	Duration  time.Duration `json:"duration_ns"`
	Status    string        `json:"status,omitempty"` // error, cancelled, running; empty when all is well
	Error     string        `json:"error,omitempty"`
	Model     string        `json:"model,omitempty"`
	To        string        `json:"to,omitempty"`        // of a delegation
	Link      string        `json:"link,omitempty"`      // how its child was found
	Hop       *Hop          `json:"hop,omitempty"`       // of a call that another program answered
	Elsewhere []Elsewhere   `json:"elsewhere,omitempty"` // the runs that it caused in other sessions
	Tokens    Tokens        `json:"tokens,omitzero"`
	SeenBy    []string      `json:"seen_by,omitempty"` // formats, where several show the step; the one of its row first
	Origins
	Conflict string       `json:"conflict,omitempty"`      // counts and outcomes of each, if they differ
	Seen     []SeenText   `json:"seen_messages,omitempty"` // its messages that several formats have
	Input    string       `json:"input,omitempty"`         // a tool's arguments, a delegation's task, a run's prompt
	Output   string       `json:"output,omitempty"`        // a tool's result, a model's text
	Thoughts string       `json:"thoughts,omitempty"`
	Files    []Attachment `json:"attachments,omitempty"` // of its messages
	Steps    []*Step      `json:"steps,omitempty"`

	parent, agent string
	seen          map[string][]string // formats of its messages, by message_id
	span          blame.Span          // as the critical path is found
}

// Origins are the formats of what is known of a step that several formats show: of its tokens (all classes, and so its cost), of
// its start and duration, and of its status. Empty, where only one format shows it.
type Origins struct {
	Tokens string `json:"tokens_from,omitempty"`
	Times  string `json:"times_from,omitempty"`
	Status string `json:"status_from,omitempty"`
}

// originsSQL are the columns of originsOf, of a map of attributes.
func originsSQL(attributes string) string {
	return fmt.Sprintf(`JSONExtract(%[1]s['earshot.seen_by'], 'Array(String)'), %[1]s['earshot.tokens.from'], %[1]s['earshot.times.from'],
		%[1]s['earshot.outcome.from'], %[1]s['earshot.conflict']`, attributes)
}

// originsOf reads the formats that show a span, the one of its row first, and those of its numbers: the first, but where
// another is named. conflict is on what they differ.
func originsOf(r *reader) (seen []string, o Origins, conflict string) {
	seen, o.Tokens, o.Times, o.Status, conflict = r.list(), r.str(), r.str(), r.str(), r.str()
	if len(seen) == 0 {
		return nil, Origins{}, conflict
	}
	o.Times = cmp.Or(o.Times, o.Status, seen[0]) // an end that another view has is its outcome, too
	o.Tokens, o.Status = cmp.Or(o.Tokens, seen[0]), cmp.Or(o.Status, seen[0])
	return seen, o, conflict
}

// SeenText is a message that several formats have.
type SeenText struct {
	Kind string   `json:"kind"`
	By   []string `json:"by"` // the formats, the one whose words are shown first
}

// seenMessages parses the attribute of a span; nil when there are none.
func seenMessages(text string) (out map[string][]string) {
	if text != "" && json.Unmarshal([]byte(text), &out) != nil {
		return nil
	}
	return out
}

// blamed returns the step's span, without the facts that a conversation does not show.
func (s *Step) blamed(parent, agent string) blame.Span {
	start := s.Started.UnixNano()
	return blame.Span{
		ID: s.SpanID, Parent: parent, Kind: kinds[s.Kind], Step: s.Kind == "workflow", Name: s.Name, Agent: agent, To: s.To,
		Start: start, End: start + int64(s.Duration), Open: s.Status == "running",
	}
}

// kinds are those of package blame; a workflow is a run.
var kinds = map[string]blame.Kind{"chat": blame.Chat, "tool": blame.Tool, "delegation": blame.Delegation}

// Tree returns the turn's spans as a tree of package blame, equal to the turn's part of
// the trace that LoadTrace reads.
func (t *Turn) Tree() *blame.Tree {
	var spans []blame.Span
	var collect func(s *Step, parent string)
	collect = func(s *Step, parent string) {
		if s.SpanID != "" {
			span := s.span
			if span.ID == "" {
				span = s.blamed("", s.agent)
			}
			span.Parent = parent
			spans = append(spans, span)
			parent = s.SpanID
		}
		for _, below := range s.Steps {
			collect(below, parent)
		}
	}
	if t.Root != nil {
		collect(t.Root, "")
	} else {
		for _, s := range t.Steps {
			collect(s, "")
		}
	}
	return blame.New(delegations(spans))
}

// delegations are the spans with those tools made delegations that another agent runs
// below, under any name.
func delegations(spans []blame.Span) []blame.Span {
	ran := make(map[string]bool) // there are many more tools than runs
	for i := range spans {
		if spans[i].Kind == blame.Run && spans[i].Parent != "" {
			ran[spans[i].Parent] = true
		}
	}
	for i := range spans {
		if spans[i].Kind == blame.Tool && ran[spans[i].ID] {
			spans[i].Kind = blame.Delegation
		}
	}
	return spans
}

// Tokens are exclusive classes.
type Tokens struct {
	Input      uint64 `json:"input"`
	Output     uint64 `json:"output"`
	CacheRead  uint64 `json:"cache_read"`
	CacheWrite uint64 `json:"cache_write"`
	Reasoning  uint64 `json:"reasoning"`
	// CacheWrite1h is how many tokens of CacheWrite are kept for an hour.
	CacheWrite1h uint64 `json:"cache_write_1h,omitempty"`
}

// Total is the sum of all classes.
func (t Tokens) Total() uint64 {
	return t.Input + t.Output + t.CacheRead + t.CacheWrite + t.Reasoning
}

func (t *Tokens) add(u Tokens) {
	t.Input += u.Input
	t.Output += u.Output
	t.CacheRead += u.CacheRead
	t.CacheWrite += u.CacheWrite
	t.Reasoning += u.Reasoning
	t.CacheWrite1h += u.CacheWrite1h
}

// Lengths to which texts are read, in characters: for reading, and for the one line of a
// terminal.
const (
	LongTexts  = 4000
	ShortTexts = 240
)

// ErrNoSession is wrapped by Load's error for a session that is not there.
var ErrNoSession = errors.New("there is none")

// ErrSeveral is wrapped by Load's error for the beginning of an id that several sessions have.
var ErrSeveral = errors.New("several begin so")

// Ref names a session. Its id may be the beginning of one if no other begins so.
type Ref struct {
	Tenant string // empty: the one that has it
	ID     string
}

// AmbiguousError is the error for a session that several tenants have.
type AmbiguousError struct {
	ID      string
	Tenants []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("session %s: several tenants have it: %s; its tenant picks one", e.ID, strings.Join(e.Tenants, " "))
}

// Load reads a session, of each text at most that many characters.
func Load(ctx context.Context, q Querier, id Ref, texts int) (*Conversation, error) {
	c := new(Conversation)
	err := Each(ctx, q, id, texts, func(s *Session) error { c.Session = *s; return nil }, func(t *Turn) error {
		c.Turns = append(c.Turns, *t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(c.Turns, func(x, y Turn) int { return x.Started.Compare(y.Started) })
	return c, nil
}

// Each is Load for sessions of any length: it calls session once and then turn for each
// turn, in the order in which they began; messages that belong to no turn follow last.
func Each(ctx context.Context, q Querier, id Ref, texts int, session func(*Session) error, turn func(*Turn) error) error {
	id, err := id.resolve(ctx, q)
	if err != nil {
		return err
	}
	list, err := Sessions(ctx, q, Filter{ID: id.ID, Tenant: id.Tenant, Limit: 1})
	if err != nil {
		return err
	}
	if len(list) == 0 {
		list = []Session{{ID: id.ID, Tenant: id.Tenant}}
	}
	if list[0].Shares, err = countedIn(ctx, q, id); err != nil {
		return err
	}
	if err := session(&list[0]); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := builder{texts: texts, turn: turn, messages: readMessages(ctx, q, id, texts)}
	if err := b.spans(ctx, q, id); err != nil {
		return fmt.Errorf("session %s: %w", id.ID, err)
	}
	return nil
}

// countedIn returns the session in which turns count that a session has, too: one of the two is a fork; empty: it has all its own.
func countedIn(ctx context.Context, q Querier, id Ref) (from string, err error) {
	err = q.Each(ctx, `SELECT anyLast(origin) FROM (
			SELECT coalesce(nullIf(attributes['forked_from'], ''), nullIf(attributes['shares_turns_with'], ''), nullIf(attributes['forked_from_id'], ''), attributes['forked_from_session_id']) AS origin
			FROM messages FINAL WHERE `+ofSession+`)
		WHERE origin NOT IN ('', {id:String})`, id.params(), func(v []any) error {
		r := reader{values: v}
		from = r.str()
		return r.err
	})
	if err != nil {
		return "", fmt.Errorf("session %s: %w", id.ID, err)
	}
	return from, nil
}

// ofSession picks the rows of a session, and tracesOfSession its rows of otel_traces, which has no tenants: a trace is of one.
const (
	ofSession       = "session_id = {id:String} AND tenant = {tenant:String}"
	tracesOfSession = "SessionId = {id:String} AND TraceId IN (SELECT lower(hex(trace_id)) FROM spans WHERE " + ofSession + ")"
)

func (r Ref) params() map[string]string { return map[string]string{"id": r.ID, "tenant": r.Tenant} }

// resolve completes the name of a session.
func (r Ref) resolve(ctx context.Context, q Querier) (Ref, error) {
	var found []Ref
	err := q.Each(ctx, `SELECT DISTINCT session_id, toString(tenant) AS of FROM sessions WHERE startsWith(session_id, {id:String}) AND ({tenant:String} = '' OR tenant = {tenant:String})
		ORDER BY session_id != {id:String}, session_id, of LIMIT 6`,
		r.params(), func(v []any) error {
			row := reader{values: v}
			found = append(found, Ref{ID: row.str(), Tenant: row.str()})
			return row.err
		})
	if err != nil {
		return Ref{}, fmt.Errorf("session %s: %w", r.ID, err)
	}
	if len(found) == 0 {
		return Ref{}, fmt.Errorf("session %s: %w; `earshot sessions` lists them", r.ID, ErrNoSession)
	}
	var ids, tenants []string
	for _, f := range found {
		if f.ID == found[0].ID {
			tenants = append(tenants, f.Tenant)
		}
		if !slices.Contains(ids, f.ID) {
			ids = append(ids, f.ID)
		}
	}
	switch {
	case found[0].ID != r.ID && len(ids) > 1:
		return Ref{}, fmt.Errorf("session %s: %w: %s", r.ID, ErrSeveral, strings.Join(ids, " "))
	case len(tenants) > 1:
		return Ref{}, &AmbiguousError{found[0].ID, tenants}
	}
	return found[0], nil
}

// builder puts the spans and the messages of one trace after another together. Both
// come in the order of places, so that no more than one trace is held.
type builder struct {
	texts    int
	turn     func(*Turn) error
	messages *messageReader
	begun    []*Turn // of traces of which no span is stored yet
	loose    []*Step // messages without a turn

	at    traceOrder
	steps map[string]*Step // by span id
	order []*Step
	roots []*Turn
	byID  map[string]*Turn
}

// traceOrder orders traces: by when their first span began and, where the protocol has no times, by the order of their messages.
type traceOrder struct {
	began int64 // Unix ns
	seq   uint64
	trace string
}

func (p traceOrder) compare(o traceOrder) int {
	return cmp.Or(cmp.Compare(p.began, o.began), cmp.Compare(p.seq, o.seq), strings.Compare(p.trace, o.trace))
}

// firstSeqSQL is where the first message of each trace of the session is in its stream.
const firstSeqSQL = `(SELECT trace_id AS of_trace, min(seq) AS first_seq FROM messages FINAL WHERE ` + ofSession + ` AND is_deleted = 0 GROUP BY trace_id) AS o`

// spans reads the session's spans, those that still run among them: they last until
// now.
func (b *builder) spans(ctx context.Context, q Querier, id Ref) error {
	others, err := readOthers(ctx, q, id)
	if err != nil {
		return err
	}
	err = q.Each(ctx, `
		SELECT min(toUnixTimestamp64Nano(began)) OVER (PARTITION BY trace) AS first, first_seq, s.* FROM (
			SELECT TraceId AS trace, SpanId AS span, ParentSpanId AS parent, SpanAttributes['gen_ai.operation.name'] AS op, SpanAttributes['earshot.delegate.to'] AS to,
				toString(AgentName) AS agent, toString(ToolName) AS tool, Timestamp AS began, toInt64(Duration) AS took, if(Outcome = 'cancelled', 'Cancelled', toString(StatusCode)) AS status,
				if(Outcome = 'cancelled', SpanAttributes['earshot.cancel.reason'], SpanAttributes['error.type']) AS error, StatusMessage AS message, SpanAttributes['earshot.link.method'] AS link,
				if(SpanAttributes['gen_ai.response.model'] != '', SpanAttributes['gen_ai.response.model'], SpanAttributes['gen_ai.request.model']) AS model,
				if(SpanId IN (SELECT toString(span_id) FROM delegations WHERE `+ofSession+`), 'true', '') AS delegation, '' AS kind,
				SpanAttributes['earshot.span.state'] AS state, SpanAttributes['earshot.delegate.async'] AS async,
				SpanAttributes['gen_ai.response.time_to_first_chunk'] AS first_chunk, Events.Timestamp AS happened,
				CAST(Events.Name, 'Array(String)') AS events, CAST(Events.Attributes, 'Array(Map(String, String))') AS facts,
				`+originsSQL("SpanAttributes")+`, SpanAttributes['earshot.seen_by.messages'] AS seen_messages
			FROM otel_traces FINAL
			WHERE `+tracesOfSession+`
			UNION ALL
			SELECT trace_id, toString(span_id), parent_span_id, '', toString(delegate_to), toString(agent_name), toString(tool_name), ts, toInt64(age_ms) * 1000000,
				'', '', '', '', '', '', toString(kind), 'open',
				if(span_id IN (SELECT span_id FROM delegations FINAL WHERE `+ofSession+` AND async), 'true', ''), '',
				if(waits_for = '', [], [last_seen]), if(waits_for = '', [], ['earshot.wait_start']), if(waits_for = '', [], [CAST(map(), 'Map(String, String)')]), [], '', '', '', '', ''
			FROM open_spans FINAL
			WHERE `+ofSession+`) AS s
		LEFT JOIN `+firstSeqSQL+` ON s.trace = o.of_trace
		LEFT JOIN (SELECT span_id AS of_span, min(seq) AS span_seq FROM messages FINAL WHERE `+ofSession+` AND is_deleted = 0 GROUP BY span_id) AS p ON s.span = p.of_span
		ORDER BY first, first_seq, trace, kind != '', began, span_seq, span
		SETTINGS join_use_nulls = 0, max_block_size = 4096`, id.params(),
		func(v []any) error {
			r := reader{values: v}
			at := traceOrder{began: r.signed(), seq: r.num()}
			at.trace = r.str()
			span, parent, op, to, agent, tool := r.str(), r.str(), r.str(), r.str(), r.str(), r.str()
			s := &Step{SpanID: span, Started: r.time(), Duration: max(0, time.Duration(r.signed())), parent: parent, To: to}
			status, errType, message := r.str(), r.str(), r.str()
			s.Link, s.Model = r.str(), r.str()
			delegation, kind := r.str(), r.str()
			facts := spanColumns{state: r.str(), async: r.str(), first: r.str(), at: r.times(), names: r.list(), attrs: r.maps()}
			s.SeenBy, s.Origins, s.Conflict = originsOf(&r)
			s.Hop, s.Elsewhere, s.seen = others.hops[span], others.runs[span], seenMessages(r.str())
			if r.err != nil {
				return r.err
			}
			if at != b.at {
				if err := b.end(ctx); err != nil {
					return err
				}
				b.at = at
				b.steps, b.byID, b.order, b.roots = make(map[string]*Step), make(map[string]*Turn), nil, nil
			}
			if b.steps[span] != nil { // it ended while this was read
				return nil
			}
			s.Kind = kind
			switch {
			case kind != "":
				s.Status = "running"
			case op == "execute_tool" && (to != "" || delegation != ""):
				s.Kind = "delegation"
			case op == "execute_tool":
				s.Kind, s.To = "tool", ""
			case op == "invoke_agent":
				s.Kind, s.To = "run", ""
			case op == "invoke_workflow":
				s.Kind, s.To = "workflow", ""
			default:
				s.Kind, s.To = "chat", ""
			}
			switch s.Kind {
			case "tool", "delegation":
				s.Name = tool
			case "run", "workflow":
				s.Name = agent
			case "chat":
				s.Name = s.Model
			}
			switch status {
			case "Error":
				s.Status = "error"
			case "Cancelled":
				s.Status = "cancelled"
			}
			if s.Error = errType; errType == "" {
				s.Error = message
			}
			if facts.state == "idle" && s.Status != "" && (s.Kind == "tool" || s.Kind == "delegation") {
				s.Status, s.Error = "lost", ""
			}
			s.span = s.blamed(parent, agent)
			facts.on(&s.span)
			b.add(s, agent)
			return nil
		})
	if err != nil {
		return fmt.Errorf("spans: %w", err)
	}
	if err := b.end(ctx); err != nil {
		return err
	}
	return b.rest(ctx)
}

func (b *builder) add(s *Step, agent string) {
	b.steps[s.SpanID] = s
	b.order = append(b.order, s)
	s.agent = agent
}

// turns finds the turns of the trace whose spans have been read: its roots, and runs that
// a call of another session caused.
func (b *builder) turns() {
	for _, s := range b.order {
		if s.parent == "" || b.steps[s.parent] == nil && (s.Kind == "run" || s.Kind == "workflow") {
			t := &Turn{TraceID: b.at.trace, Agent: s.agent, Started: s.Started, Root: s}
			b.roots = append(b.roots, t)
			b.byID[s.SpanID] = t
		}
	}
}

// end passes on the turns of the trace whose spans have been read.
func (b *builder) end(ctx context.Context) error {
	if b.steps == nil {
		return nil
	}
	b.turns()
	for {
		w, err := b.messages.peek(ctx)
		if err != nil {
			return err
		}
		if w == nil || w.at.compare(b.at) > 0 {
			break
		}
		b.messages.take()
		b.addMessage(w)
	}
	for _, s := range b.order {
		if p := b.steps[s.parent]; p != nil && s.parent != "" {
			p.Steps = append(p.Steps, s)
		}
	}
	for _, s := range b.order {
		slices.SortStableFunc(s.Steps, func(x, y *Step) int { return x.Started.Compare(y.Started) })
	}
	slices.SortStableFunc(b.roots, func(x, y *Turn) int { return x.Started.Compare(y.Started) })
	for _, t := range b.roots {
		t.Root.extend()
		t.Prompt, t.Steps = t.Root.Input, t.Root.Steps
		if err := b.turn(t); err != nil {
			return err
		}
	}
	return nil
}

// extend has steps without an end of their own, and delegations in the background, last as long as the work below
// them, as package blame does.
func (s *Step) extend() {
	for _, c := range s.Steps {
		c.extend()
		if aside := c.Kind == "delegation" && c.span.Async; !aside && (s.span.Open || s.Kind == "delegation" && s.span.Async) {
			s.Duration = max(s.Duration, c.Started.Add(c.Duration).Sub(s.Started))
		}
	}
}

// rest passes on the turns without spans, and the messages that belong to no turn.
func (b *builder) rest(ctx context.Context) error {
	b.steps = nil
	for {
		w, err := b.messages.peek(ctx)
		if err != nil {
			return err
		}
		if w == nil {
			break
		}
		b.messages.take()
		b.addMessage(w)
	}
	for _, t := range b.begun {
		if err := b.turn(t); err != nil {
			return err
		}
	}
	if len(b.loose) == 0 {
		return nil
	}
	slices.SortStableFunc(b.loose, func(x, y *Step) int { return x.Started.Compare(y.Started) })
	return b.turn(&Turn{Started: b.loose[0].Started, Steps: b.loose})
}

// addMessage puts a message into its step.
func (b *builder) addMessage(w *messageRow) {
	s := b.steps[w.span]
	if s == nil {
		if w.hidden || w.content == "" {
			return
		}
		run := b.runOf(w)
		if run == nil && w.at.trace != "" {
			b.addBegun(w)
			return
		}
		if run == nil {
			b.loose = append(b.loose, w.step())
			return
		}
		run.Steps = append(run.Steps, w.step())
		if t := b.byID[run.SpanID]; t != nil && w.kind == "assistant" {
			t.Answer = w.content
		}
		return
	}
	if by := s.seen[w.id]; len(by) > 0 {
		s.Seen = append(s.Seen, SeenText{w.kind, by})
	}
	s.Tokens.add(w.tokens)
	s.Files = append(s.Files, w.files...)
	switch w.kind {
	case "user":
		if !w.hidden {
			b.join(&s.Input, w.content)
		}
	case "assistant":
		b.join(&s.Output, w.content)
		if t := b.turnOf(s); t != nil && s.parent == t.Root.SpanID && w.content != "" {
			t.Answer = w.content
		}
	case "reasoning":
		b.join(&s.Thoughts, w.content)
	case "tool_call":
		s.Input = w.arguments
	case "delegation":
		if s.Input = w.task; w.task == "" {
			s.Input = w.arguments
		}
	case "tool_result", "delegation_result":
		b.join(&s.Output, w.content)
	case "error", "plan", "file", "system":
		if !w.hidden {
			s.Steps = append(s.Steps, w.step())
		}
	case "status", "stop", "usage", "task", "unknown":
	}
	if s.Name == "" {
		s.Name = w.agent
	}
}

// addBegun puts a message into the turn of a trace of which no span is stored yet.
func (b *builder) addBegun(w *messageRow) {
	if n := len(b.begun); n == 0 || b.begun[n-1].TraceID != w.at.trace {
		b.begun = append(b.begun, &Turn{TraceID: w.at.trace, Agent: w.agent, Started: w.ts})
	}
	t := b.begun[len(b.begun)-1]
	switch w.kind {
	case "user":
		b.join(&t.Prompt, w.content)
	case "assistant":
		t.Answer = w.content
	default:
		t.Steps = append(t.Steps, w.step())
	}
}

// runOf returns the run that a message belongs to whose span is not stored yet, as that of a model
// that still answers: the last one of its agent that runs, else the root of the last turn.
func (b *builder) runOf(w *messageRow) *Step {
	if w.at != b.at || len(b.roots) == 0 {
		return nil
	}
	for _, s := range slices.Backward(b.order) {
		if s.Kind == "run" && s.Status == "running" && s.agent == w.agent {
			return s
		}
	}
	return b.roots[len(b.roots)-1].Root
}

// turnOf returns the turn whose root is the step's parent.
func (b *builder) turnOf(s *Step) *Turn { return b.byID[s.parent] }

func (b *builder) join(to *string, text string) {
	switch {
	case text == "":
	case *to == "":
		*to = text
	case len(*to) < b.texts:
		*to += "\n" + text
	}
}
