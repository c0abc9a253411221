package clickhouse

import (
	chproto "github.com/ClickHouse/ch-go/proto"

	"github.com/earshot-dev/earshot/core/msg"
)

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
