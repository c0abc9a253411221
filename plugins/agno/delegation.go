package agno

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// The wire does not link a member's run to one of the team's open calls: the run names the
// team's run and no call. One open call is the caller. Of several (a model may delegate in
// parallel) the member that a call names decides, then their order. The result of a call
// repeats the text of its child, so it corrects the order for delegations that are not
// emitted as complete yet.

// delegation is the part of a call that delegates work to members.
type delegation struct {
	Delegates bool             `json:",omitempty"`
	Many      bool             `json:",omitempty"` // delegates to several members at once
	To        string           `json:",omitempty"` // as the model wrote it
	Task      string           `json:",omitempty"` // while it is open
	Asked     conversation.Sum `json:",omitempty"` // of the task
	Children  []child          `json:",omitempty"`
	Draft     *draft           `json:",omitempty"` // of a delegation that is not complete
	Inferred  bool             `json:",omitempty"` // derived from its child run; the stored form has no such call
	Parallel  bool             `json:",omitempty"` // another delegation of its run was open at the same time
}

// draft has the fields of a delegation that is emitted again when its member is known.
type draft struct {
	Arguments string
	Model     string `json:",omitempty"`
	Provider  string `json:",omitempty"`
	Reply     string `json:",omitempty"`
}

// child is a run that a delegation caused.
type child struct {
	Run        string
	Agent      msg.Agent
	Link       msg.LinkMethod   `json:",omitempty"`
	Confidence uint8            `json:",omitempty"`
	Answer     conversation.Sum `json:",omitempty"` // of its text, when it is over
	End        int64            `json:",omitempty"` // Unix ns, when it is over
}

// guessed reports whether the order alone decided that the call caused it: not its answer.
func (k *child) guessed() bool { return k.Link == msg.ByOrder && k.Confidence != byAnswer }

// Confidence in percent of the ways to find a child's call.
const (
	byMember = 95 // the only open call that names the member
	byAnswer = 90 // the call's result is the child's text
)

// taskOf returns the task in the arguments of a delegation.
func taskOf(args jsonv.Value) msg.Text {
	return peekText(args.First("task", "task_description", "expected_output"))
}

// delegation returns what a call delegates; the zero value if it is no delegation.
func (t *calls) delegation(u use) (d delegation) {
	if d.Delegates, d.Many = machinery[u.name] > 0, machinery[u.name] == many; !d.Delegates {
		return d
	}
	if d.To = u.member(); d.To == "" && d.Many {
		d.To = "*" // all members
	}
	if d.Task = taskOf(u.args).String(); d.Task == "" {
		var all conversation.Texts
		for id := range jsonv.Each(u.args.First("task_id", "task_ids")) {
			all.Add(msg.Plain(t.task(id)))
		}
		d.Task = all.Joined().String()
	}
	d.Asked = conversation.SumOf(d.Task)
	return d
}

// delegate emits the call as a delegation of r. The model writes the id of a member; the
// display name is in the member's own events. The delegation is partial until an event of its
// member or the result arrives, so that every message has the same name for an agent.
func (c *call) delegate(r *run, complete bool) {
	d := c.Draft
	if d == nil {
		return
	}
	m := r.add(msg.Delegation, "call:"+c.ID, c.At)
	c.describe(m)
	m.Role, m.Hidden = msg.RoleAssistant, false
	m.Tool.Arguments, m.Delegation.Task = msg.Plain(d.Arguments), msg.Plain(c.Task)
	m.Model, m.Provider, m.ResponseID = d.Model, d.Provider, d.Reply
	m.Delegation.To, m.Delegation.ToID = c.member(r.s.Names)
	if len(c.Children) == 1 && !c.Many && !c.Children[0].guessed() { // the result may correct a guess
		c.Children[0].link(m)
	}
	if c.Inferred {
		m.Complete = msg.Summary
		m.SetAttr("inferred", "true")
	}
	if complete {
		c.Draft = nil
	} else {
		m.Complete = msg.Partial
	}
}

// link writes the child into a message of its call.
func (k *child) link(m *msg.Message) {
	m.Delegation.ChildRun, m.Delegation.Link, m.Delegation.Confidence = k.Run, k.Link, k.Confidence
}

// member returns the name and the id of the member that a call delegates to.
func (d *delegation) member(known names) (name, id string) {
	if len(d.Children) == 1 {
		k := d.Children[0]
		if a := k.Agent; a.Name != "" && a.Name != a.ID && (!k.guessed() || namesAgent(d.To, a)) {
			return a.Name, cmp.Or(a.ID, d.To)
		}
	}
	return known.of(d.To)
}

// link finds the call of the parent p that caused r, which begins with this event. Of a run that is decoded from its messages
// the task is known, and its call may be over.
func (t *calls) link(p, r *run, e *event) {
	r.Link = msg.ByParent
	all := bounded.All(t.List, func(c *call) bool { return c.Delegates && !c.Inferred })
	open := bounded.All(all, func(c *call) bool { return !c.Over })
	if len(open) == 1 {
		open[0].attach(p, r)
		return
	}
	free := func(c *call) bool { return c.Many || len(c.Children) == 0 }
	fits := bounded.All(open, free)
	if e.said {
		fits = bounded.All(all, free)
	} else if len(fits) == 0 {
		fits = open
	}
	if len(fits) == 0 {
		return
	}
	task, asked := conversation.SumOfText(inputOf(e.in)), false
	for i, better := range [...]func(*call) bool{
		func(c *call) bool { return e.said && c.Asked == task },
		func(c *call) bool { return namesAgent(c.To, r.Agent) },
		func(c *call) bool { return c.Many },
	} {
		if some := bounded.All(fits, better); len(some) > 0 {
			fits, asked = some, i == 0
			break
		}
	}
	assigned, by := r.s.body.assigned(p, r)
	c := fits[max(slices.Index(fits, assigned), 0)]
	// A call that has another child of the same name by order alone may be this run's call.
	n := len(fits) + len(bounded.All(open, func(o *call) bool {
		return len(o.Children) > 0 && o.Children[0].guessed() && slug(o.To) == slug(c.To) && !slices.Contains(fits, o)
	}))
	switch {
	case asked, n > 1 && c == assigned && by == msg.ByPrompt:
		r.Link = msg.ByPrompt
	case n == 1:
		r.Confidence = byMember
	default:
		r.Link, r.Confidence = msg.ByOrder, uint8(100/n)
	}
	c.attach(p, r)
}

// attach makes r a child of the delegation, of which the child is emitted by itself if it is over.
func (c *call) attach(p, r *run) {
	r.Call = c.ID
	k := c.add(r)
	switch {
	case !c.Over:
		c.delegate(p, true)
	case !c.Many:
		m := p.status("link:"+r.Call, "link", p.Last)
		m.Tool.CallID, m.Signal = r.Call, msg.Link
		m.Delegation.To, m.Delegation.ToID = c.member(r.s.Names)
		k.link(m)
	}
}

func (d *delegation) add(r *run) *child {
	d.Children = bounded.Push(d.Children, child{Run: r.ID, Agent: r.Agent, Link: r.Link, Confidence: r.Confidence}, maxCalls)
	return &d.Children[len(d.Children)-1]
}

// infer adds a delegation between a stored team p and a run below it, when the stored
// form has none of the team's calls: the parent_run_id of the run proves the delegation.
func (t *calls) infer(p, r *run, at conversation.Time) {
	told := slices.ContainsFunc(t.List, func(c *call) bool { return c.Delegates && !c.Inferred })
	if r.s.body == nil || r.Call != "" || told || !p.Begun || p.Agent.Kind == msg.KindWorkflow {
		return
	}
	v := r.s.body.stored(r)
	r.Call, r.Link = msg.InferredCall(r.ID), msg.ByParent
	c := &call{Call: conversation.Call{ID: r.Call, Name: "delegate_task_to_member"}, At: conversation.TimeOf(v.Get("created_at")).Or(at)}
	c.delegation = delegation{Delegates: true, Inferred: true, To: cmp.Or(r.Agent.ID, r.Agent.Name), Task: inputOf(v).String(), Draft: &draft{}}
	c.add(r)
	t.add(p, c)
	c.delegate(p, true)
}

// inferResult emits the result of an inferred delegation of p when its child r ends.
func (t *calls) inferResult(p, r *run, failed bool, at conversation.Time) {
	c := t.get(msg.InferredCall(r.ID))
	if c == nil {
		return
	}
	t.remove(c)
	m := p.add(msg.DelegationResult, "result:"+c.ID, at)
	c.describe(m)
	m.Role, m.Content, m.IsError = msg.RoleTool, asText(r.s.body.stored(r).Get("content")), failed
	c.delegated(p, m)
	m.Complete = msg.Summary
	m.SetAttr("inferred", "true")
}

// delegated makes m the result of a delegation of r.
func (c *call) delegated(r *run, m *msg.Message) {
	m.Kind, m.Hidden = msg.DelegationResult, false
	m.Delegation.To, m.Delegation.ToID = c.member(r.s.Names)
	switch len(c.Children) {
	case 0:
		if text := m.Content.String(); strings.HasPrefix(text, "Member with ID ") && strings.Contains(text, " not found") {
			m.IsError, m.Tool.ErrorType = true, "not_found"
		}
	case 1:
		c.Children[0].link(m)
	}
}

// endDelegation ends a delegation that has its result, and its child runs, which may have no
// end event of their own.
func (t *calls) endDelegation(r *run, c *call, result msg.Text, at conversation.Time) {
	for _, k := range c.Children {
		if below := r.s.Runs.get(k.Run); below != nil && below != r {
			until := at
			if c.Parallel { // the result's time is that of the slowest delegation
				until = conversation.Time{}
			}
			below.endUnannounced(until)
		}
	}
	if len(c.Children) == 1 && c.Children[0].guessed() {
		t.confirm(c, conversation.SumOfText(result))
	}
	c.delegate(r, true)
}

// confirm compares the call's result with the text of the child that order chose. When
// another call's child has that text, the two calls swap their children.
func (t *calls) confirm(c *call, answer conversation.Sum) {
	mine := &c.Children[0]
	if mine.Answer == answer {
		mine.Confidence = byAnswer
		return
	}
	others := bounded.All(t.open(), func(o *call) bool {
		return o != c && len(o.Children) == 1 && o.Children[0].guessed() && o.Children[0].Answer == answer
	})
	if len(others) == 1 {
		*mine, others[0].Children[0] = others[0].Children[0], *mine
		mine.Link, mine.Confidence = msg.ByPrompt, byAnswer
	}
}

// ended notes the text and the end of a run in the call that caused it, and in the
// workflow that it works for.
func (r *run) ended(answer conversation.Sum, at conversation.Time) {
	p := r.parent()
	if p == nil {
		return
	}
	for _, c := range p.Calls.open() {
		for i := range c.Children {
			if k := &c.Children[i]; k.Run == r.ID {
				k.Answer, k.Agent, k.End = answer, r.Agent, at.Nanos
			}
		}
	}
	if p.Agent.Kind == msg.KindWorkflow {
		p.Steps.Answers.Add(answer, maxAnswers)
	}
}

// lasted returns how long a delegate worked, in nanoseconds; 0 when it worked
// until its result was reported. AGNO reports the results of parallel delegations together,
// when the last one ends. took is the measured duration; for a member with a streamed answer
// it ends when the answer begins.
func (c *call) lasted(took int64, at conversation.Time) int64 {
	const second = int64(1e9)
	until := at.Nanos
	if len(c.Children) == 1 && c.Parallel && c.Children[0].End != 0 {
		until = min(until, c.Children[0].End)
	}
	lasted := max(until-c.At.Nanos, 0)
	switch {
	case c.At.Nanos == 0:
	case took > lasted-second && took < lasted+second: // the same, and finer
		return took
	case until < at.Nanos:
		return max(lasted, 1)
	case c.Parallel && len(c.Children) == 0 && took >= second && took < lasted: // of a member without events
		return took
	}
	return 0
}

// names are the agents of earlier events by the slugs of their ids and names, oldest first.
type names []named

type named struct {
	Slug  string
	Agent msg.Agent
}

// maxNames limits the names in the state.
const maxNames = 512

// learn notes an agent's name.
func (n *names) learn(a msg.Agent) {
	if a.ID == "" || a.Name == "" || a.ID == a.Name {
		return
	}
	for _, s := range [...]string{slug(a.ID), slug(a.Name)} {
		if !slices.ContainsFunc(*n, func(k named) bool { return k.Slug == s }) {
			*n = bounded.Push(*n, named{s, a}, maxNames)
		}
	}
}

// of returns the display name and the id of the member that a call names, or the name in the
// call when no event named that member.
func (n names) of(written string) (name, id string) {
	s := slug(written)
	for _, k := range n {
		if k.Slug == s {
			return k.Agent.Name, k.Agent.ID
		}
	}
	return written, ""
}

// namesAgent reports whether member is the id or the name of the agent.
func namesAgent(member string, a msg.Agent) bool {
	to := slug(member)
	return to != "" && (to == slug(a.ID) || to == slug(a.Name))
}

// slug makes names comparable: a model writes web-content-gather for the agent
// web_content_gather, or for "Web Content Gather".
func slug(name string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return r == '-' || r == '_' || r == ' ' || r == '.'
	}), "-")
}
