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
		Name: "codex-app-server", Revision: 6, Version: 1, LeavesOut: leavesOut,
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
	Turn                string `json:",omitempty"` // the active one
	Asked               string `json:",omitempty"` // the model of the thread, while another one answers
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
	m  jsonrpc.Message
}

// message decodes one message: {method, params} with an id if it is a request, {id, result} or
// {id, error}.
func (d *connection) message(root jsonv.Value) (keep bool) {
	d.m = jsonrpc.Of(d.Frame, root)
	method, p := d.m.Get("method").Str(), d.m.Get("params")
	d.At = conversation.TimeOf(p.First("completedAtMs", "startedAtMs")).Or(conversation.TimeOf(d.m.Get("emittedAtMs"))).Or(d.m.At)
	d.enter(ident.First(p.Get("threadId"), p.Path("thread", "id"), d.m.Path("result", "thread", "id")))
	if d.ID != "" && d.Run == "" && method != "thread/tokenUsage/updated" { // it began before the recording
		d.Run = ident.Peek(p.Get("turnId"))
	}
	p.Get("turnId").In(d.Run, d.th.Turn)
	key, typ, isNote := d.m.Note(d.At)
	switch result, fault := d.m.Get("result"), d.m.Get("error"); {
	case isNote:
		d.Status(key, typ).Content = d.m.Value.Text()
	case method != "":
		d.read(method, p)
	case result.Exists() || fault.Exists():
		d.answer(result, fault)
	default:
		d.unknown("")
	}
	return true
}

// key names a message without an id of its own by what it is about.
func (d *connection) key(method string, p jsonv.Value) string {
	return "message:" + msg.HashKey(method, string(d.m.Get("id").Peek()), d.ID, d.Run, strconv.FormatInt(d.At.Nanos, 10),
		string(p.First("itemId", "status", "message", "name", "requestId").Peek()), string(d.m.Get("result").First("decision", "answers").Peek()))
}

func (d *connection) unknown(typ string) {
	d.Unknown(msg.HashKey(d.Run, string(d.m.Peek())), typ, d.m.Value)
}

// read decodes a request or a notification.
func (d *connection) read(method string, p jsonv.Value) {
	switch method {
	case "thread/started":
		d.started(p.Get("thread"), d.key(method, p))
	case "turn/started":
		d.At = conversation.TimeOf(p.Path("turn", "startedAt")).Or(d.At)
		d.Model, d.th.Asked = cmp.Or(d.th.Asked, d.Model), ""
		if d.th.Turn = ident.Of(p.Path("turn", "id")); !d.Child {
			d.Run = d.th.Turn
		}
		d.Status("turn:"+d.th.Turn, method)
	case "turn/completed":
		d.completed(p.Get("turn"))
	case "item/started", "item/completed":
		d.item(method, p.Get("item"))
	case "item/agentMessage/delta":
		d.piece(msg.Assistant, method, p)
	case "item/plan/delta":
		d.piece(msg.Plan, method, p)
	case "item/reasoning/summaryTextDelta", "item/reasoning/textDelta":
		d.piece(msg.Reasoning, method, p)
	case "item/commandExecution/outputDelta":
		d.piece(msg.ToolResult, method, p)
	case "item/commandExecution/requestApproval", "item/fileChange/requestApproval", "item/permissions/requestApproval",
		"item/tool/requestUserInput", "mcpServer/elicitation/request":
		d.asks(p)
	case "serverRequest/resolved":
		d.Status(d.key(method, p), method)
		d.answered(string(p.Get("requestId").Peek()))
	case "thread/tokenUsage/updated":
		d.tokens(method, p)
	case "error":
		d.Fault("error:"+msg.HashKey(d.ID, d.Run, string(p.Path("error", "message").Peek())), p.Get("error"), p.Get("willRetry").Bool())
	case "turn/start", "turn/steer":
		d.Model = cmp.Or(ident.Of(p.Get("model")), d.Model)
		input(d.Status(d.key(method, p), method), p.Get("input"))
	case "model/rerouted": // for the rest of the turn
		d.th.Asked, d.Model = cmp.Or(d.th.Asked, d.Model), cmp.Or(ident.Of(p.Get("toModel")), d.Model)
		codex.SetIDs(d.Status(d.key(method, p), method), p, "from_model=fromModel", "reason")
	case "initialize", "initialized", "thread/start", "thread/resume", "thread/fork", "thread/read", "turn/interrupt",
		"warning", "thread/status/changed", "thread/name/updated", "thread/closed", "turn/diff/updated", "turn/plan/updated",
		"mcpServer/startupStatus/updated", "account/updated", "account/rateLimits/updated", "hook/started", "hook/completed",
		"item/reasoning/summaryPartAdded", "item/fileChange/outputDelta":
		m := d.Status(d.key(method, p), method)
		m.Content = p.First("message", "threadName").Text()
		if flags := p.Path("status", "activeFlags"); flags.Len() > 0 { // the thread waits for these
			m.Content = flags.JSON()
		}
	default:
		d.unknown(method)
	}
}

// use returns the thread of that id, which it makes the last one.
func (d *connection) use(id string) *thread {
	return bounded.Use(&d.Threads, maxThreads, func(t *thread) bool { return t.ID == id }, func() *thread { return &thread{State: codex.State{ID: id}} }, nil)
}

// enter makes a thread the active one, which is that of the message. A message without one is of the thread before it.
func (d *connection) enter(id string) {
	if last := len(d.Threads) - 1; id == "" && last >= 0 {
		id = d.Threads[last].ID
	}
	d.th = d.use(id)
	d.State = &d.th.State
}

// child returns the thread of a sub-agent.
func (d *connection) child(id, parent string) *thread {
	t := d.use(id)
	if !t.Child {
		t.Below(parent, d.use(parent).Session)
	}
	d.use(d.th.ID) // it is still the active one
	return t
}

// answer decodes a response: of the server with a thread, or of the client with a decision.
func (d *connection) answer(result, fault jsonv.Value) {
	key := d.key("", jsonv.Value{})
	if t := result.Get("thread"); t.Is(jsonv.Object) {
		d.Model = cmp.Or(ident.Of(result.Get("model")), d.Model)
		d.started(t, key)
		return
	}
	m := d.Status(key, "response")
	conversation.AttrsAs(m, result, ident.Of, "user_agent=userAgent", "codex_home=codexHome")
	m.SetAttr("turn_id", ident.Of(result.Path("turn", "id")))
	conversation.Fault(m, fault.Get("message"))
	if result.First("decision", "answers", "action", "permissions").Exists() {
		codex.SetIDs(m, result, "decision", "action")
		d.answered(d.m.ID())
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
		d.child(t.ID, parent)
		spawned.Equal(parent)
	}
	t.Name = cmp.Or(ident.First(v.Get("agentNickname"), v.Get("agentRole")), t.Name)
	t.Provider, t.Dir = codex.Provider(v.Get("modelProvider")), ident.Of(v.Get("cwd"))
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
	codex.SetIDs(m, v, "source", "forked_from_id=forkedFromId", "agent_nickname=agentNickname", "agent_role=agentRole", "path", "name") // as transcripts do
}

// completed decodes turn/completed: {turn: {id, status: completed | interrupted | failed, error, completedAt}}.
// Its items repeat the last one.
func (d *connection) completed(turn jsonv.Value) {
	id := ident.Of(turn.Get("id"))
	d.Run = cmp.Or(d.Run, id)
	d.At = conversation.TimeOf(turn.Get("completedAt")).Or(d.At)
	d.unfinished()
	d.th.Response, d.th.Last = "", ""
	refused := func(c *codex.Call) bool { return c.Failed } // by item/completed, and no person was asked
	for c := d.Calls.Oldest(refused); c != nil; c = d.Calls.Oldest(refused) {
		d.Calls.Remove(c)
		codex.Fail(d.Result(c), "tool_error")
	}
	reason, state := codex.Stopped, "completed"
	switch jsonv.Word(turn.Get("status"), "failed", "interrupted") {
	case "failed":
		reason, state = codex.Failed, "errored"
	case "interrupted":
		reason, state = "interrupted", "interrupted"
	}
	d.Stop(d.Run, id, reason, turn.Get("error")).SetAttr("duration_ms", turn.Get("durationMs").Digits())
	d.ended(state)
	if !d.Child {
		d.Run = ""
	}
}

// unfinished adds the messages of the items of which only pieces came.
func (d *connection) unfinished() {
	for _, p := range d.th.Parts {
		var m *msg.Message
		if p.Kind == msg.ToolResult {
			m = d.Result(d.OpenCall(p.Name))
		} else {
			m = d.Add(p.Kind, p.Name)
			m.Role = msg.RoleAssistant
		}
		m.Content, m.Complete = msg.Plain(string(p.Text)), msg.Partial
	}
	d.th.Deltas = conversation.Deltas{}
}

// ended adds the result of the call that began the thread of a sub-agent, if the parent gets
// its answer in no item.
func (d *connection) ended(state string) {
	child := d.State
	began := func(c *codex.Call) bool { return c.Child == child.ID && c.Path != "" }
	if t := bounded.Find(d.Threads, func(t *thread) bool { return t.ID == child.Parent }); t != nil && t.Calls.Oldest(began) != nil {
		d.State = &t.State
		d.Answer(child.ID, state, msg.Text{})
		d.State = child
	}
}

// tokens decodes {turnId, tokenUsage: {total, last, modelContextWindow}}. It is the usage of one response
// if the total has moved. When a client resumes or forks a thread, the usage of the last turn comes once more.
func (d *connection) tokens(method string, p jsonv.Value) {
	v, t := p.Get("tokenUsage"), d.th
	total, turn := openai.Usage(v.Get("total")), ident.Of(p.Get("turnId"))
	grown := d.Grow(total)
	if told := turn != "" && turn != t.Turn && turn != d.Run && t.Response == ""; told || grown == (conversation.Counts{}) {
		if m := d.Status(d.key(method, p), method); told {
			m.SetAttr("turn_id", turn)
		}
		return
	}
	key := cmp.Or(t.Response, msg.HashKey(d.ID, string(v.Get("total").Peek())))
	m := d.Usage(d.Run, key, openai.Usage(v.Get("last")), msg.Provider)
	m.ResponseID, m.ParentKey = t.Response, t.Last
	m.SetAttr("context_window", v.Get("modelContextWindow").Digits())
	t.Response, t.Last = "", ""
}
