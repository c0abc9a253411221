package codex

import (
	"strconv"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/when"
)

// record is one line while it is decoded: {timestamp, type, payload}.
type record struct {
	root, p jsonv.Value
	out     *decoder.Output
	time    int64
	prec    msg.Precision
	key     string // once somebody asked for it
}

func newRecord(root jsonv.Value, out *decoder.Output) record {
	r := record{root: root, p: root.Get("payload"), out: out}
	r.time, r.prec, _ = when.Value(root.Get("timestamp"))
	return r
}

// id is the record's own key: the id of its item, or a hash of what it says.
func (r *record) id() string {
	if r.key == "" {
		if id := r.p.Get("id"); r.root.Get("type").Equal("response_item") && id.Is(jsonv.String) && len(id.Peek()) > 2 {
			r.key = ident(id)
		} else {
			r.key = "line:" + msg.HashKey(string(r.root.Get("timestamp").Peek()), r.root.Get("type").PeekStr(), string(r.p.Peek()))
		}
	}
	return r.key
}

// turn is the turn that the record names; empty when it names none.
func (r *record) turn() string {
	return peek(r.turnID())
}

func (r *record) turnID() jsonv.Value {
	if id := r.p.Get("turn_id"); id.Is(jsonv.String) {
		return id
	}
	return r.p.First("internal_chat_message_metadata_passthrough", "metadata").Get("turn_id")
}

// give adds a message of the run that goes on.
func (d *thread) give(r *record, kind msg.Kind, key string) *msg.Message {
	return d.giveIn(r, d.Run, kind, key)
}

func (d *thread) giveIn(r *record, run string, kind msg.Kind, key string) *msg.Message {
	m := r.out.Add()
	m.Kind, m.Key = kind, key
	m.Session, m.Run = d.session(), run
	m.Time, m.Precision = r.time, r.prec
	m.Complete = msg.Complete
	m.Agent = d.agent()
	d.introduce(m)
	return m
}

// status adds a message that a user would not see.
func (d *thread) status(r *record, key, typ string) *msg.Message {
	m := d.give(r, msg.Status, key)
	m.Hidden = true
	m.SetAttr("type", typ)
	return m
}

// unknown keeps the record as it is.
func (d *thread) unknown(r *record, typ string) {
	if typ == "" {
		typ = "none"
	}
	raw := r.root.Raw()
	run := d.Run
	d.Run = "" // what nobody understands begins no run
	m := d.giveIn(r, run, msg.Unknown, "unknown:"+msg.HashKey(string(raw)))
	d.Run = run
	m.Hidden, m.Content = true, msg.Raw(raw)
	m.SetAttr("type", typ)
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

// peek is ident of what is only compared: it does not count as read.
func peek(v jsonv.Value) string {
	if raw := v.Peek(); len(raw) <= maxIdent {
		return v.PeekStr()
	}
	if !v.Is(jsonv.String) {
		return ""
	}
	return "long:" + msg.HashKey(string(v.Peek()))
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

// body is what stands between the quotes of a string, escapes and all.
func body(v jsonv.Value) []byte {
	raw := v.Peek()
	if !v.Is(jsonv.String) || len(raw) < 2 {
		return nil
	}
	return raw[1 : len(raw)-1]
}

// begins reports whether v is a string that begins with prefix, which has no
// character that JSON escapes.
func begins(v jsonv.Value, prefix string) bool {
	b := body(v)
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

// head is the beginning of a string, without a copy of the rest.
func head(v jsonv.Value) string {
	const most = 320
	b := body(v)
	return msg.Quoted(b[:min(len(b), most)]).String()
}

// ordinal tells apart the parts of one kind that an item has.
func ordinal(key string, n *int) string {
	*n++
	if *n == 1 {
		return key
	}
	return key + "/" + strconv.Itoa(*n-1)
}

// number is a number as an attribute's value; empty when v is none.
func number(v jsonv.Value) string {
	const most = 32
	if raw := v.Peek(); v.Is(jsonv.Number) && len(raw) <= most {
		return string(raw)
	}
	return ""
}

// hash is 64 bits of FNV-1a: enough to tell the few texts apart that are
// remembered at a time, and the same in every process.
func hash[T string | []byte](h uint64, s T) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

const hashBasis = 14695981039346656037
