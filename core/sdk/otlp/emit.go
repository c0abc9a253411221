package otlp

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
)

// maxSeen is the number of messages that are recognized when another record has them too.
const maxSeen = 8192

// emitter makes the messages of spans that are emitted together.
type emitter struct {
	*stream
	tree     *tree
	complete msg.Completeness
	queue    []msg.Message
	seen     map[string]bool   // of this emission
	from     map[string]string // session to its source
	stated   map[string]bool   // runs whose spans another sidecar sent
}

// release emits spans: as Partial, they stay held.
func (d *stream) release(t *trace, spans []*Span, out *decoder.Output, c msg.Completeness) {
	e := &emitter{stream: d, complete: c, tree: &tree{trace: t, nodes: make(map[string]*known, len(t.Known)+len(spans)), logged: make(map[string]string)}, seen: make(map[string]bool), from: make(map[string]string), stated: make(map[string]bool)}
	if d.profile.Rootless {
		e.tree.turn = d.turn
	}
	for _, k := range t.Known {
		copied := *k
		e.tree.nodes[k.ID] = &copied
	}
	order := slices.Clone(spans)
	for i, s := range order {
		if c == msg.Partial {
			copied := *s
			order[i] = &copied
		}
		if !d.profile.Direct && !d.profile.OneSource { // one agent's ids are its provider's, and those of its other records
			order[i].scope()
		}
	}
	below := depths(order)
	slices.SortStableFunc(order, func(a, b *Span) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(below[a], below[b]), cmp.Compare(b.End, a.End))
	})
	main := t.Main
	for _, s := range order {
		e.tree.add(s)
	}
	if d.profile.Direct {
		e.adoptTurns(order)
	}
	for _, s := range order { // the root first: a span without its parent is below it
		if k := e.tree.nodes[s.ID]; k.Parent == "" && !k.Stub && t.Main == "" {
			t.Main = e.tree.run(k, 0)
		}
	}
	for _, s := range order {
		e.tree.run(e.tree.nodes[s.ID], 0)
	}
	e.all(order)
	e.flush(out)
	if c == msg.Partial {
		t.Main = main
		return
	}
	for _, s := range order {
		k := e.tree.nodes[s.ID]
		i := slices.IndexFunc(t.Known, func(o *known) bool { return o.ID == k.ID })
		if i >= 0 {
			t.Known[i] = k
			continue
		}
		if t.Known = append(t.Known, k); len(t.Known) > maxKnown {
			t.Known = slices.Delete(t.Known, 0, 1)
		}
	}
}

// depths are the numbers of spans above each, of these: what begins with its parent comes after it.
func depths(spans []*Span) map[*Span]int {
	byID := make(map[string]*Span, len(spans))
	for _, s := range spans {
		byID[s.ID] = s
	}
	out := make(map[*Span]int, len(spans))
	for _, s := range spans {
		n := 0
		for at := byID[s.Parent]; at != nil && n < maxDepth; at = byID[at.Parent] {
			n++
		}
		out[s] = n
	}
	return out
}

// adoptTurns makes the run of an agent's span the turn in which log records had its responses and calls.
func (e *emitter) adoptTurns(spans []*Span) {
	for _, s := range spans {
		if s.AgentID != "" || s.Kind != Chat && s.Kind != Tool {
			continue
		}
		run := ""
		for _, t := range e.Logged {
			if t.Name == s.Call && s.Kind == Tool || t.Name == s.Response && s.Kind == Chat {
				run = t.Run
			}
		}
		if run != "" && e.tree.nodes[s.Parent] == nil {
			e.tree.logged[s.Parent] = run
		}
		for k, n := e.tree.nodes[s.Parent], 0; run != "" && k != nil && n < maxDepth; k, n = e.tree.nodes[k.Parent], n+1 {
			if k.Kind == Agent && k.Run == "" {
				k.Run = run
			}
		}
	}
}

// all queues the messages of the spans of a trace.
func (e *emitter) all(spans []*Span) {
	asked, spoken := make(map[string]bool), make(map[string]bool) // runs whose responses have the prompt, an answer
	prompted := make(map[string]bool)                             // runs whose first response was found
	used := make(map[string]bool)                                 // runs that have more than steps
	counts := make(map[string]bool)                               // spans with a response below them whose tokens are known
	sums := make(map[string]conversation.Counts)                  // of the responses of a run
	costs := make(map[string]uint64)                              // that these state
	tools := make(map[string]*Span)
	e.innermost(spans)
	e.outermost(spans)
	for _, s := range spans {
		k := e.tree.nodes[s.ID]
		e.one(s, e.tree.sessionOf(k), "span")
		switch s.Kind {
		case Tool:
			if s.Call == "" {
				s.Call = s.key()
			}
			k.Call = s.Call
			tools[s.Call] = s
		case Chat:
			for _, p := range s.In {
				asked[k.Run] = asked[k.Run] || p.Kind == msg.User
			}
			for _, p := range s.Out {
				spoken[k.Run] = spoken[k.Run] || p.Kind == msg.Assistant
			}
		}
		used[k.Run] = used[k.Run] || s.Kind == Agent || s.Kind == Chat || s.Kind == Tool || e.begun(place{k.Run, e.tree.sessionOf(k), ""})
		if s.Kind == Chat && s.Counted {
			sums[k.Run] = sums[k.Run].Add(s.Counts)
			costs[k.Run] += s.Cost
		}
		if at := e.tree.nodes[k.Parent]; at != nil && s.Kind == Chat && s.Asked+s.Model == "" && !e.ours(s) {
			s.Asked = at.Model // of its agent
		}
		if s.Counted {
			for at, n := e.tree.nodes[k.Parent], 0; at != nil && n < maxDepth; at, n = e.tree.nodes[at.Parent], n+1 {
				counts[at.ID] = counts[at.ID] || s.Run == "" || s.Run == at.Run // an agent that names its run counts its own tokens
			}
		}
	}
	for _, s := range spans {
		if s.Kind == Chat {
			e.calls(s, tools)
			results(s.In, tools)
		}
		if run := e.tree.nodes[s.ID].Run; s.Kind == Chat && !prompted[run] && !e.begun(place{run, e.tree.sessionOf(e.tree.nodes[s.ID]), ""}) {
			prompted[run] = true
			s.In = beginning(s.In)
		}
	}
	e.delegations(spans, tools)
	for _, s := range spans {
		if t := e.tree.nodes[s.Parent]; s.Lift && t != nil && tools[t.Call] != nil {
			of := tools[t.Call]
			of.Failed, of.ErrorType = of.Failed || s.Failed, cmp.Or(of.ErrorType, s.ErrorType)
		}
	}
	for _, s := range spans {
		k := e.tree.nodes[s.ID]
		begins := k.Parent == "" && k.Run == s.key() && used[k.Run] // the root is a server's request, whose run has no agent
		if s.Kind == Other && !e.tree.isOurs(k) && !begins {
			if e.complete == msg.Complete {
				e.Dropped++
			}
			continue
		}
		p := place{run: k.Run, session: e.tree.sessionOf(k), parent: s.Parent}
		if !used[k.Run] {
			p.run = ""
		} else {
			e.begin(s, k, p)
		}
		switch s.Kind {
		case Agent:
			e.stated[k.Run] = s.Stated != ""
			whole := e.ours(s) // it has its run's own texts and tokens, and those of its responses are in the sum
			if rest, ok := s.Counts.Sub(sums[k.Run]); whole && counts[s.ID] && ok && !e.begun(p) && rest != (conversation.Counts{}) {
				s.Counts, counts[s.ID] = rest, false
				s.Cost -= min(s.Cost, costs[k.Run])
			}
			e.agent(s, p, asked[k.Run] && !whole, spoken[k.Run] && !whole, counts[s.ID])
		case Chat:
			e.chat(s, p)
		case Tool:
			e.tool(s, p)
		default:
			e.step(s, p)
		}
		if s.Kind != Agent && k.Parent == "" && !s.Stub && p.run == s.key() {
			e.end(s, p)
		}
	}
}

// innermost makes a response a step of the one below it, where two instrumentations record it, as a framework's and that of the
// provider's client: the one of the client counts, with the texts that the other has. Between two responses of their own there is a call or an agent.
func (e *emitter) innermost(spans []*Span) {
	if e.profile.Direct || e.profile.OneSource {
		return
	}
	var byID map[string]*Span // made for the first of them
	for _, s := range spans {
		at := e.tree.nodes[s.ID]
		if s.Kind != Chat || !s.Counted || e.ours(s) {
			continue
		}
		for n := 0; n < maxDepth; n++ {
			if at = e.tree.nodes[at.Parent]; at == nil || at.Kind > Step {
				break
			}
		}
		if at == nil || at.Kind != Chat {
			continue
		}
		if byID == nil {
			byID = make(map[string]*Span, len(spans))
			for _, o := range spans {
				byID[o.ID] = o
			}
		}
		if outer := byID[at.ID]; outer == nil { // it is emitted
			s.Kind, s.Counted = Step, false
		} else if !e.ours(outer) {
			outer.Kind, outer.Counted, at.Kind = Step, false, Step
			outer.Attr("provider", outer.Provider)
			if s.Session = cmp.Or(s.Session, outer.Session); len(s.In)+len(s.Out) == 0 {
				s.In, s.Out, outer.In, outer.Out = outer.In, outer.Out, nil, nil
			}
		}
	}
}

// outermost makes a call of MCP a step of the one above it, where the framework records it too: the outer one counts, which the model has
// made, with all that the inner one alone has. Its failure is that of the last inner one, as a framework may return the error to the model as a
// text.
func (e *emitter) outermost(spans []*Span) {
	if e.profile.Direct || e.profile.OneSource {
		return
	}
	var last map[*Span]*Span // the inner one of each
	for _, s := range spans {
		at := e.tree.nodes[s.ID]
		if s.Kind != Tool || !s.MCP || e.ours(s) {
			continue
		}
		for n := 0; n < maxDepth; n++ {
			if at = e.tree.nodes[at.Parent]; at == nil || at.Kind > Step {
				break
			}
		}
		if at == nil || at.Kind != Tool || !sameTool(at.Tool, s.Tool) || at.Call != "" && s.Call != "" && at.Call != s.Call {
			continue
		}
		k := slices.IndexFunc(spans, func(o *Span) bool { return o.ID == at.ID })
		if k >= 0 && e.ours(spans[k]) {
			continue
		}
		if s.Kind, e.tree.nodes[s.ID].Kind = Step, Step; k < 0 { // it is emitted
			continue
		}
		outer := spans[k]
		outer.Call, outer.Server = cmp.Or(outer.Call, s.Call), cmp.Or(outer.Server, s.Server)
		at.Call = outer.Call
		for _, f := range [...]struct{ to, from *string }{{&outer.Args, &s.Args}, {&outer.Result, &s.Result}} {
			if *f.to == "" {
				*f.to, *f.from = *f.from, ""
			}
		}
		if last == nil {
			last = make(map[*Span]*Span)
		}
		last[outer] = s
	}
	for _, outer := range slices.Backward(spans) {
		if s := last[outer]; s != nil && s.Failed {
			outer.Failed, outer.ErrorType, outer.Message = true, cmp.Or(outer.ErrorType, s.ErrorType), cmp.Or(outer.Message, s.Message)
		}
	}
}

// sameTool reports whether the name of a tool is another one with its server before it: harbour_sound_depth, sound_depth.
func sameTool(outer, inner string) bool {
	server, is := strings.CutSuffix(outer, inner)
	return inner != "" && is && (server == "" || strings.ContainsAny(server[len(server)-1:], "_.:/-"))
}

// one makes a response or a call a step, and drops the tokens, if the other kind of record has those of the session.
func (e *emitter) one(s *Span, session, source string) {
	if !e.profile.OneSource || s.Kind != Chat && s.Kind != Tool && !s.Counted {
		return
	}
	from := e.from[session]
	if t := e.turn(session); t != nil {
		from = cmp.Or(t.From, from)
	}
	switch {
	case from == "":
		e.from[session] = source
		if e.complete == msg.Complete {
			e.turnOf(session).From = source
		}
	case from != source:
		if s.Counted = false; s.Kind != Agent {
			s.Kind = Step
		}
	}
}

// calls makes the calls in a response and the spans of the tools one.
func (e *emitter) calls(s *Span, tools map[string]*Span) {
	s.Out = slices.DeleteFunc(slices.Clone(s.Out), func(p Part) bool {
		if p.Kind != msg.ToolCall || p.Call == "" {
			return false
		}
		t := tools[p.Call]
		if t == nil {
			return false
		}
		t.Args, t.Tool = cmp.Or(t.Args, p.Text), cmp.Or(t.Tool, p.Tool)
		if t.Stated != "" && t.Model == "" { // the other sidecar does not know the response that made it
			return true
		}
		if t.Response == "" {
			t.Response, t.Model, t.Provider = cmp.Or(s.Response, s.key()), cmp.Or(t.Model, s.answered()), s.Provider
		}
		return true
	})
}

// results sets the result of calls whose spans have none: the next request has it.
func results(in []Part, tools map[string]*Span) {
	for _, p := range in {
		if t := tools[p.Call]; t != nil && p.Kind == msg.ToolResult && t.Stated == "" && t.Result == "" {
			t.Result = p.Text
			if p.Failed && !t.Failed {
				t.Failed, t.ErrorType = true, "tool_error"
			}
		}
	}
}

// delegations marks the calls below which an agent runs.
func (e *emitter) delegations(spans []*Span, tools map[string]*Span) {
	for _, s := range spans {
		k := e.tree.nodes[s.ID]
		if s.Kind != Agent && s.AgentID == "" {
			continue
		}
		if _, call := e.tree.cause(k); call != "" {
			if t := tools[call]; t != nil && e.tree.nodes[t.ID].Run != k.Run {
				t.meets = cmp.Or(t.meets, e.elsewhere(s, k))
				if e.ours(t) && t.To+t.Stated != "" { // it names its child run, unless there are several
					continue
				}
				t.To = cmp.Or(s.Agent, t.To, s.AgentID, "agent")
				t.Child = cmp.Or(t.Child, k.Run)
			}
		}
	}
}

// elsewhere is the name of the call in another session that caused the run of a span; empty: it is not known, or in the same one.
func (e *emitter) elsewhere(s *Span, k *known) string {
	at := e.tree.nodes[s.Parent]
	if s.Stated == "" || at == nil || at.Kind != Tool || e.tree.sessionOf(at) == e.tree.sessionOf(k) {
		return ""
	}
	return "span:" + s.Trace + "/" + at.ID
}

// ours reports whether another sidecar sent the span.
func (e *emitter) ours(s *Span) bool { return e.profile.Ours && s.Run != "" }

// place is where the messages of a span belong.
type place struct{ run, session, parent string }

// add queues a message, unless another record of the stream had it. A message that is less than complete yields to one
// that is.
func (e *emitter) add(p place, kind msg.Kind, key string, at int64, c msg.Completeness) *msg.Message {
	base := msg.HashKey(p.session, key)[:16]
	name := base
	if c < msg.Complete {
		name += "?"
	}
	if e.seen[name] || e.Seen.Has(name) || c < msg.Complete && (e.seen[base] || e.Seen.Has(base)) {
		return nil
	}
	if e.seen[base+"?"] { // the complete one replaces it
		e.queue = slices.DeleteFunc(e.queue, func(m msg.Message) bool { return m.Key == key && m.Session == p.session })
	}
	e.seen[name] = true
	m := msg.Message{Kind: kind, Key: key, Session: p.session, Run: p.run, Time: at, Complete: min(c, e.complete)}
	if m.Agent.Kind = msg.KindAgent; at != 0 {
		m.Precision = msg.Nanos
	}
	e.queue = append(e.queue, m)
	return &e.queue[len(e.queue)-1]
}

// flush emits the queue, in the order of the times: what ends with its run comes before the end of that. A run of
// another sidecar begins with its span, whose start is the run's, also where a clock was turned back in it.
func (e *emitter) flush(out *decoder.Output) {
	began := make(map[string]int64)
	for i := range e.queue {
		if m := &e.queue[i]; m.Signal == msg.RunStart && e.stated[m.Run] {
			began[m.Run] = m.Time
		}
	}
	at := func(m *msg.Message) int64 { return max(m.Time, began[m.Run]) }
	slices.SortStableFunc(e.queue, func(a, b msg.Message) int {
		return cmp.Or(cmp.Compare(at(&a), at(&b)), e.starts(&a)-e.starts(&b), ends(&a)-ends(&b))
	})
	for _, m := range e.queue {
		m.Tool.ProtocolID = counted(e.tree.trace.ID, m.Tool.CallID)
		out.Emit(m)
		if e.seenSession = cmp.Or(e.seenSession, m.Session); e.complete == msg.Complete {
			name := msg.HashKey(m.Session, m.Key)[:16]
			if m.Complete < msg.Complete {
				name += "?"
			}
			e.Seen.Add(name, maxSeen)
		}
	}
}

func (e *emitter) starts(m *msg.Message) int {
	if m.Signal == msg.RunStart && e.stated[m.Run] {
		return 0
	}
	return 1
}

func ends(m *msg.Message) int {
	if m.Signal == msg.RunEnd {
		return 1
	}
	return 0
}

// begun reports whether a run has begun.
func (e *emitter) begun(p place) bool {
	name := msg.HashKey(p.session, "run:"+p.run)[:16]
	return e.Seen.Has(name) || e.Seen.Has(name+"?")
}

// begin begins the run of a span, once; an agent's own span does so with more.
func (e *emitter) begin(s *Span, k *known, p place) {
	c := msg.Complete
	if k.rebuilt && e.profile.Direct && e.complete == msg.Partial { // log records may yet name the turn
		return
	}
	if s.Kind != Agent && k.Parent != "" || k.Stub {
		c = msg.Summary // its agent's span may follow
	}
	parent, call := e.tree.cause(k)
	unlinked := s.Stated != "" && s.Parent == "" // it names a parent that the other sidecar has not found
	if parent == "" && !unlinked {
		parent = s.Above
	}
	m := e.add(p, msg.Status, "run:"+p.run, s.Start, c)
	if m == nil {
		return
	}
	m.Hidden, m.Signal = true, msg.RunStart
	m.Agent.Name, m.Agent.ID = s.Agent, s.AgentID
	if s.Op == "invoke_workflow" {
		m.Agent.Kind = msg.KindWorkflow
	}
	m.SetAttr("type", "run")
	if k.rebuilt {
		m.SetAttr("rebuilt", "parent span "+cmp.Or(k.Parent, "unknown"))
	}
	if s.Kind == Agent {
		m.Model, m.Provider, m.ParentKey = s.Asked, e.provider(s), parentKey(p, s)
		m.SetAttr("span", s.key())
		m.SetAttr("name", s.Name)
		m.Attrs = append(m.Attrs, s.Attrs...)
		for _, a := range s.Params {
			m.SetAttr(a.Key, a.Value)
		}
	}
	if e.Dropped > 0 {
		m.SetAttr("dropped_spans", strconv.FormatUint(e.Dropped, 10))
		if e.complete == msg.Complete {
			e.Dropped = 0
		}
	}
	if unlinked {
		m.SetAttr("parent_run", s.Above)
	}
	switch elsewhere := e.elsewhere(s, k); {
	case elsewhere != "":
		m.ParentRun, m.Delegation.CorrelationID = msg.UnknownRun, elsewhere
	case parent != "" && parent != p.run:
		m.ParentRun, m.ParentCall = parent, call
		if m.Delegation.Link = msg.ByTrace; call == "" {
			m.Delegation.Link = msg.ByParent
		}
	}
}

func parentKey(p place, s *Span) string {
	if p.parent == "" || s.Trace == "" {
		return ""
	}
	return "span:" + s.Trace + "/" + p.parent
}

// end ends the run that is that of a root.
func (e *emitter) end(s *Span, p place) *msg.Message {
	m := e.add(p, msg.Stop, "end:"+p.run, s.End, msg.Complete)
	if m == nil {
		return nil
	}
	m.Hidden, m.Signal = true, msg.RunEnd
	if s.Failed && s.Kind != Tool {
		m.IsError, m.Tool.ErrorType, m.Content = true, s.ErrorType, msg.Plain(s.Message)
	}
	return m
}

// agent queues the messages of an agent's span. asked, spoken: its responses have the prompt, an answer; counted: theirs are
// the tokens.
func (e *emitter) agent(s *Span, p place, asked, spoken, counted bool) {
	e.instructions(s, p)
	_, in := fresh(s.In)
	for _, part := range in {
		if !asked {
			e.input(part, p, s.Start)
		} else if m := e.add(p, msg.Status, "input:"+msg.HashKey(s.key(), part.Text), s.Start, msg.Complete); m != nil {
			m.Hidden, m.Content = true, msg.Plain(part.Text)
			m.SetAttr("type", "input")
		}
	}
	for i, part := range s.Out {
		switch key := s.key() + "/answer/" + strconv.Itoa(i); {
		case !spoken:
			e.output(part, s, p, key, "")
		default:
			if m := e.add(p, msg.Status, key, s.End, msg.Complete); m != nil {
				m.Hidden, m.Content = true, msg.Plain(part.Text)
				m.SetAttr("type", "output")
			}
		}
	}
	if s.Counted && !counted {
		if m := e.add(p, msg.Usage, "usage:"+s.key(), s.End, msg.Complete); m != nil {
			m.Hidden, m.Usage = true, s.Counts.Tokens(msg.TranscriptFinal)
			m.Usage.Tier, m.Usage.Stated = s.Tier, s.Cost
		}
	}
	m := e.end(s, p)
	if m != nil && e.ours(s) {
		if m.Model = s.Model; s.Stated != "" && s.Model != "" { // not that of its first response, or it has none
			m.SetAttr(msg.ModelOf, "run")
		}
	}
	if m != nil && s.Finish != "" {
		m.FinishReason = s.Finish
		m.SetAttr(msg.FinishReasonOf, "run")
	}
}

func (e *emitter) provider(s *Span) string {
	return cmp.Or(msg.KnownProvider(s.Provider), s.Provider, e.profile.Provider)
}

// instructions queues the system's instructions and the tools, once in a run.
func (e *emitter) instructions(s *Span, p place) {
	system, _ := fresh(s.In)
	for _, text := range [...]string{s.System, system} {
		if text == "" {
			continue
		}
		if m := e.add(p, msg.System, "system:"+msg.HashKey(p.run, text), s.Start, msg.Complete); m != nil {
			m.Role, m.Content, m.Hidden = msg.RoleSystem, msg.Plain(text), true
		}
	}
	if s.Tools != "" {
		if m := e.add(p, msg.Status, "tools:"+msg.HashKey(p.run, s.Tools), s.Start, msg.Complete); m != nil {
			m.Content, m.Hidden = msg.Plain(s.Tools), true
			m.SetAttr("type", msg.TypeTools)
		}
	}
}

// input queues a part of a request.
func (e *emitter) input(part Part, p place, at int64) {
	switch {
	case part.Kind == msg.ToolResult && part.Call != "":
		if m := e.add(p, msg.ToolResult, "result:"+part.Call, at, msg.Summary); m != nil {
			m.Role, m.Content, m.Tool.CallID, m.Tool.Name, m.ParentKey = msg.RoleTool, msg.Plain(part.Text), part.Call, part.Tool, "call:"+part.Call
			conversation.Failed(m, part.Failed)
		}
	case part.Kind == earlier:
		if m := e.add(p, msg.ToolCall, "call:"+part.Call, at, msg.Summary); m != nil {
			m.Role, m.Tool.CallID, m.Tool.Name, m.Tool.Arguments = msg.RoleAssistant, part.Call, cmp.Or(part.Tool, "unknown"), msg.Plain(part.Text)
			m.Tool.Server = conversation.ToolServer(part.Tool)
		}
	case part.Text != "":
		if m := e.add(p, msg.User, "prompt:"+msg.HashKey(p.run, part.Text), at, msg.Complete); m != nil {
			m.Role, m.Content, m.Agent.Kind = msg.RoleUser, msg.Plain(part.Text), msg.KindHuman
		}
	case part.Media+part.URI != "":
		if m := e.add(p, msg.User, "prompt:"+msg.HashKey(p.run, part.Media, part.URI), at, msg.Complete); m != nil {
			m.Role, m.Agent.Kind = msg.RoleUser, msg.KindHuman
			m.Attachments = []msg.Attachment{{MediaType: part.Media, URL: part.URI}}
		}
	}
}

// output queues a part of a response.
func (e *emitter) output(part Part, s *Span, p place, key, response string) {
	if part.Kind == msg.ToolCall {
		call := cmp.Or(part.Call, key)
		m := e.add(p, msg.ToolCall, "call:"+call, s.End, msg.Summary)
		if m == nil {
			return
		}
		m.Role, m.Tool.CallID, m.Tool.Name, m.Tool.Server = msg.RoleAssistant, call, cmp.Or(part.Tool, "unknown"), conversation.ToolServer(part.Tool)
		m.Tool.Arguments, m.ResponseID, m.Model, m.Provider = msg.Plain(part.Text), response, s.answered(), e.provider(s)
		return
	}
	kind := part.Kind
	if kind != msg.Reasoning {
		kind = msg.Assistant
	}
	if m := e.add(p, kind, key, s.End, msg.Complete); m != nil {
		m.Role, m.Content, m.ResponseID, m.Model, m.Provider = msg.RoleAssistant, msg.Plain(part.Text), response, s.Model, e.provider(s)
		switch {
		case response != "":
			m.Model = s.answered()
		case e.ours(s): // its responses have spans of their own: no model wrote this
			m.Model, m.Provider = "", ""
		}
	}
}

// chat queues the messages of a response.
func (e *emitter) chat(s *Span, p place) {
	id := cmp.Or(s.Response, s.key())
	e.instructions(s, p)
	_, in := fresh(s.In)
	for _, part := range in {
		e.input(part, p, s.Start)
	}
	if m := e.add(p, msg.Status, "request:"+id, s.Start, msg.Complete); m != nil {
		m.Hidden, m.Signal, m.Model, m.Provider = true, msg.ModelStart, s.asked(), e.provider(s)
		m.ParentKey = parentKey(p, s)
		m.Agent.Name, m.Agent.ID = s.Agent, s.AgentID
		m.SetAttr("type", "request")
		m.SetAttr("span", s.key())
		m.SetAttr("name", s.Name)
		m.SetAttr("operation", s.Op)
		m.Attrs = append(append(m.Attrs, s.Params...), s.Attrs...)
	} else if len(s.Attrs) > 0 || s.Trace != "" {
		e.more(s, p)
	}
	answer := func(kind msg.Kind, key string, at int64) *msg.Message {
		m := e.add(p, kind, key, at, msg.Complete)
		if m != nil {
			m.Hidden, m.ResponseID, m.Model, m.Provider = true, id, s.answered(), e.provider(s)
		}
		return m
	}
	if s.First > 0 {
		if m := answer(msg.Status, "first_token:"+id, s.First); m != nil {
			m.Signal = msg.FirstToken
			m.SetAttr("type", "first_token")
		}
	}
	r := conversation.Response{ID: id}
	for i, part := range s.Out {
		key := id + "/" + strconv.Itoa(i)
		if part.Kind != msg.ToolCall {
			key = r.Key(part.Kind)
		}
		e.output(part, s, p, key, id)
	}
	if s.Failed {
		if m := answer(msg.Error, "error:"+id, s.End); m != nil {
			m.Hidden, m.IsError, m.Tool.ErrorType, m.Content = false, true, cmp.Or(s.ErrorType, "error"), msg.Plain(s.Message)
		}
	}
	if m := answer(msg.Stop, "response_end:"+id, s.End); m != nil {
		m.Signal, m.FinishReason = msg.ModelEnd, s.Finish
		span := e.tree.nodes[s.ID] != nil && !s.Stub // a log record has one time, and a duration or none
		if m.SetAttr("type", "response_end"); s.Start > 0 && (s.Start < s.End || span && s.Start == s.End) {
			m.SetAttr(msg.ResponseStart, strconv.FormatInt(s.Start, 10))
		}
		if s.Failed {
			m.IsError, m.Tool.ErrorType = true, cmp.Or(s.ErrorType, "error")
		}
	}
	if s.Counted {
		if m := answer(msg.Usage, "usage:"+id, s.End); m != nil {
			m.Usage, m.FinishReason = s.Counts.Tokens(msg.Provider), s.Finish
			m.Usage.Tier, m.Usage.Stated = s.Tier, s.Cost
		}
	}
}

// tool queues a call and its result.
func (e *emitter) tool(s *Span, p place) {
	if s.Call == "" {
		s.Call = s.key()
	}
	if m := e.add(p, msg.ToolCall, "call:"+s.Call, s.Start, msg.Complete); m != nil {
		m.Role, m.Tool.CallID, m.Tool.Name = msg.RoleAssistant, s.Call, cmp.Or(s.Tool, s.Name, "unknown")
		m.Tool.Server, m.Tool.Arguments = cmp.Or(s.Server, conversation.ToolServer(s.Tool)), msg.Plain(s.Args)
		m.ResponseID, m.Model, m.ParentKey = s.Response, s.Model, parentKey(p, s)
		if s.Response != "" {
			m.Provider = e.provider(s)
		}
		if s.delegates() {
			m.Kind = msg.Delegation
			m.Delegation = msg.Delegate{To: s.To, Task: msg.Plain(s.Task), ChildRun: s.Child, CorrelationID: s.meets}
			if s.Child != "" {
				m.Delegation.Link = msg.ByTrace
			}
		}
		m.SetAttr("span", s.key())
		m.SetAttr("name", s.Name)
		m.SetAttr("operation", s.Op)
		m.Attrs = append(append(m.Attrs, s.Params...), s.Attrs...)
	} else if len(s.Attrs) > 0 || s.Trace != "" {
		e.more(s, p)
	}
	if m := e.add(p, msg.ToolResult, "result:"+s.Call, s.End, msg.Complete); m != nil {
		m.Role, m.Content, m.Tool.CallID, m.Tool.Name, m.ParentKey = msg.RoleTool, msg.Plain(s.Result), s.Call, cmp.Or(s.Tool, s.Name, "unknown"), "call:"+s.Call
		m.Tool.Duration = s.End - s.Start
		if s.Failed {
			m.IsError, m.Tool.ErrorType = true, ident.Bounded(cmp.Or(s.ErrorType, "tool_error"))
			switch {
			case s.Stated != "": // which has the result apart
				m.SetAttr("status_message", s.Message)
			case s.Result == "":
				m.Content = msg.Plain(s.Message)
			}
		}
		if s.delegates() {
			m.Kind = msg.DelegationResult
		}
	}
}

// more queues the attributes of a further record of a response or a call.
func (e *emitter) more(s *Span, p place) {
	if m := e.add(p, msg.Status, "span:"+s.key(), s.End, msg.Complete); m != nil {
		m.Hidden, m.ResponseID, m.Tool.CallID = true, s.Response, s.Call
		m.SetAttr("type", cmp.Or(s.Name, "span"))
		m.Attrs = append(append(m.Attrs, s.Params...), s.Attrs...)
	}
}

// wait queues that a call waited for a person.
func (e *emitter) wait(s *Span, p place) {
	k := e.tree.nodes[s.Parent]
	if k == nil || k.Call == "" {
		return
	}
	for _, w := range [...]struct {
		signal msg.Signal
		at     int64
	}{{msg.WaitStart, s.Start}, {msg.WaitEnd, s.End}} {
		if m := e.add(p, msg.Status, w.signal.String()+":"+k.Call, w.at, msg.Complete); m != nil {
			m.Hidden, m.Signal, m.Tool.CallID = true, w.signal, k.Call
			m.SetAttr("type", w.signal.String())
		}
	}
}

// step queues a span that is neither of an agent nor of a model or a tool.
func (e *emitter) step(s *Span, p place) {
	m := e.add(p, msg.Status, "span:"+s.key(), s.Start, msg.Complete)
	if m == nil {
		return
	}
	m.Hidden, m.ParentKey, m.IsError, m.Signal = true, parentKey(p, s), s.Failed, s.Signal
	m.SetAttr("type", "span")
	if s.Kind == Note {
		m.Attrs = m.Attrs[:0]
		m.SetAttr("type", cmp.Or(s.Name, "log"))
	} else {
		m.SetAttr("name", s.Name)
		m.SetAttr("duration_ns", strconv.FormatInt(s.End-s.Start, 10))
	}
	for _, f := range [...]msg.Attr{{Key: "operation", Value: s.Op}, {Key: "agent", Value: s.Agent}, {Key: "model", Value: s.answered()}, {Key: "error", Value: s.ErrorType}, {Key: "response", Value: s.Response}, {Key: "call", Value: s.Call}, {Key: "tool", Value: s.Tool}, {Key: "finish_reason", Value: s.Finish}} {
		m.SetAttr(f.Key, f.Value)
	}
	m.Attrs = append(append(m.Attrs, s.Params...), s.Attrs...)
	var texts conversation.Texts
	for _, part := range append(s.In, s.Out...) {
		texts.Add(msg.Plain(part.Text))
	}
	for _, text := range [...]string{s.System, s.Tools, s.Args, s.Result, s.Message, s.Task} {
		if text != "" {
			texts.Add(msg.Plain(text))
		}
	}
	if m.Content = texts.Joined(); s.Waits {
		e.wait(s, p)
	}
}
