package llmmessage

import (
	"bytes"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// snapshotReader decodes the new messages of a snapshot.
type snapshotReader struct {
	d          *stream
	e          *event
	memory     *agentMemory
	known      bool   // the items are counted and not emitted
	current    int    // index of the prompt of the session's turn, -1 when there is none
	turn       string // the run that the messages belong to, if it is not the session's turn
	items      []jsonv.Value
	callCounts map[modelCall]int // how often a call is in items; counted at the first use
}

// itemSum is a hash of a message of a memory. A prompt counts as the user wrote it, before the
// agent rewrote it.
func (d *stream) itemSum(v jsonv.Value) uint64 {
	if !v.Is(jsonv.Object) {
		return d.hash(v.Peek())
	}
	role, content := v.Get("role").Peek(), v.Get("content").Peek()
	if v.Get("role").Equal("user") {
		if question, _, ok := splitGuide(v.Get("content")); ok {
			content = quoted(question)
		}
	}
	return d.hash(role, content, v.Get("tool_calls").Peek(), v.Get("tool_call_id").Peek(), v.Get("base64_image").Peek())
}

// quoted is a part of the body of a JSON string, as a string's JSON.
func quoted(body []byte) []byte { return slices.Concat([]byte{'"'}, body, []byte{'"'}) }

// readItem emits one new message of the memory.
func (g *snapshotReader) readItem(place int, v jsonv.Value) {
	switch role := v.Get("role"); {
	case role.Equal("user"):
		g.readUser(place, v)
	case role.Equal("assistant"):
		g.readAssistant(v)
	case role.Equal("tool"):
		g.readResult(v)
	case role.Equal("system"):
		g.addText(msg.System, "system", v.Get("content").Text(), v)
	default:
		if g.known {
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

// author is the author of a message whose role is user.
type author uint8

const (
	human     author = iota
	nextStep         // the agent, to make the model go on
	summarize        // the agent, to make it sum up
)

// splitGuide splits the agent's rewriting of a prompt, Question: …\n\nGuide: …, into the words
// of the user and the added guide. Both are parts of the body of the JSON string.
func splitGuide(content jsonv.Value) (question, guide []byte, ok bool) {
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

// authorOf returns the words of a message whose role is user, and its author.
func (d *stream) authorOf(s *session, v jsonv.Value) (msg.Text, author) {
	content := v.Get("content")
	if !v.Get("role").Equal("user") {
		return msg.Text{}, nextStep
	}
	if question, _, ok := splitGuide(content); ok {
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

// readUser emits a message whose role is user: a prompt, if a human wrote it.
func (g *snapshotReader) readUser(place int, v jsonv.Value) {
	s := g.e.s
	var guide []byte
	if _, added, ok := splitGuide(v.Get("content")); ok {
		guide = added
	}
	text, by := g.d.authorOf(s, v)
	if by != human {
		if m := g.addText(msg.System, "user", text, v); m != nil {
			m.Role = msg.RoleUser
			m.SetAttr("injected", map[author]string{nextStep: "next_step_prompt", summarize: "summary_prompt"}[by])
		}
		return
	}
	base := textKey("user", text)
	n, emitted := s.Given.show(base)
	if g.known || emitted {
		return
	}
	key := base + nth(n)
	run, parent := g.runs()
	fromHuman := true
	switch {
	case parent != "" || s.activePhases() > 0 || s.Agent != "" && g.memory.Agent != "" && g.memory.Agent != s.Agent: // of a solver, not of a human
		fromHuman = false
	case place == g.current:
		s.Turn.Prompted = true
		g.turn, run = "", s.Turn.Run
	case place < g.current: // of a turn before the current one
		g.turn, run = key, key
	default:
		g.d.emitDraft(g.e, "")
		s.startTurn(key)
		g.turn, run = "", key
	}
	m := g.addMessage(msg.User, key)
	m.Run, m.ParentRun = run, parent
	m.Role, m.Content, m.Attachments = msg.RoleUser, text, imageOf(v.Get("base64_image"))
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

// addGuide remembers a prompt that the agent adds to the user's, for it may arrive alone. It
// reports whether it was not known.
func (d *stream) addGuide(s *session, guide []byte) bool {
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

// readAssistant emits the text of the model, and the calls that it made.
func (g *snapshotReader) readAssistant(v jsonv.Value) {
	content := v.Get("content")
	if len(content.Peek()) > 2 && content.Exists() || v.Get("base64_image").Exists() {
		if m := g.addText(msg.Assistant, "assistant", content.Text(), v); m != nil && m.Run == g.e.s.Turn.Run {
			g.e.s.Turn.Said, g.e.s.Turn.Shown = m.Key, true
		}
	}
	for c := range v.Get("tool_calls").Elems() {
		g.readCall(c)
	}
}

// readCall emits a call that had no event, or adds the model's id to one that had.
func (g *snapshotReader) readCall(c jsonv.Value) {
	s, function := g.e.s, c.Get("function")
	name, id := ident.Peek(function.Get("name")), ident.Peek(c.Get("id"))
	if name == "" {
		if !g.known {
			m := g.e.out.Unknown("tool_call", c.Raw())
			m.Session, m.Key, m.Run = s.ID, "unknown:"+msg.HashKey(string(c.Raw())), s.Turn.Run
		}
		return
	}
	args := function.Get("arguments")
	base := g.d.callSignature(name, args)
	if known := s.countIdentified(id, base); known > 0 && known >= g.countCalls(id, base) && !s.Given.hasUnshown("call:"+base) {
		c.MarkRead()
		return // the message around it was changed
	}
	n, emitted := s.Given.show("call:" + base)
	key := base + nth(n)
	var doc jsonv.Doc
	read := arguments(&doc, args)
	if id != "" {
		if len(s.IDs) == maxIDs {
			s.IDs = slices.Delete(s.IDs, 0, 1)
		}
		to, _ := delegate(name, read)
		s.IDs = append(s.IDs, identifiedCall{id, key, to})
	}
	if g.known {
		return
	}
	ident.Of(function.Get("name"))
	ident.Of(c.Get("id"))
	var known *call
	if emitted {
		if known = s.callWithoutID(key); known == nil || id == "" {
			args.MarkRead()
			return
		}
		known.Model = id
	} else {
		known = s.addOpenCall(g.newCall(key, name, id))
		known.Base = base
	}
	g.e.addCall(known, read, args.Text())
}

// newCall is a call of the memory's agent.
func (g *snapshotReader) newCall(key, name, id string) call {
	c := call{ID: key, Name: name, Model: id, Agent: g.e.s.Agent}
	c.Run, c.Parent = g.runs()
	if g.memory.Agent != "" {
		c.Agent = g.memory.Agent
	}
	return c
}

// callWithoutID finds a call whose id no snapshot has had.
func (s *session) callWithoutID(key string) *call {
	for _, list := range [...][]call{s.Calls, s.Nameless} {
		for i := range list {
			if list[i].ID == key && list[i].Model == "" {
				return &list[i]
			}
		}
	}
	return nil
}

// countIdentified counts the shown calls with that id and signature. The id alone does not
// identify a call: some models number their calls from 0 each time.
func (s *session) countIdentified(id, base string) (count int) {
	for _, n := range s.IDs {
		if key, _, _ := strings.Cut(n.Call, "#"); id != "" && n.ID == id && key == base {
			count++
		}
	}
	return count
}

// modelCall is a call by the model's id and its signature.
type modelCall struct{ id, base string }

// countCalls counts the calls with that id and signature in the memory.
func (g *snapshotReader) countCalls(id, base string) int {
	if g.callCounts == nil {
		g.callCounts = make(map[modelCall]int)
		for _, v := range g.items {
			for c := range v.Get("tool_calls").Elems() {
				f := c.Get("function")
				g.callCounts[modelCall{ident.Peek(c.Get("id")), g.d.callSignature(ident.Peek(f.Get("name")), f.Get("arguments"))}]++
			}
		}
	}
	return g.callCounts[modelCall{id, base}]
}

// readResult emits the result of a call that had no event, or adds the model's id to one that
// had.
func (g *snapshotReader) readResult(v jsonv.Value) {
	s, id := g.e.s, ident.Of(v.Get("tool_call_id"))
	c := g.newCall("id:"+id, ident.Peek(v.Get("name")), id)
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
		g.addIdentifiedResult(c.ID, text)
		return
	}
	s.Done.add(h, maxDone)
	s.Turn.Shown = false // the next text of the model is a new one
	if g.known {
		return
	}
	s.Calls = slices.DeleteFunc(s.Calls, func(o call) bool { return o.ID == c.ID })
	ident.Of(v.Get("name"))
	m := g.e.addResult(&c)
	m.Content, m.Attachments = text, imageOf(v.Get("base64_image"))
	if failed {
		m.IsError, m.Tool.ErrorType = true, errorClass(text.String())
	}
	g.e.setEventFields(m, &c)
}

// addIdentifiedResult emits a result from an event once more, with the call's id. A memory may
// have less of it than the event had; then the event's result stays.
func (g *snapshotReader) addIdentifiedResult(key string, text msg.Text) {
	s := g.e.s
	i := slices.IndexFunc(s.Nameless, func(c call) bool { return c.ID == key && c.Model != "" })
	if i < 0 {
		return
	}
	c := s.Nameless[i]
	s.Nameless = slices.Delete(s.Nameless, i, i+1)
	if g.known || g.d.hash([]byte(text.String())) != c.Result.Sum {
		return
	}
	m := g.e.addResult(&c)
	m.Content, m.IsError, m.Tool.ErrorType = text, c.Result.Class != "", c.Result.Class
	g.e.setEventFields(m, &c)
}

// observed removes the agent's wrapping of a result for the model:
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

// addText emits a text that is new, and returns nil if it is not.
func (g *snapshotReader) addText(kind msg.Kind, role string, text msg.Text, v jsonv.Value) *msg.Message {
	base := textKey(role, text)
	n, emitted := g.e.s.Given.show(base)
	if emitted || g.known {
		return nil
	}
	m := g.addMessage(kind, base+nth(n))
	m.Role, _ = msg.ParseRole(role)
	m.Content, m.Attachments = text, imageOf(v.Get("base64_image"))
	m.Hidden = kind == msg.System
	return m
}

// addMessage adds a message of the memory, in the run of its agent.
func (g *snapshotReader) addMessage(kind msg.Kind, key string) *msg.Message {
	m := g.e.add(kind, key)
	m.Complete = msg.Summary
	m.Run, m.ParentRun = g.runs()
	if m.ParentRun != "" {
		m.Delegation.Link = msg.ByParent
	}
	if g.memory.Agent != "" {
		m.Agent.Name = g.memory.Agent
	}
	return m
}
