package claudestream

import (
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/when"
)

// line is one record while it is decoded.
type line struct {
	root jsonv.Value
	out  *decoder.Output
	uuid jsonv.Value
	lane *lane
	time int64
	prec msg.Precision

	key   string // of the line itself, once somebody asked for it
	given int    // messages
	known bool   // it is understood, though it may give none
}

// envelope reads what lines have in common, and finds the lane of the line.
func (d *stream) envelope(ln *line) {
	session := ln.root.Get("session_id")
	if !session.Exists() {
		session = ln.root.Get("sessionId")
	}
	if id := ident(session); id != "" && id != d.Session {
		d.Session = id
	}
	ln.time, ln.prec, _ = when.Value(ln.root.Get("timestamp"))
	ln.lane = d.laneOf(ln, ident(ln.root.Get("parent_tool_use_id")))
}

func (d *stream) session() string {
	switch {
	case d.Session != "":
		return d.Session
	case d.origin != "":
		return d.origin
	}
	return "unknown"
}

// id is the line's own key: its uuid, or a hash of what it says.
func (ln *line) id() string {
	if ln.key == "" {
		if ln.key = ident(ln.uuid); ln.key == "" {
			ln.key = "line:" + ln.facts("type", "subtype", "message", "parent_tool_use_id", "request_id", "request", "response",
				"task_id", "status", "duration_ms", "num_turns", "total_cost_usd", "usage", "result")
		}
	}
	return ln.key
}

// facts is a hash of members of the line. Others are left out, because a later
// version may add some to what it says already.
func (ln *line) facts(names ...string) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = string(ln.root.Get(name).Peek())
	}
	return msg.HashKey(parts...)
}

// give adds a message of the lane's run.
func (d *stream) give(ln *line, kind msg.Kind, key string) *msg.Message {
	return d.giveIn(ln, ln.lane.Run, kind, key)
}

func (d *stream) giveIn(ln *line, run string, kind msg.Kind, key string) *msg.Message {
	l := ln.lane
	m := ln.out.Add()
	m.Kind, m.Key = kind, key
	m.Session, m.Run, m.Agent = l.Session, run, l.agent()
	m.Time, m.Precision = ln.time, ln.prec
	m.Complete = msg.Complete
	if run != "" && run == l.Run {
		l.introduce(m)
	}
	ln.given++
	return m
}

// status adds a message that a user would not see.
func (d *stream) status(ln *line, key, typ string) *msg.Message {
	m := d.give(ln, msg.Status, key)
	m.Hidden = true
	m.SetAttr("type", typ)
	return m
}

// unknown keeps v, the record or a part of it, as it is. It begins no run.
func (d *stream) unknown(ln *line, typ string, v jsonv.Value) {
	if typ == "" {
		typ = "none"
	}
	l := ln.lane
	key := msg.HashKey(string(v.Peek()))
	if v != ln.root {
		key = msg.HashKey(ln.id(), string(v.Peek()))
	}
	m := ln.out.Add()
	m.Kind, m.Key = msg.Unknown, "unknown:"+key
	m.Session, m.Run, m.Agent = l.Session, l.Run, l.agent()
	m.Time, m.Precision = ln.time, ln.prec
	m.Complete, m.Hidden, m.Content = msg.Complete, true, msg.Raw(v.Raw())
	m.SetAttr("type", typ)
	ln.given++
}

// maxIdent is how long an id or a name may be. Ids are remembered, and must not
// be a way to make the decoder remember a lot.
const maxIdent = 256

// ident is the id or the name in v, "" if v is no string; a hash of it if it is
// too long.
func ident(v jsonv.Value) string {
	if raw := v.Peek(); len(raw) > maxIdent {
		if !v.Is(jsonv.String) {
			return ""
		}
		v.MarkRead()
		return "long:" + msg.HashKey(string(raw))
	}
	return v.Str()
}

// same reports whether v is the id s, without a copy.
func same(v jsonv.Value, s string) bool {
	return v.Equal(s) || len(v.Peek()) > maxIdent && ident(v) == s
}

// first returns the first of the members that is there.
func first(v jsonv.Value, names ...string) jsonv.Value {
	for _, name := range names {
		if m := v.Get(name); m.Exists() {
			return m
		}
	}
	return jsonv.Value{}
}

// begins reports whether v is a string that begins with prefix, which has no
// character that JSON escapes.
func begins(v jsonv.Value, prefix string) bool {
	raw := v.Peek()
	return v.Is(jsonv.String) && len(raw) > len(prefix) && string(raw[1:1+len(prefix)]) == prefix
}

// tag returns what stands between the first <name> and the next </name>.
func tag(s, name string) string {
	_, s, _ = strings.Cut(s, "<"+name+">")
	s, _, ok := strings.Cut(s, "</"+name+">")
	if !ok {
		return ""
	}
	return strings.TrimSpace(s)
}

// number is a number as an attribute's value; empty when v is none.
func number(v jsonv.Value) string {
	const most = 32
	if raw := v.Peek(); v.Is(jsonv.Number) && len(raw) <= most {
		return string(raw)
	}
	return ""
}

// ordinal tells apart the parts of one kind: the n-th text of a response is the
// n-th text in every form in which the response is told.
func ordinal(key string, n *int) string {
	*n++
	if *n == 1 {
		return key
	}
	return key + "/" + strconv.Itoa(*n-1)
}

// hash is 64 bits of FNV-1a: enough to tell the few things apart that are
// remembered at a time, and the same in every process.
func hash(s []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range s {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// nameOf is the last element of a path without its ending.
func nameOf(path string) string {
	path = strings.ToValidUTF8(path, "\uFFFD") // a path need not be text, but an id must be
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	for _, end := range [...]string{".json", ".ndjson"} {
		if i := strings.Index(name, end); i > 0 {
			return name[:i]
		}
	}
	return name
}
