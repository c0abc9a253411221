package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Conversation is a session in turns.
type Conversation struct {
	Session Session `json:"session"`
	Turns   []Turn  `json:"turns"`
}

// Turn is what a user asked, what happened behind the scenes, and what came out.
type Turn struct {
	TraceID string    `json:"trace_id"`
	Agent   string    `json:"agent,omitempty"`
	Started time.Time `json:"started"`
	Prompt  string    `json:"prompt,omitempty"`
	Steps   []*Step   `json:"steps"`
	Answer  string    `json:"answer,omitempty"`
	Root    *Step     `json:"-"`
}

// Step is a span, with what was said in it, and the steps below it.
type Step struct {
	SpanID   string        `json:"span_id"`
	Kind     string        `json:"kind"` // run, chat, tool, delegation, workflow, message
	Name     string        `json:"name"`
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration_ns"`
	Status   string        `json:"status,omitempty"` // error, cancelled, running; empty when all is well
	Error    string        `json:"error,omitempty"`
	Model    string        `json:"model,omitempty"`
	To       string        `json:"to,omitempty"`   // of a delegation
	Link     string        `json:"link,omitempty"` // how its child was found
	Tokens   Tokens        `json:"tokens,omitzero"`
	Input    string        `json:"input,omitempty"`  // a tool's arguments, a delegation's task, a run's prompt
	Output   string        `json:"output,omitempty"` // a tool's result, what a model said
	Thoughts string        `json:"thoughts,omitempty"`
	Steps    []*Step       `json:"steps,omitempty"`

	parent string
}

// Tokens are exclusive classes.
type Tokens struct {
	Input      uint64 `json:"input"`
	Output     uint64 `json:"output"`
	CacheRead  uint64 `json:"cache_read"`
	CacheWrite uint64 `json:"cache_write"`
	Reasoning  uint64 `json:"reasoning"`
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
}

// How much of each text is read: what anybody reads of it, and what fits into the
// line that a terminal shows of it.
const (
	LongTexts  = 4000
	ShortTexts = 240
)

// ErrNoSession is wrapped by Load's error for a session that is not there.
var ErrNoSession = errors.New("there is none")

// Load reads a session, of each text at most that many characters. id may be the
// beginning of one if no other begins so.
func Load(ctx context.Context, q Querier, id string, texts int) (*Conversation, error) {
	id, err := resolve(ctx, q, id)
	if err != nil {
		return nil, err
	}
	b := builder{steps: make(map[string]*Step), texts: texts}
	if err := b.spans(ctx, q, id); err != nil {
		return nil, fmt.Errorf("session %s: spans: %w", id, err)
	}
	if err := b.open(ctx, q, id); err != nil {
		return nil, fmt.Errorf("session %s: open spans: %w", id, err)
	}
	if err := b.messages(ctx, q, id); err != nil {
		return nil, fmt.Errorf("session %s: messages: %w", id, err)
	}
	c := &Conversation{Turns: b.turns()}
	list, err := Sessions(ctx, q, Filter{Search: id, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(list) > 0 {
		c.Session = list[0]
	}
	return c, nil
}

// resolve completes the id of a session.
func resolve(ctx context.Context, q Querier, id string) (string, error) {
	var found []string
	err := q.Each(ctx, `SELECT DISTINCT session_id FROM messages WHERE startsWith(session_id, {id:String}) ORDER BY session_id != {id:String}, session_id LIMIT 6`,
		map[string]string{"id": id}, func(v []any) error {
			r := reader{values: v}
			found = append(found, r.str())
			return r.err
		})
	switch {
	case err != nil:
		return "", fmt.Errorf("session %s: %w", id, err)
	case len(found) == 0:
		return "", fmt.Errorf("session %s: %w; `earshot sessions` lists them", id, ErrNoSession)
	case found[0] == id || len(found) == 1:
		return found[0], nil
	}
	return "", fmt.Errorf("session %s: several begin so: %s", id, strings.Join(found, " "))
}

// builder puts spans and messages together.
type builder struct {
	steps map[string]*Step // by span id
	roots []*Turn
	order []*Step
	loose []*Step // messages without a span
	byID  map[string]*Turn
	texts int
}

func (b *builder) spans(ctx context.Context, q Querier, id string) error {
	b.byID = make(map[string]*Turn)
	return q.Each(ctx, `
		SELECT TraceId, SpanId, ParentSpanId, SpanAttributes['gen_ai.operation.name'] AS op, SpanAttributes['earshot.delegate.to'] AS to,
			AgentName, ToolName, Timestamp, toInt64(Duration), StatusCode, SpanAttributes['error.type'] AS error, StatusMessage,
			SpanAttributes['earshot.link.method'] AS link,
			if(SpanAttributes['gen_ai.response.model'] != '', SpanAttributes['gen_ai.response.model'], SpanAttributes['gen_ai.request.model']) AS model,
			SpanAttributes['earshot.tool.delegation'] AS delegation
		FROM otel_traces FINAL
		WHERE SessionId = {id:String}
		ORDER BY Timestamp, SpanId`, map[string]string{"id": id},
		func(v []any) error {
			r := reader{values: v}
			trace, span, parent, op, to := r.str(), r.str(), r.str(), r.str(), r.str()
			agent, tool := r.str(), r.str()
			s := &Step{SpanID: span, Started: r.time(), Duration: time.Duration(r.signed()), parent: parent}
			status, errType, message := r.str(), r.str(), r.str()
			s.Link, s.Model = r.str(), r.str()
			delegation := r.str()
			if r.err != nil {
				return r.err
			}
			if status == "Error" {
				s.Status = "error"
			}
			if s.Error = errType; errType == "" {
				s.Error = message
			}
			switch {
			case op == "execute_tool" && (to != "" || delegation != ""):
				s.Kind, s.Name, s.To = "delegation", tool, to
			case op == "execute_tool":
				s.Kind, s.Name = "tool", tool
			case op == "invoke_agent":
				s.Kind, s.Name = "run", agent
			case op == "invoke_workflow":
				s.Kind, s.Name = "workflow", agent
			default:
				s.Kind, s.Name = "chat", s.Model
			}
			b.add(s, trace, agent)
			return nil
		})
}

func (b *builder) add(s *Step, trace, agent string) {
	b.steps[s.SpanID] = s
	b.order = append(b.order, s)
	if s.parent == "" {
		t := &Turn{TraceID: trace, Agent: agent, Started: s.Started, Root: s}
		b.roots = append(b.roots, t)
		b.byID[s.SpanID] = t
	}
}

// open adds what still runs, which lasts until now.
func (b *builder) open(ctx context.Context, q Querier, id string) error {
	return q.Each(ctx, `
		SELECT trace_id, toString(span_id), parent_span_id, toString(kind), toString(agent_name), toString(tool_name), toString(delegate_to), ts, toInt64(age_ms)
		FROM open_spans FINAL
		WHERE session_id = {id:String}
		ORDER BY ts, span_id`, map[string]string{"id": id},
		func(v []any) error {
			r := reader{values: v}
			trace, span, parent, kind, agent, tool, to := r.str(), r.str(), r.str(), r.str(), r.str(), r.str(), r.str()
			s := &Step{SpanID: span, Kind: kind, To: to, Status: "running", Started: r.time(), parent: parent}
			s.Duration = max(0, time.Duration(r.signed())*time.Millisecond)
			if r.err != nil || b.steps[span] != nil { // it ended while this was read
				return r.err
			}
			switch kind {
			case "tool", "delegation":
				s.Name = tool
			case "run", "workflow":
				s.Name = agent
			}
			b.add(s, trace, agent)
			return nil
		})
}

func (b *builder) messages(ctx context.Context, q Querier, id string) error {
	return q.Each(ctx, `
		SELECT span_id, kind, substringUTF8(content, 1, {limit:UInt32}), substringUTF8(tool_arguments, 1, {limit:UInt32}), substringUTF8(delegate_task, 1, {limit:UInt32}),
			ts, agent_name, hidden, is_error, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens
		FROM messages FINAL
		WHERE session_id = {id:String}
		ORDER BY ts, seq`, map[string]string{"id": id, "limit": fmt.Sprint(b.texts)},
		func(v []any) error {
			r := reader{values: v}
			span, kind, content, arguments, task := r.str(), r.str(), r.str(), r.str(), r.str()
			ts, agent, hidden, bad := r.time(), r.str(), r.flag(), r.flag()
			tokens := Tokens{r.num(), r.num(), r.num(), r.num(), r.num()}
			if r.err != nil {
				return r.err
			}
			s := b.steps[span]
			if s == nil {
				if !hidden && content != "" {
					s := &Step{Kind: "message", Name: kind, Started: ts, Output: content}
					if bad {
						s.Status = "error"
					}
					b.loose = append(b.loose, s)
				}
				return nil
			}
			s.Tokens.add(tokens)
			switch kind {
			case "user":
				if !hidden {
					b.join(&s.Input, content)
				}
			case "assistant":
				b.join(&s.Output, content)
				if t := b.turnOf(s); t != nil && s.parent == t.Root.SpanID && content != "" {
					t.Answer = content
				}
			case "reasoning":
				b.join(&s.Thoughts, content)
			case "tool_call":
				s.Input = arguments
			case "delegation":
				if s.Input = task; task == "" {
					s.Input = arguments
				}
			case "tool_result", "delegation_result":
				b.join(&s.Output, content)
			case "error", "plan", "file", "system":
				if !hidden {
					s.Steps = append(s.Steps, &Step{Kind: "message", Name: kind, Started: ts, Output: content, Status: map[bool]string{true: "error"}[bad]})
				}
			case "status", "stop", "usage", "task", "unknown":
			}
			if s.Name == "" {
				s.Name = agent
			}
			return nil
		})
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

// turns hangs every step below its parent.
func (b *builder) turns() []Turn {
	for _, s := range b.order {
		if p := b.steps[s.parent]; p != nil && s.parent != "" {
			p.Steps = append(p.Steps, s)
		}
	}
	for _, s := range b.order {
		slices.SortStableFunc(s.Steps, func(x, y *Step) int { return x.Started.Compare(y.Started) })
	}
	slices.SortStableFunc(b.roots, func(x, y *Turn) int { return x.Started.Compare(y.Started) })
	out := make([]Turn, 0, len(b.roots)+1)
	for _, t := range b.roots {
		t.Prompt, t.Steps = t.Root.Input, t.Root.Steps
		out = append(out, *t)
	}
	if len(b.loose) > 0 {
		out = append(out, Turn{Started: b.loose[0].Started, Steps: b.loose})
		slices.SortStableFunc(out, func(x, y Turn) int { return x.Started.Compare(y.Started) })
	}
	return out
}
