// Package atif decodes trajectories of the Agent Trajectory Interchange Format, versions 1.0 to
// 1.7: a document that is a whole file, or a line of one.
//
// Facts of the format that are easy to get wrong:
//
//   - A step of the agent is one response of the model with all its calls, and the results of
//     these calls are in the same step.
//   - prompt_tokens includes the cached tokens, completion_tokens the reasoning. The classes that
//     the format does not have are in metrics.extra, under the names of the agent that was converted.
//   - Some agents have no metrics in their steps (Codex, Hermes): final_metrics has their tokens.
//   - The documents of some agents all have the same session_id, and their files one name.
//   - Steps with is_copied_context repeat another trajectory: they are no work of this one.
//   - A result refers to the trajectory of a sub-agent by trajectory_id, never by session_id.
//   - No member marks where a run ends: at the next prompt, or with the document.
package atif

import (
	"cmp"
	_ "embed"
	"path"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return record.Format[struct{}]{
		Info: decoder.Info{
			Name:       "atif",
			Revision:   5,
			Summary:    "Trajectories of the Agent Trajectory Interchange Format, with those of sub-agents.",
			Transports: []frame.Kind{frame.Body, frame.Line},
			Documents:  []string{"*.json"},
		},
		LeavesOut: leavesOut,
		Open: func(r *record.Current, _ *struct{}) record.Reader {
			r.Origin = nameOf(r.Origin)
			return &stream{Current: r}
		},
	}.Factory()
}

// nameOf is the name of a stream whose documents name no session: that of its file. Files that all have one name, as
// <job>/<trial>/agent/trajectory.json, are named by their directories.
func nameOf(origin string) string {
	origin, _, _ = strings.Cut(strings.ReplaceAll(origin, `\`, "/"), ".json")
	dir, name := path.Split(origin)
	if name == "trajectory" || strings.HasPrefix(name, "trajectory.") {
		dirs := slices.DeleteFunc(strings.Split(dir, "/"), func(d string) bool { return d == "" || d == "." || d == "agent" })
		name = strings.Join(append(dirs[max(0, len(dirs)-2):], name), "/")
	}
	return ident.Bounded(strings.Trim(name, "/."))
}

// sessionOf is the session of a document. Some of the converted agents have none: their documents all have the same word.
func sessionOf(v jsonv.Value) string {
	id := ident.Of(v.Get("session_id"))
	if id == "unknown" || id == "harbor-session" || id == "copilot-cli" {
		return ""
	}
	return id
}

// maxDepth is how deep trajectories are embedded in others.
const maxDepth = 64

// stream decodes documents; nothing of one is needed for the next.
type stream struct {
	*record.Current
	session string
}

// trajectory has the facts of one while its steps are decoded.
type trajectory struct {
	id      string // empty at the top
	agent   msg.Agent
	version string
	model   string
	run     *conversation.Run
	runs    []*lastRun
	child   bool
	refs    map[string]cause // of embedded trajectories
	// embedded are the lists of trajectories that are embedded in it, and in those above it.
	embedded []jsonv.Value

	step  string // the key of the step
	at    conversation.Time
	by    string // the agent of the step, if it is another
	again bool   // the step is copied
	hide  bool

	metered bool // steps have metrics
}

// lastRun is a run and when its last step was.
type lastRun struct {
	conversation.Run
	at conversation.Time
}

// cause is the call that made a trajectory's agent run.
type cause struct{ run, call string }

// Read decodes a document.
func (d *stream) Read() {
	d.session = cmp.Or(sessionOf(d.Root), ident.Of(d.Root.Get("trajectory_id")), d.Origin, "unknown")
	if steps := d.Root.Get("steps"); !steps.Is(jsonv.Array) || !d.Root.Get("schema_version").HasPrefix("ATIF") {
		d.Unknown("document", d.Root)
		return
	}
	t := &trajectory{run: new(conversation.Run), refs: make(map[string]cause), embedded: []jsonv.Value{d.Root.Get("subagent_trajectories")}}
	if id := ident.Of(d.Root.Get("trajectory_id")); id != d.session {
		t.id = id // documents of one session have steps of the same numbers
	}
	first := len(d.Out.Messages)
	d.trajectory(d.Root, t, 0)
	for i := range d.Out.Messages[first:] { // a call of another document may have made its agent run
		if m := &d.Out.Messages[first+i]; m.Signal == msg.RunStart && m.ParentRun == "" {
			m.Delegation.CorrelationID = spawn.ID("atif", cmp.Or(t.id, d.session))
			break
		}
	}
}

// In returns the session.
func (d *stream) In() (session, run string) { return d.session, "" }

// trajectory decodes a trajectory and those embedded in it.
func (d *stream) trajectory(v jsonv.Value, t *trajectory, depth int) {
	t.agent = msg.Agent{Name: ident.Of(v.Path("agent", "name")), Kind: msg.KindAgent}
	t.version, t.model = ident.Of(v.Path("agent", "version")), ident.Of(v.Path("agent", "model_name"))
	n := 0
	for s := range v.Get("steps").Elems() {
		n++
		t.step = t.id + "/" + conversation.NonZero(n)
		d.stepOf(s, t)
	}
	if u := v.Get("final_metrics"); u.Is(jsonv.Object) && !t.metered {
		t.step, t.by, t.again = "total:"+t.id, "", false
		d.usage(u, "total_", t, &conversation.Response{ID: t.step, Model: t.model, Run: t.run.ID, At: t.at})
	}
	d.end(t)
	m := record.Hide(d.Add(msg.Status, "trajectory:"+t.id), "trajectory")
	m.Agent, m.Content = t.agent, v.Get("notes").Text()
	conversation.Attrs(m, v, "schema_version", "continued_trajectory_ref")
	m.SetAttr("model", t.model)
	if tools := v.Path("agent", "tool_definitions"); tools.Is(jsonv.Array) {
		m := record.Hide(d.Add(msg.Status, "tools:"+t.id), msg.TypeTools)
		m.Agent, m.Content = t.agent, tools.JSON()
	}
	for sub := range v.Get("subagent_trajectories").Elems() {
		n++
		d.embedded(sub, t, depth+1, t.id+"/"+conversation.NonZero(n))
	}
}

// embedded decodes a trajectory of a sub-agent.
func (d *stream) embedded(v jsonv.Value, in *trajectory, depth int, place string) {
	if !v.Is(jsonv.Object) || depth > maxDepth {
		return
	}
	t := &trajectory{id: cmp.Or(ident.Of(v.Get("trajectory_id")), place), child: true, refs: in.refs, embedded: append(slices.Clip(in.embedded), v.Get("subagent_trajectories"))}
	t.begin(t.id).Child = true
	parent := ident.Of(v.Path("extra", "parent_run_id"))
	ident.Of(v.Get("session_id"))
	if c, ok := in.refs[t.id]; ok {
		t.run.Caused(c.run, c.call, msg.ByNativeID, 100)
	} else if parent != "" && parent != t.id {
		t.run.Caused(parent, "", msg.ByParent, 100)
	}
	d.trajectory(v, t, depth)
}

// add adds a message of the step.
func (d *stream) add(t *trajectory, kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	m.Hidden, m.Agent = t.hide, t.agent
	m.Agent.Name = cmp.Or(t.by, m.Agent.Name)
	if t.again {
		m.Hidden = true
		m.SetAttr("type", msg.History)
	} else if t.run.Active() && t.run.Mark(m) && t.version != "unknown" {
		m.Client.Version = t.version
	}
	t.at.Set(m)
	return m
}

// begin makes the run with that id the one of the steps; steps of several runs may alternate.
func (t *trajectory) begin(id string) *conversation.Run {
	if r := bounded.Find(t.runs, func(r *lastRun) bool { return r.ID == id }); r != nil {
		t.run = &r.Run
		return t.run
	}
	t.runs = append(t.runs, &lastRun{Run: conversation.Run{ID: id}})
	t.run = &t.runs[len(t.runs)-1].Run
	return t.run
}

// end ends the runs, each at its last step.
func (d *stream) end(t *trajectory) {
	t.again, t.hide, t.by = false, true, ""
	for _, r := range t.runs {
		if t.run, t.at = &r.Run, r.at; r.Started {
			t.run.End(d.add(t, msg.Stop, "stop:"+r.ID))
		}
	}
}

// stepOf decodes a step.
func (d *stream) stepOf(v jsonv.Value, t *trajectory) {
	v.Get("step_id").Digits()
	extra, source := v.Get("extra"), v.Get("source")
	t.again = v.Get("is_copied_context").Bool()
	t.at, t.by, t.hide = conversation.TimeOf(v.Get("timestamp")), ident.Of(extra.Get("agent_name")), extra.Get("hidden").Bool()
	if id := extra.Get("run_id"); !t.child && !t.again {
		switch {
		case id.Is(jsonv.String): // empty: of no run
			t.begin(ident.Of(id))
		case source.Equal("user") || source.Equal("agent") && !t.run.Active():
			t.begin("run:" + msg.HashKey(d.session, t.step))
		}
	}
	for _, r := range t.runs {
		if &r.Run == t.run && !t.again {
			r.at = t.at.Or(r.at)
		}
	}
	first := len(d.Out.Messages)
	switch {
	case source.Equal("user"):
		m := d.add(t, msg.User, "user:"+t.step)
		m.Role, m.Agent.Kind, m.Agent.Name = msg.RoleUser, msg.KindHuman, t.by
		m.Content = joined(v.Get("message"), &m.Attachments)
	case source.Equal("agent"):
		d.answer(v, t)
	case written(v.Get("message")) || !v.Get("observation").Exists():
		m := d.add(t, msg.System, "system:"+t.step)
		m.Role = msg.RoleSystem
		if m.Content = joined(v.Get("message"), &m.Attachments); extra.Get("kind").Equal("error") {
			m.Kind, m.Role, m.IsError = msg.Error, msg.NoRole, true
		}
		if (extra.Get("compaction").Bool() || extra.Path("context_management", "type").Equal("compaction")) && m.Signal == msg.NoSignal {
			m.Signal = msg.Compaction
		}
		source.Equal("system")
	default: // results of calls that are not here
		v.Get("message").Text()
		source.Equal("system")
	}
	if !source.Equal("agent") {
		d.results(v, t, nil)
	}
	if first < len(d.Out.Messages) {
		m := &d.Out.Messages[first]
		conversation.Attrs(m, v, "reasoning_effort")
		m.SetAttr("llm_call_count", v.Get("llm_call_count").Digits())
	}
}

// written reports whether a message is there: a text or parts.
func written(v jsonv.Value) bool {
	return v.Is(jsonv.String) && len(v.Peek()) > len(`""`) || v.Len() > 0
}

// joined joins the texts of a message, which is a text or a list of parts, and collects its images.
func joined(v jsonv.Value, files *[]msg.Attachment) msg.Text {
	if !v.Is(jsonv.Array) {
		return v.Text()
	}
	var texts conversation.Texts
	for p := range v.Elems() {
		if !image(p, files) && p.Get("text").Is(jsonv.String) {
			p.Get("type").Equal("text")
			texts.Add(p.Get("text").Text())
		}
	}
	return texts.Joined()
}

// image reads a part that is an image: a reference to a file.
func image(p jsonv.Value, files *[]msg.Attachment) bool {
	if !p.Get("type").Equal("image") {
		return false
	}
	*files = append(*files, msg.Attachment{MediaType: ident.Of(p.Path("source", "media_type")), URL: ident.Of(p.Path("source", "path"))})
	return true
}

// answer decodes a response of the model with its calls and their results.
func (d *stream) answer(v jsonv.Value, t *trajectory) {
	extra, first := v.Get("extra"), len(d.Out.Messages)
	r := conversation.Response{ID: cmp.Or(ident.Of(extra.Get("response_id")), "step:"+t.step), Model: cmp.Or(ident.Of(v.Get("model_name")), t.model), Run: t.run.ID, At: t.at}
	if thoughts := v.Get("reasoning_content"); written(thoughts) {
		m := d.add(t, msg.Reasoning, "reasoning:"+t.step)
		m.Role, m.Content = msg.RoleAssistant, thoughts.Text()
		r.Mark(m)
		r.Last = m.Key
	}
	text, n := v.Get("message"), 0
	say := func(content msg.Text) *msg.Message {
		m := d.add(t, msg.Assistant, conversation.Ordinal("assistant:"+t.step, &n))
		m.Role, m.Content = msg.RoleAssistant, content
		r.Mark(m)
		r.Last = m.Key
		return m
	}
	if text.Is(jsonv.Array) {
		for p := range text.Elems() {
			var files []msg.Attachment
			if image(p, &files) {
				say(msg.Text{}).Attachments = files
			} else if p.Get("type").Equal("text") {
				say(p.Get("text").Text())
			}
		}
	} else if written(text) {
		say(text.Text())
	}
	calls := make(map[string]*msg.Message)
	d.refer(v, t)
	for c := range v.Get("tool_calls").Elems() {
		d.call(c, v, t, &r, calls)
	}
	u := v.Get("metrics")
	t.metered = t.metered || u.Is(jsonv.Object)
	if u.Is(jsonv.Object) && !t.again {
		d.usage(u, "", t, &r)
	} else if u.Is(jsonv.Object) && first < len(d.Out.Messages) {
		d.Out.Messages[len(d.Out.Messages)-1].SetAttr("copied_metrics", u.JSON().String())
	}
	d.results(v, t, calls)
}

// usage decodes the tokens of a response, or those of all of them.
func (d *stream) usage(u jsonv.Value, of string, t *trajectory, r *conversation.Response) {
	extra := u.Get("extra")
	c := conversation.Counts{
		Output: u.Get(of + "completion_tokens").Uint(), CacheRead: u.Get(of + "cached_tokens").Uint(),
		CacheWrite: extra.First("cache_write_tokens", "cache_creation_input_tokens", "input_cache_creation").Uint(),
		Reasoning:  extra.First("reasoning_tokens", "reasoning_output_tokens", "thoughts_tokens").Uint(),
	}
	if prompt := u.Get(of + "prompt_tokens").Uint(); prompt > c.CacheRead {
		c.Input = prompt - c.CacheRead
		c.CacheWrite = min(c.CacheWrite, c.Input)
		c.Input -= c.CacheWrite
	}
	if of != "" && c == (conversation.Counts{}) {
		return
	}
	r.Count(c, msg.TranscriptFinal)
	m := r.Usage(d.Out, msg.Complete)
	m.Key, m.Session, m.Agent = "usage:"+t.step, d.session, t.agent
	m.Agent.Name = cmp.Or(t.by, m.Agent.Name)
	t.run.Mark(m)
	cost := u.Get(of + "cost_usd").Digits()
	m.SetAttr("cost", cost)
	m.Usage.Stated = msg.Dollars(cost)
}

// refer remembers which calls of the step made which trajectories run.
func (d *stream) refer(v jsonv.Value, t *trajectory) {
	for r := range v.Path("observation", "results").Elems() {
		call := ident.Of(r.Get("source_call_id"))
		for ref := range r.Get("subagent_trajectory_ref").Elems() {
			if id := ident.Of(ref.Get("trajectory_id")); id != "" && call != "" {
				if _, known := t.refs[id]; !known {
					t.refs[id] = cause{t.run.ID, call}
				}
			}
		}
	}
}

// call decodes a call.
func (d *stream) call(c, step jsonv.Value, t *trajectory, r *conversation.Response, calls map[string]*msg.Message) {
	id := ident.Of(c.Get("tool_call_id"))
	if id == "" {
		d.Unknown("tool_call", c, t.step)
		return
	}
	m := d.add(t, msg.ToolCall, "call:"+t.step+":"+id)
	extra := c.Get("extra")
	m.Role, m.Tool.CallID, m.Tool.Name = msg.RoleAssistant, id, cmp.Or(ident.Of(c.Get("function_name")), "unknown")
	m.Tool.Server = conversation.ToolServer(m.Tool.Name)
	if input := c.Path("arguments", "input"); extra.Get("text_arguments").Bool() && input.Is(jsonv.String) {
		m.Tool.Arguments = input.Text()
	} else {
		m.Tool.Arguments = c.Get("arguments").JSON()
	}
	if t.delegates(step, id, m) || extra.Get("delegation").Bool() {
		m.Kind = msg.Delegation
		m.Delegation.To, m.Delegation.Task = ident.Of(extra.Get("delegate_to")), extra.Get("delegate_task").Text()
	}
	r.Mark(m)
	if t.again {
		m.Kind, m.Tool.CallID = msg.Status, ""
		m.SetAttr("tool_call_id", id)
		return
	}
	m.ParentKey, r.Last = r.Last, m.Key
	kept := *m
	calls[id] = &kept
}

// delegates reports whether the result of a call refers to trajectories, and adds them. One of another
// document is found by its name.
func (t *trajectory) delegates(step jsonv.Value, call string, m *msg.Message) (found bool) {
	for r := range step.Path("observation", "results").Elems() {
		refs := r.Get("subagent_trajectory_ref")
		if !r.Get("source_call_id").Equal(call) || refs.Len() == 0 {
			continue
		}
		found = true
		m.SetAttr("subagent_trajectory_ref", refs.JSON().String())
		for ref := range refs.Elems() {
			id := ident.Peek(ref.First("trajectory_id", "session_id"))
			if id != "" && m.Delegation.CorrelationID == "" && !t.embeds(id) {
				m.Delegation.CorrelationID = spawn.ID("atif", id)
			}
		}
	}
	return found
}

// embeds reports whether the document has the trajectory of that id.
func (t *trajectory) embeds(id string) bool {
	return slices.ContainsFunc(t.embedded, func(list jsonv.Value) bool {
		for sub := range list.Elems() {
			if ident.Peek(sub.Get("trajectory_id")) == id {
				return true
			}
		}
		return false
	})
}

// results decodes the results of a step.
func (d *stream) results(v jsonv.Value, t *trajectory, calls map[string]*msg.Message) {
	n := 0
	for r := range v.Path("observation", "results").Elems() {
		n++
		extra := r.Get("extra")
		id := ident.First(r.Get("source_call_id"), extra.Get("source_call_id"))
		if !r.Get("content").Exists() && r.Get("subagent_trajectory_ref").Len() > 0 && calls[id] != nil {
			continue // the call has no result
		}
		m := d.add(t, msg.ToolResult, "result:"+t.step+":"+conversation.NonZero(n))
		m.Role, m.Tool.CallID, m.Tool.Name = msg.RoleTool, cmp.Or(id, "result:"+t.step+":"+conversation.NonZero(n)), ident.Of(extra.Get("function_name"))
		if c := calls[id]; c != nil {
			m.ParentKey, m.Tool.Name, m.Tool.Server = c.Key, c.Tool.Name, c.Tool.Server
			if c.Kind == msg.Delegation {
				m.Kind = msg.DelegationResult
			}
		}
		m.Content = joined(r.Get("content"), &m.Attachments)
		if refs := r.Get("subagent_trajectory_ref"); calls[id] == nil && refs.Len() > 0 {
			m.SetAttr("subagent_trajectory_ref", refs.JSON().String())
		}
		conversation.TimeOf(extra.Get("timestamp")).Or(t.at).Set(m)
		conversation.Failed(m, extra.Get("is_error").Bool() || v.Path("extra", "tool_result_is_error").Bool())
		if t.again {
			m.Kind, m.Tool.CallID = msg.Status, ""
			m.SetAttr("tool_call_id", id)
		}
	}
}
