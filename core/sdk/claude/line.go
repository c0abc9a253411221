package claude

import (
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Line is one record while it is decoded. A decoder has one, with its State and Form, and
// resets it for each record; it sets the other fields of the first group.
type Line struct {
	*State
	Form Form
	Root jsonv.Value
	Out  *decoder.Output
	UUID jsonv.Value
	Time conversation.Time
	Name string // session
	Lane *Lane  // nil of a record beside the conversation
	Run  string // of the record's messages; empty between two turns
	// Chained is set when records name the one before them, and Parent is the key of that
	// one's last message.
	Chained bool
	Parent  string
	Copied  bool // a fork's copy of a record
	History bool // a copy whose run is not known

	Emitted int    // messages
	Last    string // key of the last of them
	key     string
	digest  uint64
}

// Reset makes ln the line of a record.
func (ln *Line) Reset(root jsonv.Value, out *decoder.Output) {
	ln.Root, ln.Out, ln.UUID = root, out, root.Get("uuid") // by field: a copy of the struct costs write barriers
	ln.Time, ln.Name, ln.Lane, ln.Run, ln.Parent, ln.Copied, ln.History = conversation.Time{}, "", nil, "", "", false, false
	ln.Emitted, ln.Last, ln.key, ln.digest = 0, "", "", 0
}

// ID returns the key of the record: its uuid, or a hash of its facts.
func (ln *Line) ID() string {
	if ln.key == "" {
		if ln.key = ident.Of(ln.UUID); ln.key == "" {
			ln.key = "line:" + ln.Hash(ln.Form.Facts()...)
		}
	}
	return ln.key
}

// IsID reports whether the uuid of a record is an id, and not empty or none.
func IsID(uuid jsonv.Value) bool { return uuid.Is(jsonv.String) && len(uuid.Peek()) > len(`""`) }

// PromptID returns the id of the prompt that the record belongs to, by which the agent's telemetry
// and its requests name the turn; empty in records of older versions.
func (ln *Line) PromptID() string { return ident.Of(ln.Root.Get("promptId")) }

// Digest returns the digest of the uuid, which the envelope has settled.
func (ln *Line) Digest() uint64 {
	if ln.digest == 0 {
		ln.digest = Digest(ln.UUID.Peek())
	}
	return ln.digest
}

// Hash returns a hash of members of the record. Other members do not count, because a later
// version may add some to a record that it repeats.
func (ln *Line) Hash(names ...string) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = string(ln.Root.Get(name).Peek())
	}
	return msg.HashKey(parts...)
}

// Begin begins a run of the main conversation. A sub-agent has one run.
func (ln *Line) Begin(id string) {
	l := ln.Lane
	if ln.History {
		return
	}
	if !l.Child {
		ln.Finish(ln, l)
		for _, o := range ln.Lanes {
			if ln.Chained && o.Session != l.Session { // of the history at the beginning of a fork
				ln.Finish(ln, o)
			}
		}
		l.Init = ""
		if l.Text != nil {
			l.Text.Set(msg.Text{})
		}
	}
	l.Run.Begin(id)
	ln.Run = l.Run.ID
}

// Wake begins a run with the record unless one is active.
func (ln *Line) Wake(answer bool) {
	if ln.Run == "" {
		ln.Begin(ln.Form.Cause(ln, answer))
	}
}

// Emit adds a message of the record's run.
func (ln *Line) Emit(kind msg.Kind, key string) *msg.Message {
	m := ln.add(kind, key)
	if ln.Run != "" && ln.Lane != nil && ln.Lane.Mark(m) {
		ln.Form.Started(ln, m)
	}
	return m
}

// add adds a message that does not start the record's run.
func (ln *Line) add(kind msg.Kind, key string) *msg.Message {
	m := ln.Out.Add()
	m.Kind, m.Key, m.ParentKey, m.Session, m.Run = kind, key, ln.Parent, ln.Name, ln.Run
	ln.Time.Set(m)
	if m.Complete = msg.Complete; ln.Copied {
		m.Complete = msg.Summary // the original replaces it
	}
	if ln.Lane != nil {
		m.Agent = ln.Lane.Actor()
	}
	ln.Emitted++
	ln.Last = key
	return m
}

// Status adds a hidden message of that type.
func (ln *Line) Status(key, typ string) *msg.Message {
	m := ln.Emit(msg.Status, key)
	m.Hidden = true
	m.SetAttr("type", typ)
	return m
}

// Unknown keeps v, the record or a part of it, as it is. It starts no run.
func (ln *Line) Unknown(typ string, v jsonv.Value) {
	if typ == "" {
		typ = "none"
	}
	var key string
	switch {
	case v != ln.Root:
		key = msg.HashKey(ln.ID(), string(v.Peek()))
	case ln.Chained && ln.UUID.Is(jsonv.String):
		key = ln.ID()
	default:
		key = msg.HashKey(string(v.Peek()))
	}
	m := ln.add(msg.Unknown, "unknown:"+key)
	m.Hidden, m.Content = true, msg.Raw(v.Raw())
	m.SetAttr("type", typ)
}

// Digest is 64 bits of FNV-1a: enough to distinguish the few records that are remembered at a
// time, and the same in each process.
func Digest(s []byte) uint64 { return uint64(conversation.SumOf(s)) }

// Tag returns the text between the first <name> and the next </name>.
func Tag(s, name string) string {
	_, s, _ = strings.Cut(s, "<"+name+">")
	s, _, ok := strings.Cut(s, "</"+name+">")
	if !ok {
		return ""
	}
	return strings.TrimSpace(s)
}
