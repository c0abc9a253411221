package llmmessage

import (
	"bytes"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// giving is a snapshot while its new messages are given.
type giving struct {
	d       *stream
	e       *event
	lane    *lane
	old     bool   // they are not new at all: only noted
	current int    // place of the prompt of the session's turn, -1 when there is none
	turn    string // the run that the messages belong to, if it is not the session's turn
	items   []jsonv.Value
	calling map[modelCall]int // how often a call is in items; made when it is asked for
}

// itemSum is a hash of what a message of a memory says. The words of the user count
// as they were before the agent rewrote them.
func (d *stream) itemSum(v jsonv.Value) uint64 {
	if !v.Is(jsonv.Object) {
		return d.hash(v.Peek())
	}
	role, content := v.Get("role").Peek(), v.Get("content").Peek()
	if v.Get("role").Equal("user") {
		if question, _, ok := rewritten(v.Get("content")); ok {
			content = quoted(question)
		}
	}
	return d.hash(role, content, v.Get("tool_calls").Peek(), v.Get("tool_call_id").Peek(), v.Get("base64_image").Peek())
}

// quoted is a part of the body of a JSON string, as a string's JSON.
func quoted(body []byte) []byte { return slices.Concat([]byte{'"'}, body, []byte{'"'}) }

// item gives one new message of the memory.
func (g *giving) item(place int, v jsonv.Value) {
	switch role := v.Get("role"); {
	case role.Equal("user"):
		g.user(place, v)
	case role.Equal("assistant"):
		g.assistant(v)
	case role.Equal("tool"):
		g.tool(v)
	case role.Equal("system"):
		g.text(msg.System, "system", v.Get("content").Text(), v)
	default:
		if g.old {
			return
		}
		raw := v.Raw()
		typ := ident.Of(role)
		if typ == "" {
			typ = "none"
		}
		m := g.e.out.Unknown("role:"+typ, raw)
		m.Session, m.Key = g.e.s.ID, "unknown:"+msg.HashKey(string(raw))
		m.Run, m.Time, m.Precision = g.e.s.Turn.Run, g.e.at.Time, g.e.at.Precision
	}
}

// who wrote a message whose role is user.
type who uint8

const (
	human     who = iota
	nextStep      // the agent, to make the model go on
	summarize     // the agent, to make it sum up
)

// rewritten finds the words of the user, and the prompt that was added to them, in
// what the agent made of them: Question: …\n\nGuide: …. Both are parts of the body of
// the JSON string.
func rewritten(content jsonv.Value) (question, guide []byte, ok bool) {
	raw := content.Peek()
	if !content.Is(jsonv.String) || len(raw) < 2 {
		return nil, nil, false
	}
	body, ok := bytes.CutPrefix(raw[1:len(raw)-1], []byte("Question: "))
	if !ok {
		return nil, nil, false
	}
	const between = `\n\nGuide: `
	i := bytes.LastIndex(body, []byte(between))
	if i < 0 {
		return nil, nil, false
	}
	slashes := 0
	for slashes < i && body[i-1-slashes] == '\\' {
		slashes++
	}
	if slashes%2 != 0 { // the backslash belongs to one before it
		return nil, nil, false
	}
	return body[:i], body[i+len(between):], true
}

// prompted returns the words of a message whose role is user, and who wrote it.
func (d *stream) prompted(s *session, v jsonv.Value) (msg.Text, who) {
	content := v.Get("content")
	if !v.Get("role").Equal("user") {
		return msg.Text{}, nextStep
	}
	if question, _, ok := rewritten(content); ok {
		return msg.Quoted(question), human
	}
	raw := content.Peek()
	for _, prompt := range [...]string{`"Original Question: `, `"Please provide a comprehensive summary of the entire conversation`} {
		if bytes.HasPrefix(raw, []byte(prompt)) {
			return content.Text(), summarize
		}
	}
	if content.Is(jsonv.String) && slices.Contains(s.Guides, d.hash(raw[1:len(raw)-1])) {
		return content.Text(), nextStep
	}
	return content.Text(), human
}

// user gives a message whose role is user: a prompt, if a human wrote it.
func (g *giving) user(place int, v jsonv.Value) {
	s := g.e.s
	var guide []byte
	if _, added, ok := rewritten(v.Get("content")); ok {
		guide = added
	}
	text, by := g.d.prompted(s, v)
	if by != human {
		if m := g.text(msg.System, "user", text, v); m != nil {
			m.Role = msg.RoleUser
			m.SetAttr("injected", map[who]string{nextStep: "next_step_prompt", summarize: "summary_prompt"}[by])
		}
		return
	}
	base := textKey("user", text)
	n, given := s.Given.show(base)
	if g.old || given {
		return
	}
	key := base + nth(n)
	run, parent := g.run()
	fromHuman := true
	switch {
	case parent != "" || s.handing() > 0 || s.Agent != "" && g.lane.Agent != "" && g.lane.Agent != s.Agent: // of a solver, not of a human
		fromHuman = false
	case place == g.current:
		s.Turn.Prompted = true
		g.turn, run = "", s.Turn.Run
	case place < g.current: // of a turn before the one that is heard
		g.turn, run = key, key
	default:
		g.d.closeDraft(g.e, "")
		s.begin(key)
		g.turn, run = "", key
	}
	m := g.say(msg.User, key)
	m.Run, m.ParentRun = run, parent
	m.Role, m.Content, m.Attachments = msg.RoleUser, text, attach(v.Get("base64_image"))
	m.Agent = msg.Agent{Kind: msg.KindHuman}
	if !fromHuman {
		m.Agent.Kind = msg.KindWorkflow
	} else {
		m.Signal = msg.RunStart
	}
	if guide != nil {
		if len(guide) <= maxAttr {
			v.Get("content").MarkRead()
		}
		m.SetAttr("rewritten", "true")
		m.SetAttr("guide", cut(msg.Quoted(guide).String(), maxAttr))
	}
}

// learn remembers a prompt that the agent adds to the user's, for it may come alone. It
// reports whether it was not known.
func (d *stream) learn(s *session, guide []byte) bool {
	h := d.hash(guide)
	if slices.Contains(s.Guides, h) {
		return false
	}
	if len(s.Guides) == maxGuides {
		s.Guides = slices.Delete(s.Guides, 0, 1)
	}
	s.Guides = append(s.Guides, h)
	return true
}

// assistant gives what the model said, and the calls that it made.
func (g *giving) assistant(v jsonv.Value) {
	content := v.Get("content")
	if len(content.Peek()) > 2 && content.Exists() || v.Get("base64_image").Exists() {
		if m := g.text(msg.Assistant, "assistant", content.Text(), v); m != nil && m.Run == g.e.s.Turn.Run {
			g.e.s.Turn.Said, g.e.s.Turn.Shown = m.Key, true
		}
	}
	for c := range v.Get("tool_calls").Elems() {
		g.call(c)
	}
}

// call gives a call that no event told of, or says under which id the model knows one
// that was told.
func (g *giving) call(c jsonv.Value) {
	s, function := g.e.s, c.Get("function")
	name, id := ident.Peek(function.Get("name")), ident.Peek(c.Get("id"))
	if name == "" {
		if !g.old {
			m := g.e.out.Unknown("tool_call", c.Raw())
			m.Session, m.Key, m.Run = s.ID, "unknown:"+msg.HashKey(string(c.Raw())), s.Turn.Run
		}
		return
	}
	args := function.Get("arguments")
	base := g.d.baseOf(name, args)
	if known := s.named(id, base); known > 0 && known >= g.shown(id, base) && !s.Given.ahead("call:"+base) {
		c.MarkRead()
		return // the message around it was changed
	}
	n, given := s.Given.show("call:" + base)
	key := base + nth(n)
	var doc jsonv.Doc
	read := arguments(&doc, args)
	if id != "" {
		if len(s.IDs) == maxIDs {
			s.IDs = slices.Delete(s.IDs, 0, 1)
		}
		to, _ := delegate(name, read)
		s.IDs = append(s.IDs, named{id, key, to})
	}
	if g.old {
		return
	}
	ident.Of(function.Get("name"))
	ident.Of(c.Get("id"))
	var known *call
	if given {
		if known = s.nameless(key); known == nil || id == "" {
			args.MarkRead()
			return
		}
		known.Model = id
	} else {
		known = s.open(g.calls(key, name, id))
		known.Base = base
	}
	g.e.begun(known, read, args.Text())
}

// calls is a call of the memory's agent.
func (g *giving) calls(key, name, id string) call {
	c := call{ID: key, Name: name, Model: id, Agent: g.e.s.Agent}
	c.Run, c.Parent = g.run()
	if g.lane.Agent != "" {
		c.Agent = g.lane.Agent
	}
	return c
}

// nameless finds a call whose id no snapshot has told.
func (s *session) nameless(key string) *call {
	for _, list := range [...][]call{s.Calls, s.Nameless} {
		for i := range list {
			if list[i].ID == key && list[i].Model == "" {
				return &list[i]
			}
		}
	}
	return nil
}

// named counts the calls with that id and that tool and arguments that were shown.
// The id alone does not tell: some models number their calls from 0 each time.
func (s *session) named(id, base string) (count int) {
	for _, n := range s.IDs {
		if key, _, _ := strings.Cut(n.Call, "#"); id != "" && n.ID == id && key == base {
			count++
		}
	}
	return count
}

// modelCall is a call by what the model says of it.
type modelCall struct{ id, base string }

// shown counts the calls with that id and that tool and arguments in the memory.
func (g *giving) shown(id, base string) int {
	if g.calling == nil {
		g.calling = make(map[modelCall]int)
		for _, v := range g.items {
			for c := range v.Get("tool_calls").Elems() {
				f := c.Get("function")
				g.calling[modelCall{ident.Peek(c.Get("id")), g.d.baseOf(ident.Peek(f.Get("name")), f.Get("arguments"))}]++
			}
		}
	}
	return g.calling[modelCall{id, base}]
}

// tool gives the result of a call that no event told of, or says under which id the
// model knows one that was told.
func (g *giving) tool(v jsonv.Value) {
	s, id := g.e.s, ident.Of(v.Get("tool_call_id"))
	c := g.calls("id:"+id, ident.Peek(v.Get("name")), id)
	for _, n := range slices.Backward(s.IDs) {
		if n.ID == id {
			c.ID, c.To = n.Call, n.To
			break
		}
	}
	if id == "" {
		c.ID = "unnamed:" + msg.HashKey(string(v.Peek()))
	}
	text, failed := observed(v.Get("content"))
	h := g.d.hash([]byte(c.ID))
	if s.Done.has(h) {
		if strings.HasPrefix(c.ID, c.Name+":") {
			ident.Of(v.Get("name"))
		}
		g.again(c.ID, text)
		return
	}
	s.Done.add(h, maxDone)
	s.Turn.Shown = false // what the model says after it is something new
	if g.old {
		return
	}
	s.Calls = slices.DeleteFunc(s.Calls, func(o call) bool { return o.ID == c.ID })
	ident.Of(v.Get("name"))
	m := g.e.ended(&c)
	m.Content, m.Attachments = text, attach(v.Get("base64_image"))
	if failed {
		m.IsError, m.Tool.ErrorType = true, errorClass(text.String())
	}
	g.e.returned(m, &c)
}

// again gives a result that an event told once more, with the call's id. A memory may
// have less of it than the event had; then that stands.
func (g *giving) again(key string, text msg.Text) {
	s := g.e.s
	i := slices.IndexFunc(s.Nameless, func(c call) bool { return c.ID == key && c.Model != "" })
	if i < 0 {
		return
	}
	c := s.Nameless[i]
	s.Nameless = slices.Delete(s.Nameless, i, i+1)
	if g.old || g.d.hash([]byte(text.String())) != c.Result.Sum {
		return
	}
	m := g.e.ended(&c)
	m.Content, m.IsError, m.Tool.ErrorType = text, c.Result.Class != "", c.Result.Class
	g.e.returned(m, &c)
}

// observed takes a result out of what the agent wraps it in for the model:
//
//	Observed output of cmd `x` executed:\n…
//	Cmd `x` completed with no output
//	Error: …
func observed(content jsonv.Value) (text msg.Text, failed bool) {
	raw := content.Peek()
	if !content.Is(jsonv.String) {
		return content.Text(), false
	}
	content.MarkRead()
	body := raw[1 : len(raw)-1]
	if rest, ok := bytes.CutPrefix(body, []byte("Observed output of cmd `")); ok {
		if _, out, ok := bytes.Cut(rest, []byte("` executed:\\n")); ok {
			body = out
		}
	} else if rest, ok := bytes.CutPrefix(body, []byte("Cmd `")); ok && bytes.HasSuffix(rest, []byte("` completed with no output")) {
		return msg.Text{}, false
	}
	if rest, ok := bytes.CutPrefix(body, []byte("Error: ")); ok {
		return msg.Quoted(rest), true
	}
	return msg.Quoted(body), false
}

// text gives a text that was not given before, nil if it was.
func (g *giving) text(kind msg.Kind, role string, text msg.Text, v jsonv.Value) *msg.Message {
	base := textKey(role, text)
	n, given := g.e.s.Given.show(base)
	if given || g.old {
		return nil
	}
	m := g.say(kind, base+nth(n))
	m.Role, _ = msg.ParseRole(role)
	m.Content, m.Attachments = text, attach(v.Get("base64_image"))
	m.Hidden = kind == msg.System
	return m
}

// say adds a message that the memory tells of, in the run of its agent.
func (g *giving) say(kind msg.Kind, key string) *msg.Message {
	m := g.e.give(kind, key)
	m.Complete = msg.Summary
	m.Run, m.ParentRun = g.run()
	if m.ParentRun != "" {
		m.Delegation.Link = msg.ByParent
	}
	if g.lane.Agent != "" {
		m.Agent.Name = g.lane.Agent
	}
	return m
}
