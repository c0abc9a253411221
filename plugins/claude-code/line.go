package claudecode

import (
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

	session string
	uuid    jsonv.Value // missing on flat records
	lane    *lane       // nil on flat records
	run     string      // to which its messages belong; empty between two turns
	parent  string      // key of the message it follows
	copied  bool        // a fork's copy of its origin's line
	time    int64
	prec    msg.Precision

	key   string // of the line itself, once somebody asked for it
	given int    // messages
	last  string // key of the last of them
}

// envelope reads what user, assistant, system, progress and attachment lines
// have in common, and finds the lane of the line.
func (d *transcript) envelope(ln *line) {
	session, fork := ln.root.Get("sessionId"), ln.root.Get("forkedFrom")
	if from := ident(fork.Get("sessionId")); from != "" && ident(session) != from {
		ln.copied, ln.session = true, from
		d.forked(ln, ident(session), from)
		if id := fork.Get("messageUuid"); id.Is(jsonv.String) {
			ln.uuid = id
		}
	} else {
		ln.session = d.sessionOf(session)
	}
	ln.time, ln.prec, _ = when.Value(ln.root.Get("timestamp"))
	parent := ln.root.Get("parentUuid")
	if !parent.Exists() {
		parent = ln.root.Get("logicalParentUuid")
	}
	ln.lane = d.laneOf(ln, parent)
	if !ln.lane.Ended {
		ln.run = ln.lane.Run
	}
	if key, ok := ln.lane.follows(parent); ok {
		ln.parent = key
	}
}

// flat reads the envelope of a record that is part of no chain.
func (d *transcript) flat(ln *line) {
	ln.session = d.sessionOf(ln.root.Get("sessionId"))
	t := ln.root.Get("timestamp")
	if !t.Exists() {
		t = ln.root.Path("snapshot", "timestamp")
	}
	ln.time, ln.prec, _ = when.Value(t)
}

// sessionOf returns the session that a line names, or the one it must belong to.
func (d *transcript) sessionOf(v jsonv.Value) string {
	switch {
	case v.Is(jsonv.String) && v.Equal(d.session) && d.session != "":
	case v.Is(jsonv.String) && len(v.Peek()) > 2:
		d.session = ident(v)
	case d.session != "":
	case d.file.session != "":
		return d.file.session
	default:
		return "unknown"
	}
	return d.session
}

// id is the line's own key: its uuid, or a hash of what it says.
func (ln *line) id() string {
	if ln.key == "" {
		if ln.key = ident(ln.uuid); ln.key == "" {
			ln.key = "line:" + ln.facts("type", "subtype", "timestamp", "message", "content", "attachment", "data")
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

// give adds a message of the line's run.
func (d *transcript) give(ln *line, kind msg.Kind, key string) *msg.Message {
	m := ln.out.Add()
	m.Kind, m.Key, m.ParentKey = kind, key, ln.parent
	m.Session, m.Run = ln.session, ln.run
	m.Time, m.Precision = ln.time, ln.prec
	m.Complete = msg.Complete
	if ln.copied {
		m.Complete = msg.Summary // the original stands
	}
	if ln.lane != nil {
		m.Agent = ln.lane.agent()
		if ln.run != "" {
			ln.lane.introduce(m, ln.root)
		}
	}
	ln.given++
	ln.last = key
	return m
}

// status adds a message that a user would not see.
func (d *transcript) status(ln *line, key, typ string) *msg.Message {
	m := d.give(ln, msg.Status, key)
	m.Hidden = true
	m.SetAttr("type", typ)
	return m
}

// unknown keeps v, the record or a part of it, as it is.
func (d *transcript) unknown(ln *line, typ string, v jsonv.Value) {
	if typ == "" {
		typ = "none"
	}
	var key string
	switch {
	case v != ln.root:
		key = msg.HashKey(ln.id(), string(v.Peek()))
	case ln.uuid.Is(jsonv.String):
		key = ln.id()
	default:
		key = msg.HashKey(string(v.Peek()))
	}
	m := d.give(ln, msg.Unknown, "unknown:"+key)
	m.Hidden, m.Content = true, msg.Raw(v.Raw())
	m.SetAttr("type", typ)
}

// remember lets later lines name this one as their parent.
func (ln *line) remember() {
	if ln.lane != nil && ln.uuid.Is(jsonv.String) {
		if ln.last == "" {
			ln.last = ln.parent
		}
		ln.lane.follow(ln.uuid, ln.last)
	}
}

// hash is 64 bits of FNV-1a: enough to tell the few lines apart that are
// remembered at a time, and the same in every process.
func hash[T string | []byte](s T) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
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
