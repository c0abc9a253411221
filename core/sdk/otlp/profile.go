package otlp

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// Profile has the parts of one format: the names of its attributes, and rules.
type Profile struct {
	Name     string
	Revision uint32
	Summary  string
	Provider string // of a model whose span names none

	// Names are the attributes of each field, the one that counts first. Of two with values the other
	// is kept as an attribute, as are those that no field names.
	Names map[Field][]string
	// Indexed are the prefixes of messages that are flattened into names (llm.input_messages.).
	Indexed map[string]Field

	// Beside is set if the input does not have the cached tokens in it, Outside if the output does not
	// have those of the reasoning.
	Beside, Outside bool
	// Direct is set if log records are parts of the turns of their session, also those with the ids of a span.
	Direct bool
	// Rootless is set if a root may be no agent's: it is then of the turn of its session.
	Rootless bool
	// OneSource is set if a response has no id that spans and logs share: of a session the
	// responses of the kind that arrives first count.
	OneSource bool

	// Ours is set if a span that names its run is one of this sidecar's: it has what is on no span below it, its own
	// tokens, and its child run if that is one.
	Ours bool

	// Rules completes a span whose attributes were read, its Kind above all.
	Rules func(s *Span)
	// Event completes a log record, or an event of a span; name is that of the event. In the second case it
	// may return false, and the event is kept as an attribute of the span.
	Event func(s *Span, name string, body Value) bool
	// LeavesOut are the fields that are left out: testdata/leaves-out.json.
	LeavesOut []byte
}

// Field is the meaning of an attribute.
type Field uint8

// The fields. Input and Output are messages.
const (
	Session Field = iota
	Run
	Operation
	AgentID
	AgentName
	ParentAgent
	ModelField
	AskedModel
	Provider
	ResponseID
	Finish
	InputTokens
	OutputTokens
	CacheRead
	CacheWrite
	ReasoningTokens
	TotalTokens
	CacheWrite1h
	TierField
	StatedCost // US dollars times 10^12
	CallID
	ToolName
	ToolServer
	Arguments
	Result
	Delegate
	Task
	ChildRun
	StatedKind
	StatedModel
	ErrorType
	ErrorMessage
	System
	Tools
	Input
	Output
	// Request and Reply are the input and the output of any span, as frameworks have them: messages again, or the
	// texts of an agent or a tool.
	Request
	Reply
	Thoughts   // of a response, apart from its messages
	FirstChunk // ms after the start
	FirstSecs  // s after the start
	Duration   // ms
	Timestamp
	EventName
	fields
)

// table finds a field and its rank by the name of an attribute.
type table map[string]struct {
	field Field
	rank  int
}

func (p *Profile) table() table {
	t := make(table)
	for f, names := range p.Names {
		for rank, name := range names {
			t[name] = struct {
				field Field
				rank  int
			}{f, rank}
		}
	}
	return t
}

// Factory makes decoders of the format.
func (p *Profile) Factory() decoder.Factory {
	t := p.table()
	return record.Format[state]{
		Info: decoder.Info{
			Name: p.Name, Revision: p.Revision, Summary: p.Summary,
			Transports: []frame.Kind{frame.Line, frame.Body, frame.Request, frame.Event, frame.Text},
		},
		LeavesOut: p.LeavesOut,
		State:     1,
		Takes:     func(_ *frame.Frame, root jsonv.Value) bool { return root.Is(jsonv.Array) },
		Open: func(r *record.Current, s *state) record.Reader {
			return &stream{Current: r, state: s, profile: p, table: t}
		},
	}.Factory()
}

// reader reads the attributes of one span or record.
type reader struct {
	profile *Profile
	table   table
	won     [fields]struct {
		rank int // from 1
		name string
		v    Value
	}
	in, out indexed
	first   float64
	at      int64 // by the attributes
	event   string
	finish  string // by the messages of a response
	thought string
}

// read reads attributes into s: a list of key and value, or an object.
func (r *reader) read(s *Span, v jsonv.Value) {
	for kv := range v.Elems() {
		key := kv.Get("key")
		if !key.Is(jsonv.String) {
			continue
		}
		r.one(s, key.Str(), valueOf(kv.Get("value"), false))
	}
	for key, value := range v.Members() {
		r.one(s, key.String(), valueOf(value, true))
	}
}

func (r *reader) one(s *Span, name string, v Value) {
	if !v.Exists() {
		return
	}
	if e, ok := r.table[name]; ok {
		won := &r.won[e.field]
		if won.rank == 0 || e.rank < won.rank-1 {
			if r.set(s, e.field, v) {
				if won.rank > 0 && !bytes.Equal(won.v.leaf.Peek(), v.leaf.Peek()) {
					r.keep(s, won.name, won.v)
				}
				won.rank, won.name, won.v = e.rank+1, name, v
				return
			}
		} else if bytes.Equal(won.v.leaf.Peek(), v.leaf.Peek()) {
			v.leaf.MarkRead()
			return
		}
	}
	for prefix, field := range r.profile.Indexed {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			x := &r.in
			if field == Output {
				x = &r.out
			}
			if x.add(rest, v) {
				return
			}
		}
	}
	r.keep(s, name, v)
}

// keep makes an attribute that no field names one of the message.
func (r *reader) keep(s *Span, name string, v Value) {
	text, ok := v.attr()
	if !ok || len(s.Attrs) >= maxParts {
		return // it stays unread, and is kept whole
	}
	if p := params[name]; p != "" {
		s.Params = append(s.Params, msg.Attr{Key: p, Value: text})
		return
	}
	s.Attr(name, text)
}

// text is where a field that is an id or a name is kept; nil for any other.
func (s *Span) text(r *reader, f Field) *string {
	switch f {
	case Session:
		return &s.Session
	case Run:
		return &s.Run
	case Operation:
		return &s.Op
	case AgentID:
		return &s.AgentID
	case AgentName:
		return &s.Agent
	case ParentAgent:
		return &s.Above
	case ModelField:
		return &s.Model
	case AskedModel:
		return &s.Asked
	case Provider:
		return &s.Provider
	case ResponseID:
		return &s.Response
	case CallID:
		return &s.Call
	case ToolName:
		return &s.Tool
	case ToolServer:
		return &s.Server
	case Delegate:
		return &s.To
	case ChildRun:
		return &s.Child
	case StatedKind:
		return &s.Stated
	case StatedModel:
		return &s.stated
	case TierField:
		return &s.Tier
	case ErrorType:
		return &s.ErrorType
	case EventName:
		return &r.event
	}
	return nil
}

// number is where a count of tokens is kept; nil for any other field.
func (s *Span) number(f Field) *float64 {
	switch f {
	case InputTokens:
		return &s.counts.in
	case OutputTokens:
		return &s.counts.out
	case CacheRead:
		return &s.counts.read
	case CacheWrite:
		return &s.counts.write
	case ReasoningTokens:
		return &s.counts.reasoning
	case TotalTokens:
		return &s.counts.total
	case CacheWrite1h:
		return &s.counts.write1h
	case StatedCost:
		return &s.counts.cost
	}
	return nil
}

// set sets a field; false if the value is none for it.
func (r *reader) set(s *Span, f Field, v Value) (ok bool) {
	text, number := s.text(r, f), s.number(f)
	switch {
	case text != nil:
		var id string
		if id, ok = v.ID(); ok {
			*text = id
		}
		return ok
	case number != nil:
		var n float64
		if n, ok = v.Number(); ok {
			*number = n
			s.Counted = s.Counted || f == InputTokens || f == OutputTokens || f == StatedCost
		}
		return ok
	}
	switch f {
	case Finish:
		s.Finish, ok = v.First()
		return ok || s.Finish != ""
	case Arguments:
		s.Args = v.Text()
	case Result:
		s.Result = v.Text()
	case Task:
		s.Task = v.Text()
	case ErrorMessage:
		s.Message = v.Text()
	case System:
		list, _, left := parts(v, msg.RoleSystem)
		s.System = ""
		s.Attr("gen_ai.system_instructions", left)
		for _, p := range list {
			s.System = strings.TrimPrefix(s.System+"\n"+p.Text, "\n")
		}
	case Tools:
		s.Tools = v.Text()
	case Input:
		var left string
		s.In, _, left = parts(v, msg.RoleUser)
		s.Attr("gen_ai.input.messages", left)
	case Output:
		var left string
		s.Out, r.finish, left = parts(v, msg.RoleAssistant)
		s.Attr("gen_ai.output.messages", left)
	case Thoughts:
		r.thought = v.Text()
	case Request, Reply: // see framework
	case FirstChunk, FirstSecs:
		var n float64
		if n, ok = v.Number(); !ok {
			return false
		}
		if r.first = n * 1e6; f == FirstSecs {
			r.first = n * 1e9
		}
	case Duration:
		var n float64
		if n, ok = v.Number(); !ok {
			return false
		}
		s.took = n * 1e6
	case Timestamp:
		if r.at = timeOf(v.leaf); r.at == 0 {
			return false
		}
		v.leaf.MarkRead()
	}
	return true
}

// done completes the fields that depend on others.
func (r *reader) done(s *Span) {
	s.In, s.Out = append(s.In, r.in.parts(msg.RoleUser)...), append(s.Out, r.out.parts(msg.RoleAssistant)...)
	s.In, s.request = r.framework(s, s.In, Request, msg.RoleUser)
	s.Out, s.reply = r.framework(s, s.Out, Reply, msg.RoleAssistant)
	if r.thought != "" && !slices.ContainsFunc(s.Out, func(p Part) bool { return p.Kind == msg.Reasoning }) {
		s.Out = append([]Part{{Kind: msg.Reasoning, Text: r.thought}}, s.Out...)
	}
	s.Finish = cmp.Or(s.Finish, r.finish, r.out.finish())
	if r.first > 0 && s.Start > 0 {
		s.First = s.Start + int64(r.first)
	}
	if s.Counted {
		s.count(!r.profile.Beside, r.profile.Outside)
	}
	if s.Stated != "" {
		s.Model = s.stated
	}
}

// framework reads the input or the output as the framework has it: the messages, if nothing else had them; else it is an
// attribute, unless it repeats them.
func (r *reader) framework(s *Span, list []Part, f Field, role msg.Role) (all []Part, raw string) {
	v, name := r.won[f].v, r.won[f].name
	if !v.Exists() {
		return list, ""
	}
	more, _, left := parts(v, role)
	s.Attr(name, left)
	if len(list) == 0 {
		return more, v.Text()
	}
	for _, p := range more {
		if !slices.Contains(list, p) {
			r.keep(s, name, v)
			break
		}
	}
	return list, ""
}

// Texts moves the texts that a framework has for a tool to its arguments and its result.
func (s *Span) Texts() {
	if s.Args == "" && s.request != "" {
		s.Args, s.In = s.request, nil
	}
	if s.Result == "" && s.reply != "" {
		s.Result, s.Out = s.reply, nil
	}
}

// Take removes an attribute that no field names, and returns its value.
func (s *Span) Take(name string) string {
	for i, a := range s.Attrs {
		if a.Key == name {
			s.Attrs = append(s.Attrs[:i:i], s.Attrs[i+1:]...)
			return a.Value
		}
	}
	return ""
}

// Has returns the value of an attribute that no field names.
func (s *Span) Has(name string) string {
	for _, a := range s.Attrs {
		if a.Key == name {
			return a.Value
		}
	}
	return ""
}
