package llmmessage

import (
	"time"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// addStatistics emits the tokens of calls of the model:
//
//	[{"id":1,"call_type":"ask","timestamp":"…","input_tokens":352,"output_tokens":210,"origin":"solver","agent":"…","model":"…"}]
//
// Older servers put them into an object with calls, or have nothing but totals. The agents of a
// process share the list: each repeats the calls of all, under its own name, and the end of the
// pipeline repeats all once more.
func (d *stream) addStatistics(e *event, v jsonv.Value, p *phase) {
	list := v
	if v.Is(jsonv.Object) {
		if list = v.Get("calls"); !list.Is(jsonv.Array) {
			d.addUsage(e, v, ident.Of(v.Get("model")), p)
			return
		}
	}
	for c := range list.Elems() {
		model := ident.Of(c.Get("model"))
		if model == "" {
			model = ident.Of(v.Get("model"))
		}
		d.addUsage(e, c, model, p)
	}
}

// addUsage emits the tokens of one call, unless they were emitted.
func (d *stream) addUsage(e *event, c jsonv.Value, model string, p *phase) {
	in, out := c.First("input_tokens", "total_input_tokens"), c.First("output_tokens", "total_output_tokens")
	if !in.Exists() && !out.Exists() {
		return
	}
	response := "llm:" + msg.HashKey(string(c.Get("id").Peek()), string(c.Get("timestamp").Peek()), string(c.Get("call_type").Peek()),
		string(c.Get("total_calls").Peek()), string(in.Peek()), string(out.Peek()))
	h := d.hash([]byte(response))
	if e.s.Done.has(h) {
		for _, name := range [...]string{"timestamp", "call_type", "model", "agent", "origin"} {
			ident.Of(c.Get(name))
		}
		return
	}
	e.s.Done.add(h, maxDone)
	var m *msg.Message
	if p != nil {
		m = e.addForPhase(msg.Usage, "usage:"+response, *p)
	} else {
		m = e.add(msg.Usage, "usage:"+response)
	}
	m.Hidden, m.Model, m.ResponseID = true, model, response
	if t := parseTime(c.Get("timestamp"), time.UTC); t.Time != 0 { // these are UTC, also where the others are local
		m.Time, m.Precision = t.Time, t.Precision
	}
	m.Usage = msg.Tokens{Input: in.Uint(), Output: out.Uint(), Provenance: msg.Provider}
	if c.Get("stream").Bool() { // counted by the agent
		m.Usage.Provenance = msg.Estimated
	}
	if name := ident.Of(c.Get("agent")); name != "" && p == nil {
		m.Agent.Name = name
	}
	m.SetAttr("call_type", ident.Of(c.Get("call_type")))
	m.SetAttr("origin", ident.Of(c.Get("origin")))
}
