// Package codexappserver decodes the messages between codex app-server and its client, an editor
// or another program: JSON-RPC without the member jsonrpc, as lines or WebSocket messages, of
// one direction or of both, as they are or as earshot wrap records them.
//
// Facts of the format that are easy to get wrong, and that this decoder is built
// around:
//
//   - A connection has several threads. Their records name the thread and the turn; a record of
//     the connection itself (account, MCP servers) names neither.
//   - Items are those of codex exec in another spelling. Ids of calls are those of the
//     provider, or exec-<uuid>.
//   - The threads of sub-agents share the connection, often without thread/started. Only the
//     item that began one names its parent: collabAgentToolCall by receiverThreadIds, newer
//     versions subAgentActivity by agentThreadId.
//   - item/completed of a fileChange occurs twice when a person declines it, as failed and then
//     as declined: the last one counts.
//   - Ids of requests are independent in each direction: the answer to a request of the server
//     is known by its decision.
//   - tokenUsage.total is the sum over the thread, last the counts of one response, which are
//     repeated. It follows the items of its response.
//   - Times of a turn are whole seconds, those of items are milliseconds, in newer versions.
package codexappserver

import (
	"cmp"
	_ "embed"
	"slices"
	"strconv"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/codex"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonrpc"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/openai"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return codex.Framing[state]{
		Name: "codex-app-server", Revision: 2, Version: 1, LeavesOut: leavesOut,
		Summary:    "Messages of codex app-server: threads, turns, items and approvals.",
		Transports: []frame.Kind{frame.Line, frame.Text},
		Thread:     func(origin string) string { return ident.OfFile(origin, ".jsonl") },
		Open: func(t *codex.Thread, s *state) func(jsonv.Value) bool {
			return (&connection{Thread: t, state: s}).message
		},
	}.Factory()
}

// The limits of the memory of a connection.
const (
	maxThreads = 64
	maxWaits   = 64
	maxPieces  = 1 << 20 // bytes of the unfinished texts of a thread
)

// state is the memory of a connection.
type state struct {
	Threads []*thread `json:",omitempty"` // the last active one at the end
	Waits   []wait    `json:",omitempty"` // oldest first
}

// thread is the memory of a thread.
type thread struct {
	codex.State
	conversation.Deltas        // pieces of items that are not complete
	Model               string `json:",omitempty"`
	Provider            string `json:",omitempty"`
	Dir                 string `json:",omitempty"`
	Turn                string `json:",omitempty"` // the active one
	Response            string `json:",omitempty"` // the open response: the id of its first item
	Last                string `json:",omitempty"` // its last item
}

// wait is a request to a person that has no answer.
type wait struct{ Request, Thread, Item string }

// connection decodes the messages of one connection.
type connection struct {
	*codex.Thread // of the current message
	*state
	th *thread
}

// message decodes one message: {method, params} with an id if it is a request, {id, result} or
// {id, error}.
func (d *connection) message(root jsonv.Value) (keep bool) {
	record := jsonrpc.Of(d.Frame, root)
	root = record.Value
	method, p := root.Get("method").Str(), root.Get("params")
	d.At = conversation.TimeOf(p.First("completedAtMs", "startedAtMs")).Or(conversation.TimeOf(root.Get("emittedAtMs"))).Or(record.At)
	d.enter(ident.First(p.Get("threadId"), p.Path("thread", "id"), root.Path("result", "thread", "id")))
	turn, turnID := p.Get("turn"), p.Get("turnId")
	if d.ID != "" && d.Run == "" { // it began before the recording
		d.Run = ident.Peek(turnID)
	}
	turnID.In(d.Run, d.th.Turn)
	key := "message:" + msg.HashKey(method, string(root.Get("id").Peek()), d.ID, d.Run, strconv.FormatInt(d.At.Nanos, 10),
		string(p.First("itemId", "status", "message", "name", "requestId").Peek()), string(root.Get("result").First("decision", "answers").Peek()))
	if record.Beside != "" || root.Is(jsonv.String) { // of a recorder, and no message
		m := d.Status("beside:"+msg.HashKey(record.Beside, string(root.Peek()), strconv.FormatInt(d.At.Nanos, 10)), cmp.Or(record.Beside, "text"))
		m.Content = root.Text()
		return true
	}
	switch method {
	case "":
		if !root.Get("result").Exists() && !root.Get("error").Exists() {
			d.Unknown(msg.HashKey(d.Run, string(root.Peek())), "", root)
			break
		}
		d.answer(root, key)
	case "thread/started":
		d.started(p.Get("thread"), key)
	case "turn/started":
		d.At = conversation.TimeOf(turn.Get("startedAt")).Or(d.At)
		if d.th.Turn = ident.Of(turn.Get("id")); !d.Child {
			d.Run = d.th.Turn
		}
		d.Status("turn:"+d.th.Turn, method)
	case "turn/completed":
		d.completed(turn)
	case "item/started", "item/completed":
		d.item(method, p.Get("item"), root)
	case "item/agentMessage/delta":
		d.piece(msg.Assistant, method, p, root)
	case "item/plan/delta":
		d.piece(msg.Plan, method, p, root)
	case "item/reasoning/summaryTextDelta", "item/reasoning/textDelta":
		d.piece(msg.Reasoning, method, p, root)
	case "item/commandExecution/outputDelta":
		d.piece(msg.ToolResult, method, p, root)
	case "item/commandExecution/requestApproval", "item/fileChange/requestApproval", "item/tool/requestUserInput":
		d.asks(root.Get("id"), p)
	case "serverRequest/resolved":
		d.Status(key, method)
		d.answered(string(p.Get("requestId").Peek()))
	case "thread/tokenUsage/updated":
		d.tokens(p.Get("tokenUsage"), key)
	case "error":
		d.fault(p)
	case "initialize", "initialized", "thread/start", "thread/resume", "thread/fork", "turn/start", "turn/steer", "turn/interrupt",
		"warning", "thread/status/changed", "thread/name/updated", "thread/closed", "turn/diff/updated", "turn/plan/updated",
		"mcpServer/startupStatus/updated", "account/updated", "account/rateLimits/updated", "hook/started", "hook/completed",
		"item/reasoning/summaryPartAdded", "item/fileChange/outputDelta":
		m := d.Status(key, method)
		m.Content = p.First("message", "threadName").Text()
		if flags := p.Path("status", "activeFlags"); flags.Len() > 0 { // the thread waits for these
			m.Content = flags.JSON()
		}
		if method == "turn/start" || method == "turn/steer" {
			input(m, p.Get("input"))
		}
	default:
		d.Unknown(msg.HashKey(d.Run, string(root.Peek())), method, root)
	}
	return true
}

// find returns the thread of that id, or remembers it.
func (d *connection) find(id string) *thread {
	if t := bounded.Find(d.Threads, func(t *thread) bool { return t.ID == id }); t != nil {
		return t
	}
	if len(d.Threads) == maxThreads {
		d.Threads = slices.Delete(d.Threads, 0, 1)
	}
	t := &thread{State: codex.State{ID: id}}
	d.Threads = slices.Insert(d.Threads, max(0, len(d.Threads)-1), t) // the active one stays the last
	return t
}

// enter makes a thread that of the current message. A message without one is of the thread
// before it.
func (d *connection) enter(id string) {
	if d.th == nil && len(d.Threads) > 0 { // after a restart
		d.th = d.Threads[len(d.Threads)-1]
	}
	if id != "" {
		d.th = d.find(id)
		if i := slices.Index(d.Threads, d.th); i < len(d.Threads)-1 {
			d.Threads = append(slices.Delete(d.Threads, i, i+1), d.th)
		}
	} else if d.th == nil {
		d.th = new(thread)
	}
	d.State = &d.th.State
}

// answer decodes a response: of the server with a thread, or of the client with a decision.
func (d *connection) answer(root jsonv.Value, key string) {
	result, fault := root.Get("result"), root.Get("error")
	if t := result.Get("thread"); t.Is(jsonv.Object) {
		d.th.Model = ident.Of(result.Get("model"))
		d.started(t, key)
		return
	}
	m := d.Status(key, "response")
	conversation.AttrsAs(m, result, ident.Of, "user_agent=userAgent", "codex_home=codexHome")
	m.SetAttr("turn_id", ident.Of(result.Path("turn", "id")))
	if text := fault.Get("message"); text.Exists() {
		m.IsError, m.Content = true, text.Text()
	}
	if decision := result.Get("decision"); decision.Exists() || result.Get("answers").Exists() {
		codex.SetIDs(m, result, "decision")
		d.answered(string(root.Get("id").Peek()))
	}
}

// started decodes a thread: {id, sessionId, parentThreadId, forkedFromId, cwd, source, …}.
func (d *connection) started(v jsonv.Value, key string) {
	t := d.th
	if root := ident.Of(v.Get("sessionId")); root != "" && root != t.ID {
		t.Session = root
	}
	spawned := v.Path("source", "subAgent", "thread_spawn", "parent_thread_id")
	if parent := ident.First(v.Get("parentThreadId"), spawned); parent != "" {
		d.below(t, parent)
		spawned.Equal(parent)
	}
	t.Name = cmp.Or(ident.First(v.Get("agentNickname"), v.Get("agentRole")), t.Name)
	t.Provider, t.Dir = ident.Of(v.Get("modelProvider")), ident.Of(v.Get("cwd"))
	t.Client = msg.Client{Project: t.Dir, Branch: ident.Of(v.Path("gitInfo", "branch")), Version: ident.Of(v.Get("cliVersion"))}
	t.Manual = v.Get("source").In("cli", "vscode")
	m := d.Status(key, "thread/started")
	m.Model, m.Provider, m.Client = t.Model, t.Provider, t.Client
	if !t.Child {
		m.Title = conversation.Excerpt(v.Get("name"))
	}
	if t.ID != d.SessionID() {
		m.SetAttr("thread_id", t.ID)
	}
	for _, name := range [...]string{"source", "forkedFromId", "agentNickname", "agentRole", "path", "name"} {
		m.SetAttr(codex.Snake(name), ident.Of(v.Get(name))) // as transcripts spell it
	}
}

// below makes a thread that of a sub-agent, which has one run.
func (d *connection) below(t *thread, parent string) {
	if t.Child {
		return
	}
	t.Parent, t.Child, t.Run = parent, true, t.ID
	if t.Session == "" {
		t.Session = cmp.Or(d.find(parent).Session, parent)
	}
}

// completed decodes turn/completed: {turn: {id, status: completed | interrupted | failed, error, completedAt}}.
// Its items repeat the last one.
func (d *connection) completed(turn jsonv.Value) {
	id := ident.Of(turn.Get("id"))
	d.Run = cmp.Or(d.Run, id)
	d.At = conversation.TimeOf(turn.Get("completedAt")).Or(d.At)
	for _, p := range d.th.Parts { // of items that were not completed
		m := d.unfinished(p)
		m.Content, m.Complete = msg.Plain(string(p.Text)), msg.Partial
	}
	d.th.Deltas, d.th.Response, d.th.Last = conversation.Deltas{}, "", ""
	refused := func(c *codex.Call) bool { return c.Failed } // by item/completed, and no person was asked
	for c := d.Calls.Oldest(refused); c != nil; c = d.Calls.Oldest(refused) {
		d.Calls.Remove(c)
		codex.Fail(d.Result(c), "tool_error")
	}
	m := d.Add(msg.Stop, "stop:"+id)
	m.Hidden, m.Signal, m.FinishReason = true, msg.RunEnd, "stop"
	switch status := turn.Get("status"); {
	case status.Equal("failed"):
		m.IsError, m.Hidden, m.FinishReason = true, false, "error"
		m.Content = turn.Path("error", "message").Text()
		m.Tool.ErrorType = ident.Of(turn.Path("error", "codexErrorInfo"))
	case status.Equal("interrupted"):
		m.IsError, m.FinishReason = true, "interrupted"
	}
	m.SetAttr("duration_ms", turn.Get("durationMs").Digits())
	d.ended(m.FinishReason)
	if !d.Child {
		d.Run = ""
	}
}

// unfinished adds the message of an item of which only pieces came.
func (d *connection) unfinished(p *conversation.Part) *msg.Message {
	if p.Kind != msg.ToolResult {
		m := d.Add(p.Kind, p.Name)
		m.Role = msg.RoleAssistant
		return m
	}
	return d.Result(d.call(p.Name))
}

// ended adds the result of the call that began the thread of a sub-agent, if the parent gets
// its answer in no item.
func (d *connection) ended(reason string) {
	state := map[string]string{"stop": "completed", "interrupted": "interrupted", "error": "errored"}[reason]
	child := d.State
	for _, t := range d.Threads {
		if t.ID == child.Parent && t.Calls.Oldest(func(c *codex.Call) bool { return c.Child == child.ID && c.Path != "" }) != nil {
			d.State = &t.State
			d.Answer(child.ID, state, msg.Text{})
			d.State = child
			return
		}
	}
}

// tokens decodes tokenUsage: {total, last, modelContextWindow}. It is the usage of one response
// if the total has moved.
func (d *connection) tokens(v jsonv.Value, key string) {
	total, last := openai.Usage(v.Get("total")), openai.Usage(v.Get("last"))
	t := d.th
	if total == d.Total {
		d.Status(key, "thread/tokenUsage/updated")
		return
	}
	d.Grow(total)
	if key = t.Response; key == "" {
		key = msg.HashKey(d.ID, string(v.Get("total").Peek()))
	}
	m := d.Add(msg.Usage, "usage:"+key)
	m.Hidden, m.Model, m.Provider, m.Usage = true, t.Model, t.Provider, openai.Tokens(last, msg.Provider)
	m.ResponseID, m.ParentKey = t.Response, t.Last
	m.SetAttr("context_window", v.Get("modelContextWindow").Digits())
	t.Response, t.Last = "", ""
}

// fault decodes error: {error: {message, codexErrorInfo}, willRetry}.
func (d *connection) fault(p jsonv.Value) {
	text := p.Path("error", "message")
	m := d.Add(msg.Error, "error:"+msg.HashKey(d.ID, d.Run, string(text.Peek())))
	m.IsError, m.Content = true, text.Text()
	m.Tool.ErrorType = ident.Of(p.Path("error", "codexErrorInfo"))
	if p.Get("willRetry").Bool() {
		m.Kind, m.IsError, m.Hidden, m.Signal = msg.Status, false, true, msg.Retry
	}
}
