package agno

import (
	"cmp"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// pause: the run waits for a person, or for results from outside. Calls that need permission
// have no start event, so they are emitted here:
//
//	{"event":"RunPaused","tools":[{"tool_call_id":"c1","requires_confirmation":true, …}],
//	 "requirements":[{"member_run_id":"…","tool_execution":{"tool_call_id":"c1", …}}]}
func (r *run) pause(e *event) {
	r.Text.close(r, e.at, msg.Complete)
	waits := waiting(e.v, r.ID)
	outside := len(waits) > 0
	for _, tool := range waits {
		u, reason := r.s.use(tool), reasonOf(tool)
		outside = outside && reason == external
		r.Calls.start(r, u, e.at)
		if c := r.Calls.of(u, r); c != nil && !c.Waits && reason != "" {
			c.Waits = true
			m := c.wait(r, msg.WaitStart, "wait:", e.at)
			m.SetAttr("for", reason)
			if reason == external {
				m.SetAttr(msg.AttrWaitsFor, msg.ForOutside)
			}
		}
	}
	for q := range e.v.Get("requirements").Elems() { // they repeat the calls of their runs
		of := r
		conversation.TimeOf(q.Get("created_at"))
		if member := r.s.Runs.get(ident.PeekOrNumber(q.Get("member_run_id"))); member != nil {
			of = member
			q.Get("member_run_id").MarkRead()
			ident.Is(q.Get("member_agent_id"), of.Agent.ID)
			ident.Is(q.Get("member_agent_name"), of.Agent.Name)
		}
		u := r.s.use(q.Get("tool_execution"))
		id, _, _ := of.Calls.id(of, u)
		of.Calls.get(id).mark(u)
	}
	markRepeat(e.content, r.Text.Emitted.Sum)
	r.Usage.flush(r, msg.Complete)
	m := r.status(r.key("pause/"+e.second()), "pause", e.at)
	m.Signal = msg.RunPause
	if outside {
		m.SetAttr(msg.AttrWaitsFor, msg.ForOutside)
	}
	r.Text.Emitted = conversation.Written{}
}

// waiting returns the calls for which a paused run waits.
func waiting(v jsonv.Value, run string) []jsonv.Value {
	waits := slices.Collect(v.Get("tools").Elems())
	if len(waits) > 0 {
		return waits
	}
	for q := range v.Get("requirements").Elems() {
		member, tool := ident.PeekOrNumber(q.Get("member_run_id")), q.Get("tool_execution")
		if (member == "" || member == run) && tool.Is(jsonv.Object) {
			waits = append(waits, tool)
		}
	}
	return waits
}

// external is the reason of a call that waits for an external program that runs it, as opposed to a person.
const external = "external_execution"

// reasonOf returns the reason why a call waits; empty when it does not.
func reasonOf(tool jsonv.Value) string {
	switch {
	case tool.Get("requires_confirmation").Bool():
		return "confirmation"
	case tool.Get("requires_user_input").Bool():
		return "user_input"
	case tool.Get("external_execution_required").Bool():
		return external
	}
	return ""
}

func (c *call) wait(r *run, signal msg.Signal, prefix string, at conversation.Time) *msg.Message {
	m := r.status(prefix+c.ID, "permission", at)
	m.Signal, m.Tool.CallID, m.Tool.Name = signal, c.ID, c.Name
	return m
}

// resume: a paused run continues, perhaps in another stream than the one that it began in.
// The keys of its next messages contain this time, so that both streams produce the same
// keys.
func (r *run) resume(e *event) {
	t, u := &r.Text, &r.Usage
	t.close(r, e.at, msg.Complete)
	r.Started, r.Joined, r.Leg = true, false, e.second()
	t.After, t.Emitted = r.Leg, conversation.Written{}
	u.Replies, u.Reply, u.Waits = 0, "", false
	from := len(r.s.Out.Messages)
	r.status(r.key("resume/"+r.Leg), "resume", e.at).Signal = msg.RunResume
	// The decisions of a person about the calls are in the request that continues the run, or in
	// the stored run.
	decided := r.s.body.stored(r).Get("tools")
	if r.s.body == nil {
		if q, ok := r.s.take(decision, r.ID); ok && r.s.inner.Parse([]byte(q.Data)) == nil {
			decided = r.s.inner.Root()
		}
		for d := range decided.Elems() { // the wait began in another stream
			u := r.s.use(d)
			if id, _, _ := r.Calls.id(r, u); ident.OrNumber(u.id) != "" && d.Get("confirmed").Exists() && r.Calls.get(id) == nil {
				r.Calls.add(r, &call{Call: u.call(id), Waits: true, Args: conversation.SumOf("")})
			}
		}
	}
	for _, c := range r.Calls.open() {
		if c.Waits {
			c.decide(r, decided, e.at)
		}
	}
	if r.s.body == nil && decided.Exists() {
		r.s.KeepUnread(&r.s.inner, from)
	}
}

// decide ends the wait of a call, and emits the call's result when the decision contains it.
func (c *call) decide(r *run, decided jsonv.Value, at conversation.Time) {
	c.Waits = false
	var d jsonv.Value
	for x := range decided.Elems() {
		if ident.PeekOrNumber(x.Get("tool_call_id")) == cmp.Or(c.ProtocolID, c.ID) {
			d = x
		}
	}
	u := r.s.use(d)
	c.mark(u)
	m := c.wait(r, msg.WaitEnd, "waited:", at)
	switch {
	case d.Get("confirmed").Bool():
		m.SetAttr("decision", "allow")
	case u.refused:
		m.SetAttr("decision", "deny")
		u.result = d.First("confirmation_note", "result")
		r.Calls.result(r, u, at)
	case d.Get("external_execution_required").Bool() && !blank(u.result):
		r.Calls.result(r, u, at)
	}
}
