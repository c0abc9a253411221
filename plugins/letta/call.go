package letta

import (
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

const (
	maxCalls = 1024 // without a result; beyond it the oldest is evicted
	maxBlock = 1024 // of one block
)

// speechTool is the tool by which agents of the older kind speak. By default servers write
// its call as an assistant_message and omit its result.
const speechTool = "send_message"

// call is a tool call: first while its pieces arrive, then until its result arrives.
type call struct {
	ID   string
	Name string `json:",omitempty"`
	Args []byte `json:",omitempty"` // until the call is emitted
	Key  string `json:",omitempty"` // of the assistant message, for a call of speechTool

	Time int64 `json:",omitempty"`
	Prec msg.Precision

	Run     string `json:",omitempty"`
	Request string `json:",omitempty"` // id of the request for approval
	To      string `json:",omitempty"` // the agent that it delegates to
}

// calls decodes a message that calls tools: one piece of one call, or a list of whole
// calls.
func (d *stream) calls(r *run, v jsonv.Value, approval bool) {
	list, one := v.Get("tool_calls"), v.Get("tool_call")
	if !one.Is(jsonv.Object) {
		one = v.First("tool_calls", "function_call")
	}
	whole := list.Is(jsonv.Array) && list.Len() > 0
	switch single := v.Get("tool_call"); {
	case whole:
		markRepeated(single, head(list))
	case single.Is(jsonv.Object):
		markRepeated(list, single)
	}
	if !whole && !one.Is(jsonv.Object) && !one.Is(jsonv.String) {
		d.unknown(v, "")
		return
	}
	b := r.callBlock(v, approval)
	if whole || b == nil || len(b.Calls) >= maxBlock {
		b = d.beginBlock(r, v, calling)
		b.Approval = approval
		if !whole && b.parallelTo(r.Block) && len(r.Beside) < maxBlock {
			r.Beside = append(r.Beside, r.Block)
		} else {
			d.closeBlocks(r)
		}
		r.Block = b
	}
	b.describe(v)
	b.Time, b.Prec = d.date.read(v.Get("date"))
	switch {
	case whole:
		b.Cut = false
		for e := range list.Elems() {
			d.callPiece(r, b, e)
		}
	case one.Is(jsonv.String):
		d.signalFirstToken(r, b)
		b.Calls = append(b.Calls, parseCall(b, one.Str()))
	default:
		d.callPiece(r, b, one)
	}
	if whole || d.whole {
		d.closeBlocks(r)
	}
}

// callBlock returns the open block of calls that v continues, or nil.
func (r *run) callBlock(v jsonv.Value, approval bool) *block {
	for b := range r.blocks() {
		if b.Approval == approval && b.continuedBy(v, calling) {
			return b
		}
	}
	return nil
}

// parallelTo reports whether the calls of b are written at the same time as those of other:
// each call of a response may have its own otid, and their pieces interleave.
func (b *block) parallelTo(other *block) bool {
	return other != nil && other.Kind == calling && other.Response == b.Response && other.Approval == b.Approval &&
		other.Otid != "" && b.Otid != "" && other.Otid != b.Otid
}

// parseCall parses a call in the form of the oldest servers: name(arguments), without an id.
func parseCall(b *block, s string) *call {
	name, args, _ := strings.Cut(s, "(")
	return &call{ID: b.Base, Name: ident.Bounded(name), Args: []byte(strings.TrimSuffix(args, ")")), Time: b.Time, Prec: b.Prec}
}

// callPiece decodes a piece of one call.
func (d *stream) callPiece(r *run, b *block, v jsonv.Value) {
	name, args, id := v.Get("name"), v.Get("arguments"), v.First("tool_call_id", "function_call_id", "id")
	c := b.call(id)
	if c == nil {
		c = &call{ID: ident.Of(id)}
		if c.ID == "" {
			c.ID = b.Base
		}
		if p := r.findPart(0, calling, hash(c.ID)); p != nil && p.Sum != 0 && !d.whole {
			if canon, _ := d.arguments(args.Text().Append(nil)); p.Sum != sumCall(ident.Of(name), canon) {
				d.keepRaw(v, "late_piece")
			}
			return
		}
		d.signalFirstToken(r, b)
		b.Calls = append(b.Calls, c)
	}
	c.Time, c.Prec = b.Time, b.Prec
	if c.Name == "" {
		c.Name = ident.Of(name)
		if c.Name == speechTool && c.Key == "" {
			c.Key = d.speechKey(r, b, c)
		}
	} else if name.Is(jsonv.String) {
		ident.Is(name, c.Name)
		if n := len(c.Args); n > 1 && c.Args[n-1] == '}' && len(args.Peek()) > n && args.Equal(string(c.Args)) {
			return // a repetition of the whole call
		}
	}
	if len(c.Args) < maxText {
		c.Args = args.Text().Append(c.Args)
	}
}

// call returns the call of the block that a piece belongs to: the last one if the piece has
// no id.
func (b *block) call(id jsonv.Value) *call {
	if len(b.Calls) == 0 {
		return nil
	}
	last := b.Calls[len(b.Calls)-1]
	if !id.Is(jsonv.String) {
		return last
	}
	if last.ID == b.Base { // its id follows its name
		last.ID = ident.Of(id)
		return last
	}
	for _, c := range slices.Backward(b.Calls) {
		if ident.Is(id, c.ID) {
			return c
		}
	}
	return nil
}

// speechKey returns the key of the assistant message that a call of speechTool becomes.
func (d *stream) speechKey(r *run, b *block, c *call) string {
	base, name := hash(b.Base), b.name()
	for _, other := range b.Calls {
		if other != c && other.Key != "" {
			name = hash(c.ID)
		}
	}
	return partKey(b.Base, r.part(base, text, name))
}

// arguments returns the arguments in canonical form, and whether they are JSON.
func (d *stream) arguments(raw []byte) (canon string, valid bool) {
	if d.inner.Parse(raw) != nil {
		return string(raw), false
	}
	return string(compact(make([]byte, 0, len(raw)), d.inner.Root())), true
}

func sumCall(name, arguments string) uint64 { return max(1, hash(name+"\x00"+arguments)) }

// emitCall emits a call, as complete as the level. over means that the call is closed.
func (d *stream) emitCall(r *run, b *block, c *call, over bool) {
	if over && len(c.Args) == 0 {
		c.Args = []byte("{}")
	}
	args, valid := d.arguments(c.Args)
	if c.Key != "" {
		d.emitSpeech(r, b, c, args, valid)
	} else {
		kind := msg.ToolCall
		if delegates(c.Name) {
			kind = msg.Delegation
		}
		m := d.addModelMessage(r, b, kind, "call:"+c.ID)
		at(m, c.Time, c.Prec)
		m.Tool.CallID, m.Tool.Name, m.Tool.Arguments = c.ID, c.Name, msg.Plain(args)
		if c.Name == "" && m.Complete == msg.Complete {
			m.Complete = msg.Summary // its beginning is missing
		}
		if over && !valid {
			m.SetAttr("unparsed_arguments", "true")
		}
		if kind == msg.Delegation && valid {
			fillDelegation(m, d.inner.Root())
		}
		if over {
			c.To = m.Delegation.To
		}
	}
	if !over {
		return
	}
	if d.level > msg.Partial && !d.whole {
		r.part(0, calling, hash(c.ID)).Sum = sumCall(c.Name, args)
	}
	c.Args, c.Run = nil, r.ID
	if b.Approval {
		c.Request = b.ID
		d.emitWait(r, b, c)
	}
	d.remember(c)
}

// emitSpeech emits the assistant message of a call of speechTool.
func (d *stream) emitSpeech(r *run, b *block, c *call, args string, valid bool) {
	m := d.addModelMessage(r, b, msg.Assistant, c.Key)
	at(m, c.Time, c.Prec)
	if speech := d.inner.Root().Get("message"); valid && speech.Exists() {
		m.Content = speech.Text().Own()
	} else if d.level > msg.Partial {
		m.Content = msg.Plain(args)
	}
}

// remember keeps a call until its result arrives.
func (d *stream) remember(c *call) {
	if i := slices.IndexFunc(d.Calls, func(o *call) bool { return o.ID == c.ID }); i >= 0 {
		d.Calls[i] = c
		return
	}
	if len(d.Calls) == maxCalls {
		d.Calls = slices.Delete(d.Calls, 0, 1)
	}
	d.Calls = append(d.Calls, c)
}

// findCall returns the call with that id, or nil.
func (d *stream) findCall(id string) *call {
	for _, c := range slices.Backward(d.Calls) {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// takeCall returns the call with that id and removes it from the state.
func (d *stream) takeCall(id string) *call {
	c := d.findCall(id)
	if c != nil {
		d.Calls = slices.DeleteFunc(d.Calls, func(o *call) bool { return o == c })
	}
	return c
}
