package clickhouse

import (
	"reflect"
	"time"

	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"

	"github.com/earshot-dev/earshot/core/msg"
)

// driverColumns appends the messages as slices, one per column.
func driverColumns(block *proto.Block, messages []msg.Message) error {
	cols := make([]reflect.Value, len(block.Columns))
	for i := range messages {
		for c, v := range driverRow(&messages[i]) {
			if i == 0 {
				cols[c] = reflect.MakeSlice(reflect.SliceOf(reflect.TypeOf(v)), 0, len(messages))
			}
			cols[c] = reflect.Append(cols[c], reflect.ValueOf(v))
		}
	}
	for c := range cols {
		if _, err := block.Columns[c].Append(cols[c].Interface()); err != nil {
			return err
		}
	}
	return nil
}

// tunedRow gives the driver pointers to scratch where it takes them, so that
// texts are not boxed.
type tunedRow struct {
	arguments, task, content []byte
	values                   []any
	strings                  [24]string
	dict                     map[string]any
}

func (r *tunedRow) append(block *proto.Block, m *msg.Message) error {
	if r.dict == nil {
		r.dict = make(map[string]any)
	}
	lc := func(s string) any {
		v, ok := r.dict[s]
		if !ok {
			v = s
			r.dict[s] = v
		}
		return v
	}
	n := 0
	str := func(s string) any { r.strings[n] = s; n++; return &r.strings[n-1] }
	hex := func(zero bool, s func() string) any {
		if zero {
			return str("")
		}
		return str(s())
	}
	h := &m.Host
	r.arguments = m.Tool.Arguments.Append(r.arguments[:0])
	r.task = m.Delegation.Task.Append(r.task[:0])
	r.content = m.Content.Append(r.content[:0])
	attributes := make(map[string]string)
	m.EachAttribute(func(k, v string) { attributes[k] = v })
	r.values = append(r.values[:0], lc(h.Tenant), lc(h.Source), lc(h.Format), time.Unix(0, m.Time), str(m.Session), str(m.Run), str(m.ParentRun),
		str(h.ID.String()), h.Seq, hex(h.Parent.IsZero(), h.Parent.String), hex(h.TraceID.IsZero(), h.TraceID.String), hex(h.SpanID.IsZero(), h.SpanID.String),
		str(m.Agent.ID), lc(m.Agent.Name), lc(m.Agent.Kind.String()), lc(m.Role.String()), lc(m.Kind.String()), lc(m.Provider), lc(m.Model),
		lc(m.Tool.Name), str(m.Tool.CallID), &r.arguments, lc(m.Delegation.To), &r.task, str(m.Delegation.ChildRun),
		lc(m.Delegation.Link.String()), lc(m.FinishReason), m.IsError, m.Complete > msg.Partial, m.Hidden, &r.content, uint32(len(r.content)),
		m.Usage.Input, m.Usage.Output, m.Usage.CacheRead, m.Usage.CacheWrite, m.Usage.Reasoning, attributes, h.Ver, uint8(0))
	return block.Append(r.values...)
}

// chColumns are the typed columns of ch-go as they come.
type chColumns struct {
	input chproto.Input
	lc    []*chproto.ColLowCardinality[string]
	str   []*chproto.ColStr
	id    *chproto.ColFixedStr
	u64   []*chproto.ColUInt64
	bytes *chproto.ColUInt32
	flags []*chproto.ColBool
	attrs *chproto.ColMap[string, string]
	del   *chproto.ColUInt8
	kv    []chproto.KV[string, string]
	text  []byte
}

func newChColumns() *chColumns {
	c := &chColumns{}
	put := func(col chproto.ColInput) { c.input = append(c.input, chproto.InputColumn{Name: "c", Data: col}) }
	for range 14 {
		l := chproto.NewLowCardinality[string](new(chproto.ColStr))
		c.lc = append(c.lc, l)
		put(l)
	}
	for range 11 {
		s := new(chproto.ColStr)
		c.str = append(c.str, s)
		put(s)
	}
	c.id = &chproto.ColFixedStr{Size: 32}
	put(c.id)
	for range 7 {
		u := new(chproto.ColUInt64)
		c.u64 = append(c.u64, u)
		put(u)
	}
	c.bytes = new(chproto.ColUInt32)
	put(c.bytes)
	for range 3 {
		f := new(chproto.ColBool)
		c.flags = append(c.flags, f)
		put(f)
	}
	c.attrs = chproto.NewMap[string, string](chproto.NewLowCardinality[string](new(chproto.ColStr)), new(chproto.ColStr))
	put(c.attrs)
	c.del = new(chproto.ColUInt8)
	put(c.del)
	return c
}

func (c *chColumns) add(m *msg.Message) {
	h := &m.Host
	for i, s := range [...]string{
		h.Tenant, h.Source, h.Format, m.Agent.Name, m.Agent.Kind.String(), m.Role.String(), m.Kind.String(),
		m.Provider, m.Model, m.Tool.Name, m.Delegation.To, m.Delegation.Link.String(), m.FinishReason, "",
	} {
		c.lc[i].Append(s)
	}
	for i, s := range [...]string{
		m.Session, m.Run, m.ParentRun, h.TraceID.String(), h.SpanID.String(), m.Agent.ID, m.Tool.CallID, m.Delegation.ChildRun,
	} {
		c.str[i].Append(s)
	}
	for i, t := range [...]msg.Text{m.Tool.Arguments, m.Delegation.Task, m.Content} {
		c.text = t.Append(c.text[:0])
		c.str[8+i].AppendBytes(c.text)
	}
	c.id.Append([]byte(h.ID.String()))
	for i, v := range [...]uint64{h.Seq, m.Usage.Input, m.Usage.Output, m.Usage.CacheRead, m.Usage.CacheWrite, m.Usage.Reasoning, h.Ver} {
		c.u64[i].Append(v)
	}
	c.bytes.Append(uint32(len(c.text)))
	c.flags[0].Append(m.IsError)
	c.flags[1].Append(m.Complete > msg.Partial)
	c.flags[2].Append(m.Hidden)
	c.kv = c.kv[:0]
	m.EachAttribute(func(k, v string) { c.kv = append(c.kv, chproto.KV[string, string]{Key: k, Value: v}) })
	c.attrs.AppendKV(c.kv)
	c.del.Append(0)
}
