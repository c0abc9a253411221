package otlp

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Kind is the kind of a span.
type Kind uint8

// The kinds. Other is a foreign span; a Step is ours and has no part in the tree but its
// children; a Prompt is a log record that begins a turn, a Note one that is kept as a status.
const (
	Other Kind = iota
	Step
	Agent
	Chat
	Tool
	Prompt
	Note
)

// Span is a span, or a log record, in normalized form. Its JSON is in snapshots.
type Span struct {
	Trace  string `json:",omitempty"`
	ID     string `json:",omitempty"`
	Parent string `json:",omitempty"`
	Name   string `json:",omitempty"`
	Start  int64  `json:",omitempty"` // Unix ns
	End    int64  `json:",omitempty"`
	Kind   Kind   `json:",omitempty"`
	Stub   bool   `json:",omitempty"` // log records of it have come, and it has not

	Session string `json:",omitempty"`
	// Run is the turn of a log record, or of a span that names it; empty: that of the tree.
	Run     string `json:",omitempty"`
	AgentID string `json:",omitempty"`
	Agent   string `json:",omitempty"` // its name
	// Above and Below name, on a span that belongs to a sub-agent, the agents by the format's ids.
	Above string `json:",omitempty"`

	Op       string              `json:",omitempty"`
	Model    string              `json:",omitempty"` // that answered
	Asked    string              `json:",omitempty"`
	Provider string              `json:",omitempty"`
	Response string              `json:",omitempty"`
	Finish   string              `json:",omitempty"`
	First    int64               `json:",omitempty"` // time of the first token
	Counts   conversation.Counts `json:",omitzero"`
	Tier     string              `json:",omitempty"` // as msg.Tokens has it
	Cost     uint64              `json:",omitempty"` // that the sender states, as msg.Tokens.Stated
	Counted  bool                `json:",omitempty"`

	Call   string `json:",omitempty"`
	Tool   string `json:",omitempty"`
	Server string `json:",omitempty"`
	Args   string `json:",omitempty"`
	Result string `json:",omitempty"`
	To     string `json:",omitempty"` // of a call that hands work over
	Task   string `json:",omitempty"`
	Child  string `json:",omitempty"` // run that the call caused

	// Stated is the kind that another sidecar states, as msg.SpanKind writes it: nothing has to be inferred
	// then, as whether a call hands work over, and Model is the one of its span.
	Stated string `json:",omitempty"`

	System string `json:",omitempty"`
	Tools  string `json:",omitempty"` // definitions, JSON
	In     []Part `json:",omitempty"`
	Out    []Part `json:",omitempty"`

	Signal msg.Signal `json:",omitempty"` // of a step or a note
	Waits  bool       `json:",omitempty"` // the call above it waits for a person meanwhile
	Lift   bool       `json:",omitempty"` // its failure is that of the call above it

	Failed    bool   `json:",omitempty"`
	ErrorType string `json:",omitempty"`
	Message   string `json:",omitempty"`

	Params []msg.Attr `json:",omitempty"`
	Attrs  []msg.Attr `json:",omitempty"`

	// Serves is set on a span of a server that another span called.
	Serves bool `json:"-"`
	// MCP is set on a span of MCP: the call that its client makes may have a span of the framework above it.
	MCP bool `json:",omitempty"`

	counts         counts
	request, reply string  // as a framework has them
	stated         string  // model
	meets          string  // of a call: the name that it shares with a run in another session
	took           float64 // ns
}

// Part is a text, a thought, a call or a result in the messages of a request or a response.
type Part struct {
	Kind msg.Kind
	Text string `json:",omitempty"` // of a call: its arguments
	Call string `json:",omitempty"`
	Tool string `json:",omitempty"`
	// Failed is set on the result of a call that failed, where the message has that.
	Failed bool `json:",omitempty"`
	// Media and URI are of a file in a prompt.
	Media string `json:",omitempty"`
	URI   string `json:",omitempty"`
}

// counts are the tokens as the attributes have them, before the rules of the format.
type counts struct{ in, out, read, write, write1h, reasoning, total, cost float64 }

// key is the span's name in a session.
func (s *Span) key() string {
	if s.Trace == "" {
		return s.ID
	}
	return s.Trace + "/" + s.ID
}

// scope makes the ids of calls unique in the session, where each trace counts from call_0.
func (s *Span) scope() {
	if s.Trace == "" {
		return
	}
	unique := func(id string) string {
		if ident.Counts(id) && counted(s.Trace, id) == "" {
			return s.Trace + ofTrace + id
		}
		return id
	}
	s.Call = unique(s.Call)
	for _, list := range [...]*[]Part{&s.In, &s.Out} {
		copied := false
		for i := range *list {
			if id := unique((*list)[i].Call); id != (*list)[i].Call {
				if !copied { // a provisional copy of the span shares it
					*list, copied = slices.Clone(*list), true
				}
				(*list)[i].Call = id
			}
		}
	}
}

// ofTrace is between a trace and the id of a call that is unique in it alone.
const ofTrace = "/call/"

// counted is the protocol's id of a call that scope has made unique; else it is empty.
func counted(trace, call string) string {
	rest, cut := strings.CutPrefix(call, trace)
	if !cut || trace == "" {
		return ""
	}
	if id, cut := strings.CutPrefix(rest, ofTrace); cut {
		return id
	}
	return ""
}

// answered is the model that answered, as far as the span distinguishes it from the one that was asked for.
func (s *Span) answered() string {
	if s.Stated != "" {
		return s.Model
	}
	return cmp.Or(s.Model, s.Asked)
}

// asked is the model that was asked for, likewise.
func (s *Span) asked() string {
	if s.Stated != "" {
		return s.Asked
	}
	return cmp.Or(s.Asked, s.Model)
}

// delegates reports whether a call hands work over.
func (s *Span) delegates() bool {
	if s.Stated != "" {
		return s.Stated == msg.SpanDelegation.String()
	}
	return s.To+s.Child != ""
}

// Attr adds an attribute to the message of the span.
func (s *Span) Attr(key, value string) {
	if value != "" {
		s.Attrs = append(s.Attrs, msg.Attr{Key: key, Value: value})
	}
}

// count computes the exclusive classes. Inclusive counts have the cached tokens in the input, and the
// conventions have it so; tokens that do not fit into it are beside it. outside: the reasoning is not part of
// the output, as that which does not fit into it, or which the total has beside it. Gemini's thoughts are never part of it where the total
// is Google's own, which may be all that is known of them.
func (s *Span) count(inclusive, outside bool) {
	c := &s.counts
	cached := c.read + c.write
	rest := c.total - c.in - c.out
	if gemini := strings.Contains(strings.ToLower(cmp.Or(s.Model, s.Asked)), "gemini"); gemini && rest > 0 {
		outside = true
		if c.reasoning == 0 {
			c.reasoning = rest
		}
		c.in += max(rest-c.reasoning, 0) // that which the provider's own tools have read
	} else if rest > 0 && cached > 0 {
		inclusive = inclusive && rest != cached
	}
	beside := 0.0
	if inclusive && c.in >= cached {
		c.in -= cached
	} else {
		beside = cached
	}
	if outside || c.reasoning > c.out || c.reasoning > 0 && rest == c.reasoning+beside {
		c.out += c.reasoning
	}
	s.Counts = conversation.Counts{Input: uint64(c.in), Output: uint64(c.out), CacheRead: uint64(c.read), CacheWrite: uint64(c.write), Reasoning: uint64(c.reasoning), CacheWrite1h: uint64(c.write1h)}
	s.Cost = cmp.Or(s.Cost, uint64(c.cost))
}

// merge adds the fields of another record of the same span.
func (s *Span) merge(o *Span) {
	for _, f := range [...]struct {
		name     string
		to, from *string
	}{
		{"session", &s.Session, &o.Session}, {"run", &s.Run, &o.Run}, {"agent_id", &s.AgentID, &o.AgentID}, {"agent", &s.Agent, &o.Agent}, {"operation", &s.Op, &o.Op},
		{"model", &s.Model, &o.Model}, {"request_model", &s.Asked, &o.Asked}, {"provider", &s.Provider, &o.Provider}, {"response", &s.Response, &o.Response},
		{"finish_reason", &s.Finish, &o.Finish}, {"call", &s.Call, &o.Call}, {"tool", &s.Tool, &o.Tool}, {"server", &s.Server, &o.Server}, {"arguments", &s.Args, &o.Args},
		{"result", &s.Result, &o.Result}, {"instructions", &s.System, &o.System}, {"tools", &s.Tools, &o.Tools}, {"error", &s.ErrorType, &o.ErrorType}, {"message", &s.Message, &o.Message},
		{"", &s.Name, &o.Name}, {"", &s.Parent, &o.Parent},
	} {
		switch {
		case *f.to == "":
			*f.to = *f.from
		case f.name != "" && *f.from != *f.to:
			s.Attr("event/"+f.name, *f.from)
		}
	}
	if s.Stub && !o.Stub {
		s.Start, s.End, s.Stub, s.Name, s.Parent = o.Start, o.End, false, o.Name, o.Parent
	}
	if s.Kind <= Step && o.Kind > s.Kind {
		s.Kind = o.Kind
	}
	if o.Counted && !s.Counted {
		s.Counts, s.Counted = o.Counts, true
	}
	s.Tier, s.Cost = cmp.Or(s.Tier, o.Tier), cmp.Or(s.Cost, o.Cost)
	s.In, s.Out = addParts(s.In, o.In), addParts(s.Out, o.Out)
	s.First, s.Failed = max(s.First, o.First), s.Failed || o.Failed
	s.Params = addAttrs(s.Params, o.Params)
	s.Attrs = addAttrs(s.Attrs, o.Attrs)
}

// maxParts bounds the parts and the attributes of a span.
const maxParts = 1024

func addParts(list, more []Part) []Part {
	for _, p := range more {
		known := len(list) >= maxParts
		for _, q := range list {
			known = known || p == q
		}
		if !known {
			list = append(list, p)
		}
	}
	return list
}

func addAttrs(list, more []msg.Attr) []msg.Attr {
	for _, a := range more {
		known := len(list) >= maxParts
		for _, b := range list {
			known = known || a == b
		}
		if !known {
			list = append(list, a)
		}
	}
	return list
}

// Succeeded reads the attribute that states whether a call has succeeded.
func (s *Span) Succeeded(name string) {
	switch v := s.Take(name); v {
	case "true":
	case "false":
		s.Failed = true
	default:
		s.Attr(name, v)
	}
}

// Member is a member of a JSON object that is a string.
func Member(object, name string) string {
	var doc jsonv.Doc
	if doc.Parse([]byte(object)) != nil {
		return ""
	}
	return doc.Root().Get(name).Str()
}

// AddInput adds the tokens of an attribute to the input.
func (s *Span) AddInput(name string) { s.Counts.Input += s.takeCount(name) }

// AddReasoning adds the tokens of an attribute to the reasoning, and to the output, which is without them.
func (s *Span) AddReasoning(name string) {
	n := s.takeCount(name)
	s.Counts.Output, s.Counts.Reasoning = s.Counts.Output+n, s.Counts.Reasoning+n
}

// takeCount is Take for a count.
func (s *Span) takeCount(name string) uint64 {
	text := s.Take(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		s.Attr(name, text)
	}
	return n
}
