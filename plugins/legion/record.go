package legion

import (
	"slices"
	"strconv"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/when"
)

// stamp is a time and its text in the record.
type stamp struct {
	conversation.Time
	raw []byte // as written, for keys
}

func stampOf(v jsonv.Value) (t stamp) {
	switch v.Kind() {
	case jsonv.String:
		var ok bool
		t.raw = v.Chars()
		if t.Nanos, t.Precision, ok = when.Parse(string(t.raw)); ok {
			v.MarkRead()
		}
	case jsonv.Number:
		t.raw = v.Peek()
		t.Nanos, t.Precision, _ = when.Number(string(t.raw))
	}
	return t
}

// or returns t, or the other when t is no time.
func (t stamp) or(other stamp) stamp {
	if t.Nanos == 0 {
		return other
	}
	return t
}

// record is one line on its way into messages.
type record struct {
	d    *Decoder
	sc   *scratch
	out  *decoder.Output
	raw  []byte // the whole frame
	root jsonv.Value
	head head // of root

	typ  string // in the words of generation 1
	id   []byte // its own id; empty on older lines
	at   stamp
	s    *session
	lane *lane // the run that it belongs to

	parent jsonv.Value // the call of that run, if the record is the first that names it

	texts, thoughts int // parts of each kind so far
}

// record takes one object, in an envelope or not.
func (d *Decoder) record(sc *scratch, out *decoder.Output, raw []byte, root jsonv.Value) {
	before := len(out.Messages)
	r := record{d: d, sc: sc, out: out, raw: raw, root: root, head: headOf(root)}
	var envelope head
	if r.head.data.Is(jsonv.Object) && r.head.typ.Equal("message") {
		envelope, r.root = r.head, r.head.data
		r.head = headOf(r.root)
	}
	r.id = read(r.head.id)
	r.at = stampOf(r.head.timestamp)
	if sent := stampOf(envelope.timestamp); r.at.Nanos == 0 {
		r.at.Time = sent.Time // raw is kept: the file's line has no envelope
	}
	if r.head.comm.Exists() {
		r.comm(r.root)
	} else {
		var old bool
		r.s, old = d.session(out, &r.head, envelope.session)
		r.lane = &r.s.Top
		if r.head.stored.Is(jsonv.String) {
			r.stored()
		} else {
			r.flat()
		}
		r.markNames(out.Messages[before:], old, envelope.session)
	}
	rest.Keep(&sc.doc, out, before, func(m *msg.Message) { m.Session = r.s.ID })
}

// markNames counts the members that name the session and the run as read, if the messages of
// the record have those names, or earlier messages had.
func (r *record) markNames(messages []msg.Message, old bool, envelope jsonv.Value) {
	if old || len(messages) > 0 {
		known(r.head.session) // if it is a string, the session is called so
		envelope.Equal(r.s.ID)
	}
	if r.parent.Exists() && slices.ContainsFunc(messages, func(m msg.Message) bool { return m.ParentCall == r.lane.Call }) {
		r.parent.MarkRead()
	}
}

// add adds a message of the record's run.
func (r *record) add(k msg.Kind, role msg.Role) *msg.Message {
	m := r.out.Add()
	m.Session = r.s.ID
	m.Kind, m.Role = k, role
	r.at.Set(m)
	m.Complete = msg.Complete
	r.lane.mark(m)
	return m
}

// key names the part of the record with that text: after the record's id, or by
// a hash of the record's facts. n counts the parts of one kind.
func (r *record) key(part string, n int, text msg.Text) string {
	sc := r.sc
	if len(r.id) > 0 {
		sc.key = append(append(sc.key[:0], r.id...), part...)
	} else {
		sc.key = sc.hashKey(r.typ, part, r.at.raw, text)
	}
	if n > 0 {
		sc.key = append(sc.key, '/')
		sc.key = strconv.AppendInt(sc.key, int64(n), 10)
	}
	return sc.str(sc.key)
}

// unknown keeps the record, or a part of it, as it is.
func (r *record) unknown(typ string, raw []byte) {
	if typ == "" {
		typ = "untyped"
	}
	m := r.out.Unknown(typ, raw)
	m.Session, m.Key = r.s.ID, "unknown:"+msg.HashKey(string(raw))
	if len(raw) < len(r.raw) { // a part may come again in another record
		m.Key = "unknown:" + msg.HashKey(string(raw), string(r.at.raw))
	}
	if len(raw) == len(r.raw) {
		r.sc.doc.Root().MarkRead()
	}
	r.at.Set(m)
	r.lane.mark(m)
}

// status adds a hidden message about the run itself.
func (r *record) status(text msg.Text) *msg.Message {
	m := r.add(msg.Status, msg.NoRole)
	m.Key = r.key("", 0, text)
	m.Content, m.Hidden = text, true
	m.Attrs = make([]msg.Attr, 0, 4)
	m.SetAttr("type", r.typ)
	return m
}

// attrs sets the attributes of those names to the members' values; their values
// share one string.
func (r *record) attrs(m *msg.Message, v jsonv.Value, names ...string) {
	type span struct {
		name     string
		from, to int
	}
	var spans [16]span
	n, b := 0, r.sc.key[:0]
	for _, name := range names {
		switch x := v.Get(name); x.Kind() {
		case jsonv.String, jsonv.Number, jsonv.True, jsonv.False:
			from := len(b)
			b = x.Text().Append(b)
			spans[n] = span{name, from, len(b)}
			n++
		}
	}
	r.sc.key = b
	values := r.sc.str(b)
	m.Attrs = slices.Grow(m.Attrs, n)
	for _, s := range spans[:n] {
		m.SetAttr(s.name, values[s.from:s.to])
	}
}
