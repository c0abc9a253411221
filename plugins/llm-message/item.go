package llmmessage

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// item is a message of a snapshot, or a call of the message before it.
type item struct {
	jsonv.Value
	isCall bool
	isNew  bool
	sum    uint64
}

// find finds the items of a snapshot and returns their hashes. It remembers the guides that the
// snapshot shows: a guide may arrive alone.
func (g *reader) find(list jsonv.Value) (sums []uint64) {
	e, out := g.e, g.e.items[:0]
	for v := range list.Elems() {
		role, content, calls := v.Get("role"), v.Get("content"), v.Get("tool_calls")
		text := content.Peek()
		if content.Is(jsonv.String) {
			text = content.Escaped()
		}
		if question, guide, ok := splitGuide(content); ok && role.Equal("user") {
			text = question // as the user wrote it
			if sum := e.hash(guide); slices.Contains(e.s.Guides, sum) {
				content.MarkRead() // the question is emitted, and the guide was
			} else {
				e.s.Guides = bounded.Push(e.s.Guides, sum, maxGuides)
			}
		}
		sum := e.hash(role.Peek(), text, calls.Peek(), v.Get("tool_call_id").Peek(), v.Get("base64_image").Peek())
		if !v.Is(jsonv.Object) {
			sum = e.hash(v.Peek())
		}
		out = append(out, item{Value: v, sum: sum})
		if role.Equal("assistant") {
			for c := range calls.Elems() {
				out = append(out, item{Value: c, isCall: true, sum: e.hash(c.Peek())})
			}
		}
	}
	for _, it := range out {
		sums = append(sums, it.sum)
	}
	g.items, e.items = out, out
	return sums
}

// messages is the number of messages among the items.
func messages(items []item) (n int) {
	for _, it := range items {
		if !it.isCall {
			n++
		}
	}
	return n
}

// reader decodes the new items of a snapshot.
type reader struct {
	e       *event
	memory  *memory
	items   []item
	current int    // index of the prompt of the session's turn, -1 when there is none
	first   int    // index of the first item that no other connection had
	known   bool   // the item that is read is before it: it is counted and not emitted
	turn    string // the run that the messages belong to, if it is not the session's turn
}

// splitGuide splits the agent's rewriting of a prompt, Question: …\n\nGuide: …, into the words
// of the user and the added guide. Both are parts of the body of the JSON string.
func splitGuide(content jsonv.Value) (question, guide []byte, ok bool) {
	body, ok := bytes.CutPrefix(content.Escaped(), []byte("Question: "))
	const between = `\n\nGuide: `
	i := bytes.LastIndex(body, []byte(between))
	if !ok || i < 0 {
		return nil, nil, false
	}
	question = body[:i]
	if slashes := len(question) - len(bytes.TrimRight(question, `\`)); slashes%2 != 0 { // the backslash belongs to one before it
		return nil, nil, false
	}
	return question, body[i+len(between):], true
}

// prompt returns the words of the user in a message whose role is user, without the agent's
// guide. A message that the agent added, to make the model go on or sum up, is injected.
func (g *reader) prompt(i int) (text msg.Text, injected string) {
	v := g.items[i]
	content := v.Get("content")
	if !v.Get("role").Equal("user") {
		return msg.Text{}, "no prompt"
	}
	if question, _, ok := splitGuide(content); ok {
		return msg.Quoted(question), ""
	}
	switch {
	case content.HasPrefix("Original Question: "), content.HasPrefix("Please provide a comprehensive summary of the entire conversation"):
		injected = "summary_prompt"
	case content.Is(jsonv.String) && slices.Contains(g.e.s.Guides, g.e.hash(content.Escaped())):
		injected = "next_step_prompt"
	}
	return content.Text(), injected
}

// findPrompt finds the prompt that began the session's turn if no event had it: during the turn
// that is the last prompt; after it, the last one that has an answer. It begins a turn for the
// first messages if the memory has lost their prompt.
func (g *reader) findPrompt() {
	g.current = -1
	t := &g.e.s.Turn
	human := func(i int) bool { _, injected := g.prompt(i); return injected == "" }
	for i, it := range g.items {
		if !it.isNew || it.Get("role").Equal("system") || t.Prompted {
			continue
		}
		if t.Run == "" {
			if !human(i) {
				g.e.s.startTurn("turn:"+g.e.id, true)
			}
			return
		}
		if human(i) && (t.Open || g.e.isLate() || i+1 < len(g.items) && !human(i+1)) {
			g.current = i
		}
	}
}

// read decodes an item.
func (g *reader) read(i int) {
	v := g.items[i]
	if g.known = i < g.first; g.known || !v.isNew {
		v.MarkRead() // a copy
	}
	if !v.isNew {
		return
	}
	switch role, content := v.Get("role"), v.Get("content"); {
	case v.isCall:
		g.readCall(v)
	case role.Equal("user"):
		g.readUser(i)
	case role.Equal("assistant"):
		if len(content.Peek()) > 2 && content.Exists() || v.Get("base64_image").Exists() {
			if m := g.text(msg.Assistant, "assistant", content.Text(), v.Value); m != nil && m.Run == g.e.s.Turn.Run {
				g.e.s.Turn.Text, g.e.s.Turn.Shown = m.Key, true
			}
		}
	case role.Equal("tool"):
		g.readResult(v.Value)
	case role.Equal("system"):
		g.text(msg.System, "system", content.Text(), v.Value)
	case !g.known:
		g.e.unknown("role:"+cmp.Or(ident.Of(role), "none"), v.Value)
	}
}

// readUser emits a message whose role is user: a prompt, if a human wrote it.
func (g *reader) readUser(i int) {
	s, v := g.e.s, g.items[i].Value
	text, injected := g.prompt(i)
	if injected != "" {
		if m := g.text(msg.System, "user", text, v); m != nil {
			m.SetAttr("injected", injected)
		}
		return
	}
	key, emitted := s.Emitted.show(textKey("user", text))
	if g.known || emitted {
		return
	}
	run, parent := g.runs()
	author := msg.Agent{Kind: msg.KindHuman}
	switch {
	case parent != "" || s.Phases.count() > 0 || s.isOther(g.memory): // of a solver
		author.Kind = msg.KindWorkflow
	case i == g.current:
		s.Turn.Prompted = true
		g.turn, run = "", s.Turn.Run
	case i < g.current: // of a turn before the current one
		g.turn, run = key, key
	default:
		s.Draft.abandon(g.e, "")
		s.startTurn(key, true)
		g.turn, run = "", key
	}
	m := g.add(msg.User, key)
	m.Run, m.ParentRun = run, parent
	m.Role, m.Content, m.Attachments, m.Agent = msg.RoleUser, text, imageOf(v.Get("base64_image")), author
	if author.Kind == msg.KindHuman {
		m.Signal = msg.RunStart
	}
	if _, guide, ok := splitGuide(v.Get("content")); ok {
		if len(guide) <= conversation.MaxAttr {
			v.Get("content").MarkRead()
		}
		m.SetAttr("rewritten", "true")
		m.SetAttr("guide", conversation.Cut(msg.Quoted(guide).String(), conversation.MaxAttr))
	}
}

// readCall emits a call that had no event, or adds the model's id to one that had.
func (g *reader) readCall(v item) {
	s, function := g.e.s, v.Get("function")
	name, id, written := ident.Of(function.Get("name")), ident.Of(v.Get("id")), function.Get("arguments")
	if name == "" {
		if !g.known {
			g.e.unknown("tool_call", v.Value)
		}
		return
	}
	args, sign := arguments(name, written)
	if g.isCopy(v.sum, sign) {
		v.MarkRead()
		return
	}
	key, emitted := s.Emitted.show(sign)
	if id != "" {
		to, _ := delegate(name, args)
		s.IDs = bounded.Push(s.IDs, identifiedCall{id, key, v.sum, to}, maxIDs)
	}
	if g.known {
		return
	}
	c := s.Calls.Get(key)
	switch {
	case !emitted:
		c = g.newCall(key, name, id)
		c.Signature = sign
		s.Calls.Add(c)
	case c == nil || c.Model != "" || id == "":
		written.MarkRead()
		return
	default:
		c.Model = id
	}
	c.emit(g.e, args, written.Text())
}

// identifiedCall is a call with the id that it has in snapshots. The id alone does not identify
// a call: some models number their calls from 0 each time.
type identifiedCall struct {
	ID, Call string
	Sum      uint64 // of the item
	To       string `json:",omitempty"`
}

// isCopy reports whether a call is one that a snapshot has had, though the memory around it
// was changed.
func (g *reader) isCopy(sum uint64, sign string) bool {
	known, shown := 0, 0
	for _, n := range g.e.s.IDs {
		if n.Sum == sum {
			known++
		}
	}
	for _, it := range g.items {
		if it.sum == sum {
			shown++
		}
	}
	e := g.e.s.Emitted.entry(sign)
	return known >= shown && e.Emitted <= e.Shown
}

// newCall is a call of the memory's agent.
func (g *reader) newCall(key, name, id string) *call {
	c := &call{Call: conversation.Call{ID: key, Name: name}, Model: id, Agent: cmp.Or(g.memory.Agent, g.e.s.Agent)}
	c.Run, c.Parent = g.runs()
	return c
}

// readResult emits the result of a call that had no event, or adds the model's id to one that
// had.
func (g *reader) readResult(v jsonv.Value) {
	s, id, name := g.e.s, ident.Of(v.Get("tool_call_id")), v.Get("name")
	c := g.newCall("id:"+id, ident.Peek(name), id)
	if id == "" {
		c.ID = "unnamed:" + msg.HashKey(string(v.Peek()))
	}
	for _, n := range slices.Backward(s.IDs) {
		if n.ID == id {
			c.ID, c.To = n.Call, n.To
			break
		}
	}
	text, failed := observed(v.Get("content"))
	if !s.Done.Add(g.e.hash([]byte(c.ID)), maxDone) {
		if strings.HasPrefix(c.ID, c.Name+":") {
			ident.Of(name)
		}
		g.identifyResult(c.ID, text)
		return
	}
	s.Turn.Shown = false // the next text of the model is a new one
	if g.known {
		return
	}
	ident.Of(name)
	if open := s.Calls.GetOpen(c.ID); open != nil {
		s.Calls.Remove(open)
	}
	if failed {
		c.Result.Class = errorClass(text.String())
	}
	c.emitResult(g.e, text).Attachments = imageOf(v.Get("base64_image"))
}

// identifyResult emits a result from an event once more, with the call's id. A memory may have
// less of it than the event had; then the event's result stays.
func (g *reader) identifyResult(key string, text msg.Text) {
	c := g.e.s.Calls.Get(key)
	if c == nil || c.Model == "" || c.Identified {
		return
	}
	c.Identified = true
	if !g.known && g.e.hash([]byte(text.String())) == c.Result.Text {
		c.emitResult(g.e, text)
	}
}

// observed removes the agent's wrapping of a result for the model:
//
//	Observed output of cmd `x` executed:\n…
//	Cmd `x` completed with no output
//	Error: …
func observed(content jsonv.Value) (text msg.Text, failed bool) {
	if !content.Is(jsonv.String) {
		return content.Text(), false
	}
	content.MarkRead()
	body := content.Escaped()
	if rest, ok := bytes.CutPrefix(body, []byte("Observed output of cmd `")); ok {
		if _, out, ok := bytes.Cut(rest, []byte("` executed:\\n")); ok {
			body = out
		}
	} else if bytes.HasPrefix(body, []byte("Cmd `")) && bytes.HasSuffix(body, []byte("` completed with no output")) {
		return msg.Text{}, false
	}
	body, failed = bytes.CutPrefix(body, []byte("Error: "))
	return msg.Quoted(body), failed
}

// text emits a text that is new, and returns nil if it is not.
func (g *reader) text(kind msg.Kind, role string, text msg.Text, v jsonv.Value) *msg.Message {
	key, emitted := g.e.s.Emitted.show(textKey(role, text))
	if emitted || g.known {
		return nil
	}
	m := g.add(kind, key)
	m.Role, _ = msg.ParseRole(role)
	m.Content, m.Attachments = text, imageOf(v.Get("base64_image"))
	m.Hidden = kind == msg.System
	return m
}

// add adds a message of the memory, in the run of its agent.
func (g *reader) add(kind msg.Kind, key string) *msg.Message {
	m := g.e.add(kind, key)
	m.Complete = msg.Summary
	m.Run, m.ParentRun = g.runs()
	if m.ParentRun != "" {
		m.Delegation.Link = msg.ByParent
	}
	m.Agent.Name = cmp.Or(g.memory.Agent, m.Agent.Name)
	return m
}

// runs returns the run of the memory's messages, and its parent.
func (g *reader) runs() (run, parent string) {
	if g.memory.Phase != "" {
		return g.memory.Phase, g.e.s.Turn.Run
	}
	return cmp.Or(g.turn, g.e.s.Turn.Run), ""
}
