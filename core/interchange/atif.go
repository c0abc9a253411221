// Package interchange writes a conversation in the documents that other programs read: ATIF
// v1.7, lines for supervised fine-tuning, OTLP/JSON and OpenInference. Its input is rows and
// spans as they are stored; it reads and writes no file.
//
// Facts of ATIF that are easy to get wrong:
//
//   - Readers reject unknown members: all that ATIF has no member for is in extra.
//   - A step of the agent is one response of the model with all its calls, and the result of a
//     call is in the step of the call, whenever it arrived.
//   - prompt_tokens includes the cached tokens, and completion_tokens the reasoning.
//   - An embedded trajectory is found by its trajectory_id alone, never by session_id.
package interchange

import (
	"cmp"
	"encoding/json"

	"github.com/earshot-dev/earshot/core/msg"
)

// ATIFVersion is the version of ATIF that is written.
const ATIFVersion = "ATIF-v1.7"

// Trajectory is the document of ATIF.
type Trajectory struct {
	SchemaVersion string         `json:"schema_version"`
	SessionID     string         `json:"session_id,omitempty"`
	TrajectoryID  string         `json:"trajectory_id,omitempty"`
	Agent         Agent          `json:"agent"`
	Steps         []*Step        `json:"steps"`
	FinalMetrics  *FinalMetrics  `json:"final_metrics,omitempty"`
	Subagents     []*Trajectory  `json:"subagent_trajectories,omitempty"`
	Extra         map[string]any `json:"extra,omitempty"`
}

// Agent is who acts in a trajectory.
type Agent struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	ModelName string `json:"model_name,omitempty"`
}

// Step is a prompt, a text of the system, or a response of the model with its calls.
type Step struct {
	StepID      int            `json:"step_id"` // 1, 2, 3
	Timestamp   string         `json:"timestamp,omitempty"`
	Source      string         `json:"source"` // system, user, agent
	ModelName   string         `json:"model_name,omitempty"`
	Message     Message        `json:"message"`
	Reasoning   string         `json:"reasoning_content,omitempty"`
	ToolCalls   []Call         `json:"tool_calls,omitempty"`
	Observation *Observation   `json:"observation,omitempty"`
	Metrics     *Metrics       `json:"metrics,omitempty"`
	Extra       map[string]any `json:"extra,omitempty"`
}

// Message is one text as a string, and several as a list of parts.
type Message []string

// MarshalJSON implements json.Marshaler.
func (m Message) MarshalJSON() ([]byte, error) {
	if len(m) < 2 {
		return json.Marshal(m.text())
	}
	type part struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	parts := make([]part, 0, len(m))
	for _, t := range m {
		parts = append(parts, part{"text", t})
	}
	return json.Marshal(parts)
}

// Call is a tool call.
type Call struct {
	ID        string          `json:"tool_call_id"`
	Name      string          `json:"function_name"`
	Arguments json.RawMessage `json:"arguments"` // an object
	Extra     map[string]any  `json:"extra,omitempty"`
}

// Observation has the results of the calls of a step.
type Observation struct {
	Results []Result `json:"results"`
}

// Result is the result of a call; CallID is nil when the call is not in the conversation.
type Result struct {
	CallID  *string        `json:"source_call_id"`
	Content *string        `json:"content,omitempty"`
	Refs    []Ref          `json:"subagent_trajectory_ref,omitempty"`
	Extra   map[string]any `json:"extra,omitempty"`
}

// Ref names the embedded trajectory of an agent that a call made run.
type Ref struct {
	TrajectoryID string `json:"trajectory_id"`
	SessionID    string `json:"session_id,omitempty"`
}

// Metrics are the tokens of a step.
type Metrics struct {
	PromptTokens     uint64         `json:"prompt_tokens"`
	CompletionTokens uint64         `json:"completion_tokens"`
	CachedTokens     uint64         `json:"cached_tokens,omitempty"`
	CostUSD          *float64       `json:"cost_usd,omitempty"`
	Extra            map[string]any `json:"extra,omitempty"`
}

// FinalMetrics are the sums of a trajectory, without those embedded in it.
type FinalMetrics struct {
	PromptTokens     uint64   `json:"total_prompt_tokens"`
	CompletionTokens uint64   `json:"total_completion_tokens"`
	CachedTokens     uint64   `json:"total_cached_tokens"`
	CostUSD          *float64 `json:"total_cost_usd,omitempty"`
	Steps            int      `json:"total_steps"`
}

// Cost is the price of a row's tokens in US dollars; ok is false when it is not known.
type Cost func(r *msg.Row) (usd float64, ok bool)

// ATIF returns the trajectory of a conversation, whose rows are in order. The runs of its top level are
// one after another in one trajectory, and a run that another one caused is embedded
// in that one's. It is nil when there is nothing that ATIF has a place for.
func ATIF(rows []msg.Row, cost Cost) *Trajectory {
	b := newBuilder(rows, cost)
	for i := range rows {
		b.add(&rows[i])
	}
	for i := range rows { // the tokens of a response may come before its texts
		if r := &rows[i]; r.Attributes["response_id"] != "" {
			b.tokens(b.run(r.RunID), r)
		}
	}
	return b.finish()
}

// run is a run of the conversation.
type run struct {
	id, parent, call string
	to               *Trajectory // its own, or the one of the top level
	step             *Step       // the last one of the agent; nil after a prompt
	results          bool        // of the step
}

type place struct {
	step *Step
	call int
}

type builder struct {
	cost      Cost
	root      *Trajectory
	runs      map[string]*run
	order     []*run
	responses map[string]*Step // by run and response
	calls     map[string]place // by run and call
	byCall    map[string]place // by call
}

func newBuilder(rows []msg.Row, cost Cost) *builder {
	b := &builder{
		cost: cost, root: &Trajectory{SchemaVersion: ATIFVersion}, runs: make(map[string]*run),
		responses: make(map[string]*Step), calls: make(map[string]place), byCall: make(map[string]place),
	}
	known := make(map[string]bool)
	for i := range rows {
		r := &rows[i]
		b.root.SessionID = cmp.Or(b.root.SessionID, r.SessionID)
		of := b.run(r.RunID)
		known[r.RunID+" "+r.ToolCallID] = true
		if r.ParentRunID != "" && r.ParentRunID != r.RunID && r.RunID != "" {
			if of.parent == "" || of.parent == msg.UnknownRun {
				of.parent = r.ParentRunID
			}
			of.call = cmp.Or(of.call, r.Attributes["parent_call_id"])
		}
	}
	for i := range rows { // a call that names the run it caused
		if r := &rows[i]; r.ChildRunID != "" && r.ChildRunID != r.RunID && r.ToolCallID != "" {
			if c := b.runs[r.ChildRunID]; c != nil {
				if c.parent == "" || c.parent == msg.UnknownRun {
					c.parent = r.RunID
				}
				if c.call == "" || c.parent == r.RunID && !known[c.parent+" "+c.call] { // the run has the call's id of the sidecar, the call that of the protocol
					c.call = r.ToolCallID
				}
			}
		}
	}
	for _, c := range b.order {
		if c.to = b.root; c.parent != "" && !b.circular(c) {
			c.to = &Trajectory{SchemaVersion: ATIFVersion, SessionID: b.root.SessionID, TrajectoryID: c.id}
		}
	}
	return b
}

// circular reports whether a run is its own ancestor.
func (b *builder) circular(c *run) bool {
	for n, p := 0, b.runs[c.parent]; p != nil && p.parent != ""; n, p = n+1, b.runs[p.parent] {
		if p == c || n > len(b.order) {
			return true
		}
	}
	return false
}

func (b *builder) run(id string) *run {
	c := b.runs[id]
	if c == nil {
		c = &run{id: id}
		b.runs[id] = c
		b.order = append(b.order, c)
	}
	return c
}

// add adds a row.
func (b *builder) add(r *msg.Row) {
	of := b.run(r.RunID)
	if of.to.Agent.Name == "" && r.AgentKind != "human" {
		of.to.Agent.Name = r.AgentName
	}
	of.to.Agent.Version = cmp.Or(of.to.Agent.Version, r.Attributes["client_version"], r.Attributes["agent_version"])
	of.to.Agent.ModelName = cmp.Or(of.to.Agent.ModelName, r.Model)
	switch r.Kind {
	case "user", "system", "error":
		if r.Content == "" && r.Kind != "user" {
			break
		}
		s := b.step(of, r, "system")
		if s.Message = (Message{r.Content}); r.Kind == "user" {
			s.Source = "user"
		} else {
			s.note("kind", r.Kind)
		}
		if r.Attributes["signal"] == msg.Compaction.String() {
			s.note("compaction", true)
		}
		of.step = nil
	case "assistant", "reasoning":
		s := b.response(of, r, of.results || of.step != nil && (len(of.step.ToolCalls) > 0 || len(of.step.Message) > 0))
		if r.Kind == "assistant" {
			s.Message = append(s.Message, r.Content)
		} else if s.Reasoning != "" && r.Content != "" {
			s.Reasoning += "\n\n" + r.Content
		} else {
			s.Reasoning += r.Content
		}
	case "tool_call", "delegation":
		b.call(of, r)
	case "tool_result", "delegation_result":
		b.result(of, r)
	}
	if r.Attributes["response_id"] == "" {
		b.tokens(of, r)
	}
}

// step adds a step.
func (b *builder) step(of *run, r *msg.Row, source string) *Step {
	s := &Step{StepID: len(of.to.Steps) + 1, Source: source}
	if r.Attributes["time_precision"] != msg.Inferred.String() && r.Attributes["time_precision"] != "" {
		s.Timestamp = r.TS
	}
	if of.to == b.root {
		s.note("run_id", of.id)
	}
	if r.AgentName != "" && r.AgentName != of.to.Agent.Name {
		s.note("agent_name", r.AgentName)
	}
	if r.Hidden {
		s.note("hidden", true)
	}
	of.to.Steps = append(of.to.Steps, s)
	of.results = false
	return s
}

// note keeps a fact that ATIF has no member for.
func (s *Step) note(key string, v any) {
	if s.Extra == nil {
		s.Extra = make(map[string]any)
	}
	s.Extra[key] = v
}

// response returns the step of the response that a row is of; a row that names none is of the
// last one unless another is due.
func (b *builder) response(of *run, r *msg.Row, due bool) *Step {
	id := r.Attributes["response_id"]
	if id != "" {
		if s := b.responses[of.id+"\x00"+id]; s != nil {
			return s
		}
	} else if of.step != nil && !due {
		return of.step
	}
	s := b.step(of, r, "agent")
	if of.step = s; id != "" {
		s.note("response_id", id)
		b.responses[of.id+"\x00"+id] = s
	}
	s.ModelName = r.Model
	return s
}

// call adds a call. Its later versions are those of the store's row.
func (b *builder) call(of *run, r *msg.Row) {
	s := b.response(of, r, of.results)
	if _, again := b.calls[of.id+"\x00"+r.ToolCallID]; again {
		return
	}
	c := Call{ID: r.ToolCallID, Name: cmp.Or(r.ToolName, "unknown"), Arguments: object(r.ToolArguments)}
	if string(c.Arguments) != r.ToolArguments && r.ToolArguments != "" {
		c.Extra = with(c.Extra, "text_arguments", true)
	}
	if r.Kind == "delegation" {
		c.Extra = with(c.Extra, "delegation", true)
		if r.DelegateTo != "" {
			c.Extra = with(c.Extra, "delegate_to", r.DelegateTo)
		}
		if r.DelegateTask != "" {
			c.Extra = with(c.Extra, "delegate_task", r.DelegateTask)
		}
	}
	s.ToolCalls = append(s.ToolCalls, c)
	at := place{s, len(s.ToolCalls) - 1}
	b.calls[of.id+"\x00"+c.ID] = at
	if _, known := b.byCall[c.ID]; !known {
		b.byCall[c.ID] = at
	}
}

// object returns a call's arguments as an object: a text that is none is its member "input".
func object(text string) json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &o) == nil && o != nil {
		return json.RawMessage(text)
	}
	if text == "" {
		return json.RawMessage("{}")
	}
	raw, err := json.Marshal(map[string]string{"input": text})
	if err != nil {
		return json.RawMessage("{}")
	}
	return raw
}

func with(m map[string]any, key string, v any) map[string]any {
	if m == nil {
		m = make(map[string]any)
	}
	m[key] = v
	return m
}

// result adds the result of a call to the step of the call.
func (b *builder) result(of *run, r *msg.Row) {
	content := r.Content
	out := Result{Content: &content}
	if r.IsError {
		out.Extra = with(out.Extra, "is_error", true)
	}
	if p := r.Attributes["time_precision"]; p != "" && p != msg.Inferred.String() {
		out.Extra = with(out.Extra, "timestamp", r.TS)
	}
	at, ok := b.calls[of.id+"\x00"+r.ToolCallID]
	if !ok {
		at, ok = b.byCall[r.ToolCallID]
	}
	if !ok {
		out.Extra = with(out.Extra, "source_call_id", r.ToolCallID)
		if r.ToolName != "" {
			out.Extra = with(out.Extra, "function_name", r.ToolName)
		}
		s := b.step(of, r, "system")
		s.Observation = &Observation{Results: []Result{out}}
		of.step = nil
		return
	}
	if at.step == of.step {
		of.results = true
	}
	c := &at.step.ToolCalls[at.call]
	if r.ChildRunID != "" && r.ChildRunID != r.RunID && c.Extra["delegation"] == nil { // known by its result alone
		if c.Extra = with(c.Extra, "delegation", true); r.DelegateTo != "" {
			c.Extra = with(c.Extra, "delegate_to", r.DelegateTo)
		}
	}
	out.CallID = &c.ID
	at.step.result(out)
}

func (s *Step) result(r Result) {
	if s.Observation == nil {
		s.Observation = &Observation{}
	}
	s.Observation.Results = append(s.Observation.Results, r)
}

// tokens adds the tokens of a row, if it has any, to the step of its response.
func (b *builder) tokens(of *run, r *msg.Row) {
	if r.InputTokens+r.OutputTokens+r.CacheReadTokens+r.CacheWriteTokens+r.ReasoningTokens == 0 {
		return
	}
	id := r.Attributes["response_id"]
	s := b.responses[of.id+"\x00"+id]
	if s == nil && id == "" {
		s = of.step
	}
	if s == nil {
		s = b.response(of, r, true)
	}
	if s.ModelName == "" {
		s.ModelName = r.Model
	}
	if s.Metrics == nil {
		s.Metrics = new(Metrics)
	}
	m := s.Metrics
	m.PromptTokens += r.InputTokens + r.CacheReadTokens + r.CacheWriteTokens
	m.CompletionTokens += r.OutputTokens + r.ReasoningTokens
	m.CachedTokens += r.CacheReadTokens
	for key, n := range map[string]uint64{"cache_write_tokens": r.CacheWriteTokens, "reasoning_tokens": r.ReasoningTokens} {
		if had, _ := m.Extra[key].(uint64); n > 0 {
			m.Extra = with(m.Extra, key, had+n)
		}
	}
	if b.cost != nil {
		if usd, ok := b.cost(r); ok {
			if m.CostUSD == nil {
				m.CostUSD = new(float64)
			}
			*m.CostUSD += usd
		}
	}
}

// finish embeds the trajectories of the runs that others caused.
func (b *builder) finish() *Trajectory {
	for _, c := range b.order {
		if c.to == b.root || len(c.to.Steps) == 0 {
			continue
		}
		in := b.root
		if p := b.runs[c.parent]; p != nil && len(p.to.Steps) > 0 {
			in = p.to
		}
		in.Subagents = append(in.Subagents, c.to)
		at, ok := b.calls[c.parent+"\x00"+c.call]
		if !ok || c.call == "" {
			c.to.Extra = map[string]any{"parent_run_id": c.parent}
			continue
		}
		at.step.refer(at.call, Ref{c.id, b.root.SessionID})
		if in == b.root {
			c.to.Extra = map[string]any{"parent_run_id": c.parent}
		}
	}
	if len(b.root.Steps) == 0 {
		if len(b.root.Subagents) == 0 {
			return nil
		}
		b.root.Steps = []*Step{{StepID: 1, Source: "system", Extra: map[string]any{"empty": true}}}
	}
	b.root.end()
	return b.root
}

// refer adds a reference to the result of a call.
func (s *Step) refer(call int, ref Ref) {
	id := &s.ToolCalls[call].ID
	if s.Observation != nil {
		for i := range s.Observation.Results {
			if r := &s.Observation.Results[i]; r.CallID != nil && *r.CallID == *id {
				r.Refs = append(r.Refs, ref)
				return
			}
		}
	}
	s.result(Result{CallID: id, Refs: []Ref{ref}})
}

// end sets the members that follow from the steps.
func (t *Trajectory) end() {
	t.Agent.Name, t.Agent.Version = cmp.Or(t.Agent.Name, "agent"), cmp.Or(t.Agent.Version, "unknown")
	f := FinalMetrics{Steps: len(t.Steps)}
	for _, s := range t.Steps {
		if m := s.Metrics; m != nil {
			f.PromptTokens += m.PromptTokens
			f.CompletionTokens += m.CompletionTokens
			f.CachedTokens += m.CachedTokens
			if m.CostUSD != nil {
				if f.CostUSD == nil {
					f.CostUSD = new(float64)
				}
				*f.CostUSD += *m.CostUSD
			}
		}
		if s.Source != "agent" {
			s.ModelName = ""
		}
	}
	t.FinalMetrics = &f
	for _, c := range t.Subagents {
		c.end()
	}
}
