package copilot

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// record decodes a record by its type; false if the type is not known.
func (d *stream) record() bool {
	v := d.data
	switch d.typ {
	case "session.start", "session.resume", "session.model_change", "session.auto_mode_resolved", "subagent.configured":
		if d.typ == "session.resume" && !v.Get("sessionWasActive").Bool() {
			d.resumed()
		}
		if model := ident.Peek(v.First("newModel", "selectedModel", "chosenModel", "model")); model == "auto" { // it names none
			d.lane.Model = ""
		} else {
			d.lane.Model = cmp.Or(model, d.lane.Model)
		}
		d.facts()
	case "user.message":
		d.user()
	case "assistant.turn_start":
		d.lane.Run.Ended, d.lane.Run.Failed, d.lane.Last = false, false, ""
		m := d.status(d.id)
		signal(m, msg.ModelStart)
		conversation.Attrs(m, v, "turnId", "interactionId", "model")
	case "assistant.message":
		d.message()
	case "assistant.usage":
		d.usage(v)
	case "session.usage_record":
		d.usage(v.Get("usage"))
	case "assistant.turn_end":
		m := (*msg.Message)(nil)
		if l := d.lane; l.ID == "" && l.Run.Active() && (l.Run.Failed || l.Last != "" && !l.Calls) {
			m = d.stop(d.outcome())
		} else {
			m = d.status(d.id)
		}
		conversation.Attrs(m, v, "turnId", "model")
	case "assistant.idle", "session.idle":
		if d.lane.Run.Active() {
			d.stop(d.outcome())
		}
	case "abort":
		conversation.Attrs(d.stop("interrupted"), v, "reason")
	case "tool.execution_start", "tool.user_requested":
		d.call(ident.Of(v.Get("toolCallId")), v.Get("toolName"), v)
	case "tool.execution_complete":
		d.result()
	case "subagent.started":
		d.started()
	case "subagent.completed", "subagent.failed":
		d.finished()
	case "session.compaction_complete":
		m := d.status(d.id)
		m.Hidden, m.Content = false, v.First("summaryContent", "error").Text()
		if m.IsError = v.Get("success").Is(jsonv.False); !m.IsError {
			signal(m, msg.Compaction)
		}
		conversation.Attrs(m, v, "checkpointPath", "customInstructions", "requestId", "serviceRequestId", "trigger")
		u := v.Get("compactionTokensUsed")
		m.SetAttr("tokens", conversation.ShortJSON(u))
		if c := countsOf(u); c != (conversation.Counts{}) { // of the request for the summary, which no message has
			r := conversation.Response{ID: "compaction:" + d.id, Model: cmp.Or(ident.Peek(u.Get("model")), d.lane.Model), Run: d.lane.Run.ID, At: d.At}
			d.count(&r, c, msg.Provider).ResponseID = ""
		}
	case "session.error", "model.call_failure":
		m := d.add(msg.Error, d.id)
		m.IsError, m.Content, m.Tool.ErrorType = true, v.First("message", "errorMessage").Text(), ident.First(v.Get("errorType"), v.Get("failureKind"))
		if d.typ == "model.call_failure" { // it is tried again, or session.error follows
			m.Kind, m.IsError, m.Hidden = msg.Status, false, true
			signal(m, msg.Retry)
		} else {
			d.lane.Run.Failed = true
		}
		m.SetAttr("status_code", v.Get("statusCode").Digits())
		conversation.Attrs(m, v, "errorCode", "url", "providerCallId", "serviceRequestId", "apiCallId", "stack", "model")
	case "session.shutdown":
		d.shutdown()
	case "session.binary_asset":
		data := v.Get("data")
		if !data.Is(jsonv.String) {
			return false
		}
		m := d.status(d.id)
		m.Attachments = []msg.Attachment{media.Base64(data, ident.Of(v.Get("mimeType")))}
		conversation.Attrs(m, v, "assetId", "description")
	case "system.message", "system.notification", "skill.invoked":
		m := d.add(msg.System, d.id)
		m.Role, m.Hidden, m.Content = msg.RoleSystem, true, v.Get("content").Text()
		conversation.Attrs(m, v, "name", "path", "description", "pluginName", "source", "interactionId")
		m.SetAttr("kind", conversation.ShortJSON(v.Get("kind")))
	case "hook.start", "hook.end":
		m := d.status(d.id)
		m.Content = v.Get("output").Text()
		conversation.Attrs(m, v, "hookInvocationId", "hookType", "error.message", "error.source")
	case "assistant.reasoning":
		d.thought()
	case "assistant.message_start", "assistant.message_delta", "assistant.reasoning_delta", "assistant.streaming_delta",
		"assistant.tool_call_delta", "tool.execution_partial_result", "tool.execution_progress", "hook.progress":
		v.MarkRead() // the whole follows
	default:
		group, rest, _ := strings.Cut(d.typ, ".")
		switch {
		case (rest == "requested" || rest == "completed") && slices.Contains([]string{"permission", "user_input", "elicitation", "exit_plan_mode", "sampling", "auto_mode_switch", "session_limits_exhausted"}, group):
			d.asked(group, rest)
		case slices.Contains([]string{"session", "assistant", "subagent", "command", "commands", "model", "permission", "mcp", "mcp_app", "capabilities", "pending_messages", "external_tool", "factory", "tool_search", "ui"}, group):
			d.facts()
		default:
			return false
		}
	}
	return true
}

// outcome is how the lane's run ends, which the agent leaves idle.
func (d *stream) outcome() string {
	switch {
	case d.data.Get("aborted").Bool():
		return "interrupted"
	case d.lane.Run.Failed:
		return "error"
	}
	return "stop"
}

// facts keeps a record that is beside the conversation.
func (d *stream) facts() {
	v := d.data.Get("context")
	at := msg.Client{Project: ident.First(v.Get("gitRoot"), v.Get("cwd")), Branch: ident.Of(v.Get("branch")), Version: ident.Of(d.data.Get("copilotVersion"))}
	d.Client = at.Or(d.Client)
	m := d.status(d.id)
	m.Client = at
	conversation.TimeOf(d.data.First("startTime", "resumeTime"))
	conversation.Attrs(m, d.data, "sessionId", "message", "newModel", "previousModel", "selectedModel")
	conversation.Attrs(m, v, "cwd", "repository", "headCommit", "baseCommit")
	if len(m.Attrs) < 2 {
		m.Content = d.data.JSON()
	}
}

// user decodes a prompt: of a person, of another agent, or of the program itself.
func (d *stream) user() {
	v, source := d.data, ident.Of(d.data.Get("source"))
	interaction := ident.Of(v.Get("interactionId"))
	fromAgent := d.lane.ID != "" || strings.HasPrefix(source, "agent-")
	injected := !fromAgent && (source != "" && source != "user" || v.Get("isAutopilotContinuation").Bool())
	switch run := &d.lane.Run; {
	case d.lane.ID != "", (injected || v.Get("delivery").Equal("steering")) && run.Active(), interaction != "" && interaction == run.ID:
		run.Ended = false
	default:
		run.Begin(cmp.Or(interaction, d.id))
		d.Turns++
		d.Turn = run.ID
	}
	m := d.add(msg.User, d.id)
	m.Role, m.Content, m.Agent = msg.RoleUser, v.Get("content").Text(), msg.Agent{Kind: msg.KindHuman}
	switch {
	case fromAgent:
		m.Agent.Kind = msg.KindAgent
	case injected:
		m.Kind, m.Hidden, m.Agent.Kind = msg.System, true, msg.KindAgent
	}
	for a := range v.Get("attachments").Elems() {
		if data := a.Get("data"); data.Is(jsonv.String) {
			m.Attachments = append(m.Attachments, media.Base64(data, ident.Of(a.Get("mimeType"))))
			continue
		}
		at := media.File(ident.First(a.Get("path"), a.Get("filePath"), a.Get("url")))
		at.Name = cmp.Or(ident.Of(a.Get("displayName")), at.Name)
		m.Attachments = append(m.Attachments, at)
	}
	m.SetAttr("source", source)
	if interaction != m.Run {
		m.SetAttr("interactionId", interaction)
	}
	conversation.Attrs(m, v, "agentMode", "delivery", "parentAgentTaskId", "messageId")
}

// message decodes a response of the model: its thought, its text, its calls and its output tokens.
func (d *stream) message() {
	v, l := d.data, d.lane
	id := cmp.Or(ident.Of(v.Get("messageId")), d.id)
	l.Model = cmp.Or(ident.Of(v.Get("model")), l.Model)
	r := conversation.Response{ID: cmp.Or(ident.Of(v.Get("apiCallId")), id), Model: l.Model, Run: l.Run.ID, At: d.At}
	l.Last, l.Calls, l.Run.Ended, l.Run.Failed = id, v.Get("toolRequests").Len() > 0, false, false
	key := id
	if n := v.Get("chunkIndex").Digits(); n != "" && n != "0" {
		key += "/" + n
	}
	before := len(d.Out.Messages)
	if thought, sum := v.Get("reasoningText"), sumOf(v.Get("reasoningText")); sum != 0 && sum == l.Early {
		thought.MarkRead()
	} else if l.Thought = sum; sum != 0 {
		r.Said(d.add(msg.Reasoning, key+"/thinking"), thought.Text())
	}
	l.Early = 0
	if text := v.Get("content"); len(text.Escaped()) > 0 {
		r.Said(d.add(msg.Assistant, key), text.Text())
	}
	for c := range v.Get("toolRequests").Elems() {
		if m := d.call(ident.Of(c.Get("toolCallId")), c.Get("name"), c); m != nil {
			r.Mark(m)
			m.ParentKey, r.Last = r.Last, m.Key
		}
	}
	if r.ID != l.Response {
		l.Response, l.Output = r.ID, 0
	}
	if out := int64(v.Get("outputTokens").Uint()) - l.Output; out > 0 { // the pieces of a response repeat them
		prepaid := min(out, max(0, -l.Ahead))
		l.Ahead += out
		m := d.count(&r, conversation.Counts{Output: uint64(out - prepaid)}, msg.TranscriptPartial)
		if l.Output += out; l.Output > out {
			m.Key += "/" + id
		}
	}
	if len(d.Out.Messages) == before {
		d.status(id)
	}
	m := &d.Out.Messages[before]
	if r.ID != id {
		m.SetAttr("message_id", id)
	}
	if interaction := v.Get("interactionId"); !ident.Is(interaction, l.Run.ID) {
		m.SetAttr("interactionId", ident.Of(interaction))
	}
	conversation.Attrs(m, v, "requestId", "serviceRequestId", "clientRequestId", "phase", "turnId")
}

// thought decodes a thought, which the message before or after it has too, as a rule.
func (d *stream) thought() {
	v, l := d.data, d.lane
	text, sum := v.Get("content"), sumOf(v.Get("content"))
	switch {
	case !text.Is(jsonv.String):
		d.facts()
		return
	case sum == 0, sum == l.Thought:
		v.MarkRead()
		return
	}
	l.Early = sum
	m := d.add(msg.Reasoning, d.id)
	m.Role, m.Content, m.Model = msg.RoleAssistant, text.Text(), l.Model
	conversation.Attrs(m, v, "reasoningId")
}

// sumOf is the checksum of a text; 0 of an empty one.
func sumOf(text jsonv.Value) conversation.Sum {
	if len(text.Escaped()) == 0 {
		return 0
	}
	return conversation.SumOf(text.Escaped())
}

// usage decodes the tokens of a response: a record of newer versions, before its message, or what a live stream has after it.
func (d *stream) usage(v jsonv.Value) {
	l := d.lane
	if id := ident.Peek(v.Get("apiCallId")); id != "" && !d.Seen.Add("usage:"+id, maxSeen) {
		d.Root.MarkRead() // the other record of the response
		return
	}
	c, out := countsOf(v), int64(v.Get("outputTokens").Uint())
	c.Reasoning = v.Get("reasoningTokens").Uint()
	c.Output = uint64(max(0, out-max(0, l.Ahead)))
	l.Ahead -= out
	r := conversation.Response{ID: cmp.Or(ident.First(v.Get("apiCallId"), v.Get("providerCallId")), d.id), Model: cmp.Or(ident.Of(v.Get("model")), l.Model), Run: l.Run.ID, At: d.At}
	m := d.count(&r, c, msg.Provider)
	m.Key += "/usage"
	conversation.Attrs(m, v, "finishReason", "initiator", "interactionType", "serviceRequestId")
}

// count emits tokens, and remembers that the model has them.
func (d *stream) count(r *conversation.Response, c conversation.Counts, p msg.Provenance) *msg.Message {
	r.Count(c, p)
	m := r.Usage(d.Out, msg.Complete)
	m.Session, m.Agent = d.session(), msg.Agent{Name: d.lane.Name, Kind: msg.KindAgent}
	for _, of := range [...]*[]counted{&d.Counted, &d.lane.Counted} {
		t := countedOf(of, r.Model)
		t.Counts, t.Leg = t.Add(c), t.Leg.Add(c)
	}
	return m
}

// countedOf returns the tokens of a model that usage messages have, of all agents or of one.
func countedOf(of *[]counted, model string) *counted {
	for i := range *of {
		if (*of)[i].Model == model {
			return &(*of)[i]
		}
	}
	*of = bounded.Push(*of, counted{Model: model}, maxModels)
	return &(*of)[len(*of)-1]
}

// name takes output of messages that do not name their model for that of a model.
func name(of *[]counted, model string, output uint64) {
	t := countedOf(of, model)
	t.Output, t.Leg.Output = t.Output+output, t.Leg.Output+output
	t = countedOf(of, "")
	t.Output, t.Leg.Output = t.Output-min(t.Output, output), t.Leg.Output-min(t.Leg.Output, output)
}

// countsOf reads tokens, of which the input has the cached ones. The output has those of
// reasoning.
func countsOf(v jsonv.Value) conversation.Counts {
	c := conversation.Counts{Output: v.Get("outputTokens").Uint(), CacheRead: v.Get("cacheReadTokens").Uint(), CacheWrite: v.Get("cacheWriteTokens").Uint()}
	if in := v.Get("inputTokens").Uint(); in > c.CacheRead+c.CacheWrite {
		c.Input = in - c.CacheRead - c.CacheWrite
	}
	return c
}

// resumed begins the tokens of another run of the program.
func (d *stream) resumed() {
	d.Before = d.Totals
	for i := range d.Counted {
		d.Counted[i].Leg = conversation.Counts{}
	}
	for _, l := range d.Lanes {
		for i := range l.Counted {
			l.Counted[i].Leg = conversation.Counts{}
		}
	}
}

// cumulative reports whether totals are those since the session began. Older versions begin again
// with each run of the program, and a compaction may too: then they are lower than those before the run, or the output
// that usage messages of the run do not have is nearer to none than to that before it.
func (d *stream) cumulative(sum conversation.Counts) bool {
	var leg uint64
	for _, t := range d.Counted {
		leg += t.Leg.Output
	}
	return sum.Max(d.Before) == sum && 2*(sum.Output-min(sum.Output, leg)) >= d.Before.Output
}

// shutdown decodes the end of the program: the tokens of each model, of which a usage message has those that no
// message had.
func (d *stream) shutdown() {
	v := d.data
	d.Totals = conversation.Counts{}
	for _, metric := range v.Get("modelMetrics").Members() {
		d.Totals = d.Totals.Add(countsOf(metric.Get("usage")))
	}
	had := func(t *counted) *conversation.Counts { return &t.Counts }
	if !d.cumulative(d.Totals) {
		had = func(t *counted) *conversation.Counts { return &t.Leg }
	}
	main := d.lane
	for key, agent := range v.Get("agentMetrics").Members() { // of newer versions, by the agent: that of the program itself is main
		if l := bounded.Find(d.Lanes, func(l *lane) bool { return l.ID == key.String() }); l != nil && l.ID != "" {
			d.lane = l
			d.rest(agent, &l.Counted, had, l.ID, l.Run.ID)
		}
	}
	run := ""
	if d.lane = main; d.Turns == 1 {
		run = d.Turn
	}
	d.rest(v, &d.Counted, had, "", run)
	d.Turns = 0
	var m *msg.Message
	if d.lane.Run.Active() {
		m = d.stop("shutdown")
	} else {
		m = d.status(d.id)
	}
	m.IsError = v.Get("shutdownType").Equal("error")
	m.Content = v.Get("errorReason").Text()
	conversation.AttrsAs(m, v, jsonv.Value.Digits, "premium_requests=totalPremiumRequests", "nano_aiu=totalNanoAiu")
	conversation.Attrs(m, v, "currentModel", "shutdownType")
	m.SetAttr("files", conversation.ShortJSON(v.Path("codeChanges", "filesModified")))
}

// rest adds the tokens of each model in totals that no message had: of all agents, or of one.
func (d *stream) rest(totals jsonv.Value, of *[]counted, had func(*counted) *conversation.Counts, agent, run string) {
	nameless := had(countedOf(of, "")).Output // of messages that do not name their model
	for key, metric := range totals.Get("modelMetrics").Members() {
		model := ident.Bounded(key.String())
		total := countsOf(metric.Get("usage"))
		less := min(nameless, total.Output-min(total.Output, had(countedOf(of, model)).Output))
		nameless -= less
		if name(of, model, less); of != &d.Counted {
			name(&d.Counted, model, less)
		}
		had := *had(countedOf(of, model))
		rest, _ := total.Max(had).Sub(had)
		if rest == (conversation.Counts{}) {
			continue
		}
		facts := []string{d.id, model}
		if agent != "" {
			facts = append(facts, agent)
		}
		r := conversation.Response{ID: "total:" + msg.HashKey(facts...), Model: model, At: d.At, Run: run}
		m := d.count(&r, rest, msg.Provider)
		m.ResponseID = ""
		m.SetAttr(msg.RestOf, msg.OfSession)
		m.SetAttr("requests", metric.Path("requests", "count").Digits())
		m.SetAttr("reasoning_tokens", metric.Path("usage", "reasoningTokens").Digits())
	}
}

// printed decodes the last line that the program prints with --output-format json: {exitCode, sessionId, usage}.
func (d *stream) printed() {
	v, code := d.Root, d.Root.Get("exitCode").Digits()
	m := (*msg.Message)(nil)
	switch failed := code != "" && code != "0"; {
	case d.lane.Run.Active() && failed:
		m = d.stop("error")
	case d.lane.Run.Active():
		m = d.stop(d.outcome())
	default:
		m = d.status("result:" + d.id)
		m.IsError = failed
	}
	m.SetAttr("exit_code", code)
	m.SetAttr("usage", conversation.ShortJSON(v.Get("usage")))
	conversation.Attrs(m, v, "sessionId")
}

// call decodes a call, which the message of the model and the beginning of its execution have;
// nil if it is known.
func (d *stream) call(id string, name, v jsonv.Value) *msg.Message {
	input := v.Get("arguments")
	if id == "" {
		d.unknown()
		return nil
	}
	if c := d.Calls.Get(id); c != nil {
		name.Equal(c.Name)
		v.Get("mcpServerName").Equal(c.Server)
		c.Input.Repeats(input)
		return nil
	}
	c := d.known(id, cmp.Or(ident.Of(name), "unknown"))
	c.Server, c.Input = ident.Of(v.Get("mcpServerName")), conversation.SumOf(input.Peek())
	if c.Task = c.Name == "task"; c.Task {
		c.To, c.Async = ident.Of(input.Get("agent_type")), input.Get("mode").Equal("background")
	}
	d.Calls.Add(c)
	m := d.add(msg.ToolCall, "call:"+id)
	m.Role = msg.RoleAssistant
	c.Called(m, input.Text(), input.Get("prompt"))
	if d.typ == "tool.user_requested" {
		m.Agent = msg.Agent{Kind: msg.KindHuman}
	}
	conversation.Attrs(m, v, "intentionSummary", "toolTitle", "mcpToolName")
	return m
}

// about adds a message that concerns a call, to the run that made it.
func (d *stream) about(c *call, kind msg.Kind, key string) *msg.Message {
	m := d.add(kind, key)
	if m.Run != c.Run && m.Signal != msg.RunStart {
		m.Run = c.Run
	}
	return c.About(m)
}

// known returns a call, or one that began before the recording.
func (d *stream) known(id, name string) *call {
	if c := d.Calls.Get(id); c != nil {
		return c
	}
	c := &call{Lane: d.lane.ID, Run: d.lane.Run.ID}
	c.ID, c.Name = id, name
	return c
}

// result decodes the end of a call. That of an agent in the background is only its beginning.
func (d *stream) result() {
	v := d.data
	id := ident.Of(v.Get("toolCallId"))
	if id == "" {
		d.unknown()
		return
	}
	c := d.known(id, "")
	d.lane.Model = cmp.Or(ident.Peek(v.Get("model")), d.lane.Model)
	failed := v.Get("success").Is(jsonv.False)
	var m *msg.Message
	if c.Async && !failed {
		m = d.about(c, msg.Status, "ack:"+id)
		m.Hidden = true
	} else {
		m = d.ended(c)
	}
	m.Content = v.Path("result", "content").Text()
	for b := range v.Path("result", "binaryResultsForLlm").Elems() {
		if data := b.Get("data"); data.Is(jsonv.String) {
			m.Attachments = append(m.Attachments, media.Base64(data, ident.Of(b.Get("mimeType"))))
		}
	}
	if failed {
		m.IsError, m.Tool.ErrorType = true, "tool_error"
		if text := v.Path("error", "message"); text.Exists() {
			m.Content = text.Text()
		}
		switch code := v.Path("error", "code"); {
		case code.In("denied", "rejected", "permission_denied"):
			m.Tool.ErrorType = "denied"
		case code.Equal("timeout"):
			m.Tool.ErrorType = "timeout"
		}
	}
	if exited := conversation.Exited(m, v.Path("shellExecution", "exitCode")); !failed { // the program calls it a success: it has run
		conversation.Failed(m, exited)
	}
	conversation.Attrs(m, v, "error.code", "model")
	if interaction := v.Get("interactionId"); !ident.Is(interaction, c.Run) {
		m.SetAttr("interactionId", ident.Of(interaction))
	}
}

// ended adds the result of a call.
func (d *stream) ended(c *call) *msg.Message {
	d.Calls.End(c)
	return c.Result(d.about(c, msg.ToolResult, "result:"+c.ID))
}

// started decodes the beginning of a sub-agent, in whose lane the record is, or in that of the call. Where the log
// lacks the call, it is one of the agent that the record names, or of the main one.
func (d *stream) started() {
	v := d.data
	id := ident.Of(v.Get("toolCallId"))
	if d.lane.ID == "" && id != "" {
		d.enter(id)
	}
	c, child := d.Calls.Get(id), d.lane
	child.Name, child.Model = ident.Of(v.Get("agentName")), ident.Of(v.Get("model"))
	if c == nil {
		d.enter(ident.Peek(v.Get("parentId")))
		child.Run.Caused(d.lane.Run.ID, "", msg.ByNativeID, 0)
		conversation.Attrs(d.status(d.id), v, "toolCallId", "parentId", "agentName", "agentDisplayName", "agentDescription", "model")
		return
	}
	c.Task, c.Child, c.Async = true, child.ID, c.Async || v.Get("executionMode").Equal("background")
	child.Run.Caused(c.Run, c.ID, msg.ByNativeID, 0)
	d.enter(c.Lane)
	m := d.about(c, msg.Status, d.id)
	m.Hidden = true
	if child.ID != c.Lane {
		signal(m, msg.Link)
		m.Delegation.ChildRun, m.Delegation.Link = child.ID, msg.ByNativeID
	}
	m.SetAttr("type", d.typ)
	conversation.Attrs(m, v, "agentName", "agentDisplayName", "agentDescription", "model")
}

// finished decodes the end of a sub-agent.
func (d *stream) finished() {
	v := d.data
	id := ident.Peek(v.Get("toolCallId"))
	if d.lane.ID == "" && id != "" {
		d.enter(id)
	}
	reason := "stop"
	switch {
	case d.typ == "subagent.failed":
		reason = "error"
	case v.Get("cancelled").Bool():
		reason = "interrupted"
	}
	m := d.stop(reason)
	m.Content = v.Get("error").Text()
	m.SetAttr("total_tokens", v.Get("totalTokens").Digits())
	conversation.Attrs(m, v, "toolCallId", "agentName", "agentDisplayName", "model")
	if c := d.Calls.GetOpen(id); c != nil && c.Async {
		child := d.lane
		d.enter(c.Lane)
		r := d.ended(c)
		if r.IsError = reason != "stop"; r.IsError {
			r.Tool.ErrorType = map[string]string{"error": "tool_error"}[reason]
			r.Tool.ErrorType = cmp.Or(r.Tool.ErrorType, reason)
		}
		r.SetAttr("agent_id", child.ID)
	}
}

// asked decodes a question to a person, who allows a call or answers it, and the answer.
func (d *stream) asked(group, rest string) {
	v, id, ends := d.data, ident.Of(d.data.Get("requestId")), rest == "completed"
	w, request, waits := conversation.Wait{ID: id, Run: d.lane.Run.ID}, v.Get("permissionRequest"), !v.Get("resolvedByHook").Bool()
	if ends {
		before, asked := d.Waits.Answer(id)
		if waits = asked; asked {
			w = before
		}
		w.Call = cmp.Or(w.Call, ident.Peek(v.Get("toolCallId")))
	} else if w.Call = ident.First(request.Get("toolCallId"), v.Get("toolCallId")); waits {
		d.Waits.Ask(w)
	}
	m := d.status(d.id)
	if m.Tool.CallID, m.Run = w.Call, cmp.Or(m.Run, w.Run); waits {
		signal(m, w.Signal(ends))
	}
	m.Content = v.First("question", "message", "summary", "answer", "feedback").Text()
	if request.Exists() {
		m.Content = request.JSON()
	}
	m.SetAttr("request_id", id)
	m.SetAttr("result", conversation.ShortJSON(v.Get("result")))
	conversation.Attrs(m, v, "action", "selectedAction", "toolCallId", "planContent", "url")
	conversation.AttrsAs(m, v, conversation.ShortJSON, "choices", "content")
}
