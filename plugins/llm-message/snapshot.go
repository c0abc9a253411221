package llmmessage

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// item is a message of a snapshot, or a call of the message before it.
type item struct {
	jsonv.Value
	kind            msg.Kind // ToolCall, or one of kinds, or Unknown
	role            string
	sum             conversation.Sum
	isNew           bool
	known           bool   // another connection had it: it is counted and not emitted
	question, guide []byte // of a prompt that the agent has rewritten: parts of a JSON string
	injected        string // why a message whose role is user is no prompt: the agent added it to make the model go on or sum up
}

// kinds are the kinds of messages by their roles.
var kinds = map[string]msg.Kind{"user": msg.User, "assistant": msg.Assistant, "tool": msg.ToolResult, "system": msg.System}

// llmMessage decodes agent.llm_message: a memory, or one message, which some servers are reported to send in its place.
func llmMessage(d *stream) {
	list := d.content.Get("messages")
	switch role := d.meta.Get("role"); {
	case list.Is(jsonv.Array):
		(&reader{stream: d}).snapshot(list)
		if total, n := d.content.Get("total_messages"), list.Len(); total.Is(jsonv.Number) && total.Int() != int64(n) {
			m := d.status("mismatch:" + d.id)
			m.SetAttr("total_messages", string(total.Raw()))
			m.SetAttr("messages", strconv.Itoa(n))
		}
	case !d.content.Is(jsonv.String):
		d.unknown(d.name, d.Root)
	case role.In("user", "system"):
		d.ensureTurn()
		m := d.add(msg.System, d.key())
		m.Hidden, m.Content = true, d.content.Text()
	default:
		d.ensureTurn()
		role.Equal("assistant")
		d.assistant(msg.Assistant, d.content.Text())
	}
}

// reader decodes a snapshot.
type reader struct {
	*stream
	prompted int // index of the prompt of the session's turn, -1 when no item is new and it
}

// snapshot emits the new messages of a memory and reads its metadata.
func (g *reader) snapshot(list jsonv.Value) {
	s, agent, from := g.s, ident.Peek(g.meta.Get("agent_name")), len(g.Out.Messages)
	sums := g.find(list)
	m := s.memory(agent, sums)
	if m.isOlder(g.stream) {
		list.MarkRead()
		return
	}
	if s.inPhase() {
		s.bind(m, g.items)
	} else if s.Agent == "" {
		s.Agent = agent
	}
	known, size, last := len(m.Items) > 0, list.Len(), m.Size
	shrunk := size < last && !m.Cut
	for _, i := range m.update(g.stream, size, sums) {
		g.items[i].isNew = true
	}
	g.of, g.run = m, ""
	g.findPrompt()
	if s.Restored {
		g.baseline()
	}
	for i := range g.items {
		v := &g.items[i]
		if v.known || !v.isNew {
			v.MarkRead() // a copy
		}
		switch {
		case !v.isNew:
		case v.kind == msg.ToolCall:
			g.readCall(v)
		case v.kind == msg.ToolResult:
			g.readResult(v)
		case v.kind != msg.Unknown:
			g.readText(i)
		case !v.known:
			g.unknown("role:"+cmp.Or(ident.Of(v.Get("role")), "none"), v.Value)
		}
	}
	g.readMetadata()
	if known || agent == s.Agent || slices.ContainsFunc(g.Out.Messages[from:], func(m msg.Message) bool { return m.Agent.Name == agent }) {
		ident.Of(g.meta.Get("agent_name"))
	}
	if shrunk { // the memory has lost messages
		m := g.status("shrunk:" + g.id)
		m.SetAttr("messages", strconv.Itoa(size))
		m.SetAttr("before", strconv.Itoa(last))
		m.SetAttr("new", conversation.NonZero(count(g.items, func(v item) bool { return v.isNew && v.isMessage() })))
	}
}

// find finds the items of a snapshot, and returns their checksums. It remembers the guides that the
// snapshot shows: a guide may arrive alone.
func (g *reader) find(list jsonv.Value) (sums []conversation.Sum) {
	g.items = g.items[:0]
	for v := range list.Elems() {
		it := item{Value: v, role: jsonv.Word(v.Get("role"), "user", "assistant", "tool", "system")}
		it.kind = kinds[it.role]
		content, calls := v.Get("content"), v.Get("tool_calls")
		text := content.Peek()
		if content.Is(jsonv.String) {
			text = content.Escaped()
		}
		if question, guide, ok := splitGuide(content); ok && it.role == "user" {
			it.question, it.guide, text = question, guide, question // as the user wrote it
			if sum := sumOf(guide); slices.Contains(g.s.Guides, sum) {
				content.MarkRead() // the question is emitted, and the guide was
			} else {
				g.s.Guides = bounded.Push(g.s.Guides, sum, maxGuides)
			}
		}
		it.sum = sumOf(v.Get("role").Peek(), text, calls.Peek(), v.Get("tool_call_id").Peek(), v.Get("base64_image").Peek())
		if !v.Is(jsonv.Object) {
			it.sum = sumOf(v.Peek())
		}
		g.items = append(g.items, it)
		if it.role == "assistant" {
			for c := range calls.Elems() {
				g.items = append(g.items, item{Value: c, kind: msg.ToolCall, sum: sumOf(c.Peek())})
			}
		}
	}
	for i := range g.items {
		v := &g.items[i]
		switch content := v.Get("content"); {
		case v.kind != msg.User, v.question != nil:
		case content.HasPrefix("Original Question: "), content.HasPrefix("Please provide a comprehensive summary of the entire conversation"):
			v.kind, v.injected = msg.System, "summary_prompt"
		case content.Is(jsonv.String) && len(g.s.Guides) > 0 && slices.Contains(g.s.Guides, sumOf(content.Escaped())):
			v.kind, v.injected = msg.System, "next_step_prompt"
		}
		sums = append(sums, v.sum)
	}
	return sums
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

// findPrompt finds the prompt that began the session's turn if no event had it: during the turn
// that is the last prompt; after it, the last one that has an answer. It begins a turn for the
// first messages if the memory has lost their prompt.
func (g *reader) findPrompt() {
	g.prompted = -1
	t := &g.s.Turn
	if t.Prompted {
		return
	}
	for i, it := range g.items {
		switch {
		case !it.isNew || it.role == "system":
		case t.Run == "":
			if it.kind != msg.User {
				g.s.startTurn("turn:"+g.id, true)
			}
			return
		case it.kind == msg.User && (t.Open || t.overtook(g.stream) || i+1 < len(g.items) && g.items[i+1].kind != msg.User):
			g.prompted = i
		}
	}
}

// baseline marks the items of a restored session's first snapshot that another connection had: all before the
// prompt of the turn.
func (g *reader) baseline() {
	g.s.Restored = false
	first := g.prompted
	if first < 0 {
		first = len(g.items)
	}
	for i := range g.items[:first] {
		g.items[i].known = true
	}
	g.status("baseline:"+g.id).SetAttr("messages", strconv.Itoa(count(g.items[:first], item.isMessage)))
}

// readText emits a text that is new.
func (g *reader) readText(i int) {
	s, v := g.s, &g.items[i]
	content, image := v.Get("content"), v.Get("base64_image")
	if isEmpty := len(content.Peek()) <= 2 || !content.Exists(); v.kind == msg.Assistant && isEmpty && !image.Exists() {
		return // of calls alone
	}
	text := msg.Quoted(v.question) // the words of the user
	if v.question == nil {
		text = content.Text()
	}
	key, emitted := s.Emitted.show(textKey(v.role, text))
	if v.known || emitted {
		return
	}
	isBelow := g.isBelow()
	if v.kind == msg.User && !isBelow {
		g.run = ""
		switch {
		case i == g.prompted:
			s.Turn.Prompted = true
		case i < g.prompted: // of a turn before the current one
			g.run = key
		default:
			s.Draft.abandon(g.stream, "")
			s.startTurn(key, true)
		}
	}
	role, _ := msg.ParseRole(v.role)
	m := g.addText(v.kind, role, key, text, image)
	m.Hidden = v.kind == msg.System
	m.SetAttr("injected", v.injected)
	if v.kind == msg.User && isBelow { // of the planner, or of a solver
		m.Agent, m.Signal = msg.Agent{Kind: msg.KindWorkflow}, msg.NoSignal
	}
	if v.question != nil {
		if len(v.guide) <= conversation.MaxAttr {
			content.MarkRead()
		}
		m.SetAttr("rewritten", "true")
		m.SetAttr("guide", conversation.Cut(msg.Quoted(v.guide).String(), conversation.MaxAttr))
	}
}

// readCall emits a call that had no event, or adds the model's id to one that had. The id alone does not identify a
// call: some models number their calls from 0 each time.
func (g *reader) readCall(v *item) {
	s, function := g.s, v.Get("function")
	name, id, written := ident.Of(function.Get("name")), ident.Of(v.Get("id")), function.Get("arguments")
	if name == "" {
		if !v.known {
			g.unknown("tool_call", v.Value)
		}
		return
	}
	to, sign := arguments(name, written)
	known := count(s.Named, func(c *call) bool { return c.Sum == v.sum })
	shown := count(g.items, func(it item) bool { return it.sum == v.sum })
	if e := s.Emitted.entry(sign); known >= shown && e.Emitted <= e.Shown {
		v.MarkRead() // a snapshot has had it, though the memory around it was changed
		return
	}
	key, emitted := s.Emitted.show(sign)
	if id != "" {
		s.Named = bounded.Push(s.Named, &call{Call: conversation.Call{ID: key, ProtocolID: id}, To: to.To, Sum: v.sum}, maxNamed)
	}
	if v.known {
		return
	}
	c := s.Calls.Get(key)
	switch {
	case !emitted:
		c = g.newCall(key, name, sign)
		s.Calls.Add(c)
	case c == nil || c.ProtocolID != "" || id == "":
		written.MarkRead()
		return
	}
	c.ProtocolID = id
	c.emit(g.stream, to, written.Text())
}

// readResult emits the result of a call that had no event, or adds the model's id to one that
// had. A memory may have less of a result than the event had; then the event's stays.
func (g *reader) readResult(v *item) {
	s, id, name := g.s, ident.Of(v.Get("tool_call_id")), v.Get("name")
	c := g.newCall("id:"+id, ident.Peek(name), "")
	c.ProtocolID = id
	if id == "" {
		c.ID = "unnamed:" + msg.HashKey(string(v.Peek()))
	}
	if n := bounded.Find(s.Named, func(n *call) bool { return n.ProtocolID == id }); n != nil {
		c.ID, c.To = n.ID, n.To
	}
	text, failed := observed(v.Get("content"))
	if !s.Emitted.once("result:" + c.ID) {
		if strings.HasPrefix(c.ID, c.Name+":") {
			ident.Of(name)
		}
		if c := s.Calls.Get(c.ID); c != nil && c.ProtocolID != "" && !c.Identified {
			c.Identified = true
			if !v.known && conversation.SumOfText(text) == c.Result.Text {
				c.emitResult(g.stream, text)
			}
		}
		return
	}
	s.Turn.Shown = false // the next text of the model is a new one
	if v.known {
		return
	}
	ident.Of(name)
	s.Calls.Take(c.ID)
	if failed {
		c.Result.Class = errorClass(text.String())
	}
	c.emitResult(g.stream, text).Attachments = imageOf(v.Get("base64_image"))
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

// readMetadata reads the answer, which the memory may not have yet, and whether the agent is
// done. The metadata of an agent below the session's turn do not decide that.
func (g *reader) readMetadata() {
	s := g.s
	if g.isBelow() {
		return
	}
	done := strings.EqualFold(g.meta.Get("agent_state").PeekStr(), "FINISHED")
	if answer := g.meta.Get("final_response"); len(answer.Escaped()) > 0 && s.Turn.Run != "" {
		key := textKey("assistant", answer.Text())
		// While the agent works, it keeps the answer of the previous turn.
		if !s.Turn.isLastText(key) && (done && s.Turn.Open || s.Emitted.entry(key).Emitted == 0) {
			g.run = ""
			g.addText(msg.Assistant, msg.RoleAssistant, s.Emitted.emit(key), answer.Text(), jsonv.Value{})
		}
	}
	if done && s.Turn.Open {
		g.endAnswered()
	}
}

// isBelow reports whether the memory is that of an agent below the session's turn.
func (g *reader) isBelow() bool {
	s, agent := g.s, g.of.Agent
	return g.of.Phase != "" || s.inPhase() || s.Agent != "" && agent != "" && agent != s.Agent
}

func (v item) isMessage() bool { return v.kind != msg.ToolCall }

// count is the number of elements that fit.
func count[T any](list []T, fits func(T) bool) (n int) {
	for _, v := range list {
		if fits(v) {
			n++
		}
	}
	return n
}

// imageOf describes an image by its bytes: the protocol names no type, and its documents
// guess JPEG for all.
func imageOf(v jsonv.Value) []msg.Attachment {
	if len(v.Escaped()) == 0 {
		return nil
	}
	return []msg.Attachment{media.Sniffed(v)}
}
