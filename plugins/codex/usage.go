package codex

import (
	"strconv"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// response is what the model gave between two inputs. The format has no id for
// it; the key of its first part stands for one.
type response struct {
	ID      string
	Run     string
	Last    string `json:",omitempty"` // key of its last part
	Closed  bool   `json:",omitempty"` // the model got something to answer since
	Counted bool   `json:",omitempty"` // its usage was given
	Items   bool   `json:",omitempty"` // response_items of it were read
	Early   bool   `json:",omitempty"` // its usage came before its response_items, as in 0.40
}

// part adds a part of the response that goes on, or of a new one. id is the key of
// the item that the part is of.
func (d *thread) part(r *record, kind msg.Kind, id, key string) *msg.Message {
	d.wake(r)
	d.Answered = true
	item := r.root.Get("type").Equal("response_item")
	if !d.Response.takes(item) {
		d.Response = &response{ID: id, Run: d.Run}
	}
	d.Compacted = false
	d.Response.Items = d.Response.Items || item
	m := d.give(r, kind, key)
	m.Role = msg.RoleAssistant
	m.Model, m.Provider, m.ResponseID = d.Model, d.Provider, d.Response.ID
	m.ParentKey, d.Response.Last = d.Response.Last, key
	return m
}

// takes reports whether a part belongs to the response. One whose usage was told is
// over, unless its response_items are still to come.
func (p *response) takes(item bool) bool {
	return p != nil && !p.Closed && (!p.Counted || p.Early && item)
}

// close notes that the model has something new to answer.
func (d *thread) close() {
	if d.Response != nil {
		d.Response.Closed = true
	}
}

// counts are tokens as the protocol counts them: input with what was cached,
// output with the reasoning.
type counts struct {
	Input      uint64 `json:",omitempty"`
	CacheRead  uint64 `json:",omitempty"`
	CacheWrite uint64 `json:",omitempty"`
	Output     uint64 `json:",omitempty"`
	Reasoning  uint64 `json:",omitempty"`
}

func read(v jsonv.Value) counts {
	return counts{
		Input: v.Get("input_tokens").Uint(), CacheRead: v.Get("cached_input_tokens").Uint(), CacheWrite: v.Get("cache_write_input_tokens").Uint(),
		Output: v.Get("output_tokens").Uint(), Reasoning: v.Get("reasoning_output_tokens").Uint(),
	}
}

// exclusive takes the counts apart, so that their sum is what was processed.
func (c counts) exclusive() msg.Tokens {
	t := msg.Tokens{CacheRead: min(c.CacheRead, c.Input), Reasoning: min(c.Reasoning, c.Output), Provenance: msg.TranscriptFinal}
	t.CacheWrite = min(c.CacheWrite, c.Input-t.CacheRead)
	t.Input = c.Input - t.CacheRead - t.CacheWrite
	t.Output = c.Output - t.Reasoning
	return t
}

// since is how much more c is than the older o; c itself if the sum began anew.
func (c counts) since(o counts) counts {
	if c.Input < o.Input || c.CacheRead < o.CacheRead || c.CacheWrite < o.CacheWrite || c.Output < o.Output || c.Reasoning < o.Reasoning {
		return c
	}
	return counts{c.Input - o.Input, c.CacheRead - o.CacheRead, c.CacheWrite - o.CacheWrite, c.Output - o.Output, c.Reasoning - o.Reasoning}
}

// tokens decodes token_count:
//
//	{"info": {"total_token_usage": {…}, "last_token_usage": {…}, "model_context_window": n} | null, "rate_limits": {…}}
//
// It is one response's usage if the total has moved. A version that has no total
// tells of a response each time.
func (d *thread) tokens(r *record) {
	info := r.p.Get("info")
	total, last := read(info.Get("total_token_usage")), read(info.Get("last_token_usage"))
	moved := total != d.Total
	if total == (counts{}) {
		moved, total = last != (counts{}), d.Total
	} else if last == (counts{}) {
		last = total.since(d.Total)
	}
	d.Total = total
	if !moved || last == (counts{}) {
		m := d.status(r, r.id(), "token_count")
		d.limits(m, r)
		if info.Is(jsonv.Object) && !info.Get("total_token_usage").Exists() {
			m.Content = info.JSON() // of a form that nobody knows
		}
		return
	}
	run, key, p := d.Run, r.id(), d.Response
	switch {
	case p != nil && !p.Counted:
		run, key = p.Run, p.ID
		p.Early = !p.Items && !p.Closed
	case run != "" && (p == nil || p.Closed) && !d.Compacted: // a response of which nothing has come yet
		p = &response{ID: key, Run: run, Early: true}
		d.Response = p
	default:
		p = nil // a request of the CLI's own, to compact the context
	}
	m := d.giveIn(r, run, msg.Usage, "usage:"+key)
	m.Hidden, m.Model, m.Provider = true, d.Model, d.Provider
	m.Usage = last.exclusive()
	if p != nil {
		p.Counted = true
		m.ResponseID, m.ParentKey = p.ID, p.Last
	}
	m.SetAttr("context_window", number(info.Get("model_context_window")))
	d.limits(m, r)
}

// limits adds how much of its allowance the account has used.
func (d *thread) limits(m *msg.Message, r *record) {
	v := r.p.Get("rate_limits")
	m.SetAttr("primary_used_percent", number(v.Get("primary").First("used_percent")))
	m.SetAttr("secondary_used_percent", number(v.Get("secondary").First("used_percent")))
	m.SetAttr("rate_limit_reached", ident(v.Get("rate_limit_reached_type")))
}

// count is a number of things as an attribute's value; empty when there are none.
func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
