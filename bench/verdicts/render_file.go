package verdicts

import (
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
)

// geminiCLI writes a chat of Gemini CLI: a call is added to its message when it is over.
type geminiCLI struct {
	record
	session string
	began   bool
	calls   map[string]m
	asked   map[string]string // the message of a call
}

func newGeminiCLI(session string) *geminiCLI {
	return &geminiCLI{session: session, calls: map[string]m{}, asked: map[string]string{}}
}

func (w *geminiCLI) line(now time.Time, rec m) {
	if !w.began {
		w.began = true
		w.line(now, m{"sessionId": w.session, "projectHash": "9f1e0c4b7a6d5e2f", "startTime": stamp(now), "lastUpdated": stamp(now), "kind": "main"})
	}
	w.add("/home/ada/.gemini/tmp/quarry/chats/session-"+w.session[:8]+".jsonl", now, frame.Frame{Kind: frame.Line, Data: encode(rec)}, false)
}

func (w *geminiCLI) message(now time.Time, id, text string, calls ...any) {
	rec := m{"id": id, "timestamp": stamp(now), "type": "gemini", "content": text, "thoughts": []any{}, "model": "gemini-9-pro",
		"tokens": m{"input": 900, "output": 20, "cached": 0, "thoughts": 0, "tool": 0, "total": 920}}
	if calls != nil {
		rec["toolCalls"] = calls
	}
	w.line(now, rec)
}

func (w *geminiCLI) write(s step, now time.Time) bool {
	switch s.What {
	case "user":
		w.line(now, m{"id": w.id("u-" + w.session[:8]), "timestamp": stamp(now), "type": "user", "content": s.Text})
	case "text", "final":
		w.message(now, w.id("g-"+w.session[:8]), s.Text)
	case "call":
		w.asked[s.ID] = w.id("g-" + w.session[:8])
		w.message(now, w.asked[s.ID], "")
		w.calls[s.ID] = m{"id": w.session[:8] + s.ID, "name": s.Name, "args": raw(s.Text)}
	case "result", "error":
		c, key := w.calls[s.ID], "output"
		if c["status"] = "success"; s.What == "error" {
			c["status"], key = "error", "error"
		}
		c["timestamp"] = stamp(now)
		c["result"] = []any{m{"functionResponse": m{"id": c["id"], "name": c["name"], "response": m{key: s.Text}}}}
		w.message(now, w.asked[s.ID], "", c)
	case "retry":
		w.line(now, m{"id": w.id("e-" + w.session[:8]), "timestamp": stamp(now), "type": "error", "content": "[API Error: the model is overloaded]"})
	default:
		return false
	}
	return true
}

// otelGenAI writes the spans of an agent as its exporter sends them: each when it has ended.
type otelGenAI struct {
	record
	session string
	turn    int
	started time.Time
	last    time.Time
	calls   map[string]step
	from    map[string]time.Time
}

func newOTelGenAI(session string) *otelGenAI {
	return &otelGenAI{session: session, calls: map[string]step{}, from: map[string]time.Time{}}
}

func (w *otelGenAI) span(now, from time.Time, root bool, name string, attributes map[string]string) {
	var list []any
	for k, v := range attributes {
		list = append(list, m{"key": k, "value": m{"stringValue": v}})
	}
	trace := strings.ReplaceAll(w.session, "-", "")
	trunk := trace[:12] + strconv.Itoa(1000+w.turn)
	span := m{"traceId": trace[:28] + strconv.Itoa(1000+w.turn), "spanId": trunk, "name": name, "kind": 1,
		"startTimeUnixNano": strconv.FormatInt(from.UnixNano(), 10), "endTimeUnixNano": strconv.FormatInt(now.UnixNano(), 10), "attributes": list}
	if !root {
		span["parentSpanId"], span["spanId"] = trunk, w.id(trace[:12])
	}
	w.add("http://127.0.0.1:4318/v1/traces", now, frame.Frame{Kind: frame.Line, Data: encode(m{"resourceSpans": []any{m{
		"resource":   m{"attributes": []any{m{"key": "service.name", "value": m{"stringValue": "quarry"}}}},
		"scopeSpans": []any{m{"scope": m{"name": "quarry"}, "spans": []any{span}}}}}})}, false)
}

func (w *otelGenAI) chat(now time.Time, finish, output string) {
	w.span(now, w.last, false, "chat small-1", map[string]string{"gen_ai.conversation.id": "conv-" + w.session[:8], "gen_ai.operation.name": "chat", "gen_ai.request.model": "small-1",
		"gen_ai.response.id": w.id("msg_" + w.session[:8]), "gen_ai.response.finish_reasons": finish, "gen_ai.output.messages": output})
	w.last = now
}

func (w *otelGenAI) write(s step, now time.Time) bool {
	text := string(encode([]any{m{"role": "assistant", "parts": []any{m{"type": "text", "content": s.Text}}}}))
	switch s.What {
	case "user":
		w.turn++
		w.started, w.last = now, now
	case "text":
		w.chat(now, "length", text)
	case "call":
		w.calls[s.ID], w.from[s.ID] = s, now
		w.chat(now, "tool_use", string(encode([]any{m{"role": "assistant", "parts": []any{m{"type": "tool_call", "id": "toolu_" + w.session[:8] + s.ID, "name": s.Name, "arguments": raw(s.Text)}}}})))
	case "result":
		c := w.calls[s.ID]
		w.span(now, w.from[s.ID], false, "execute_tool "+c.Name, map[string]string{"gen_ai.conversation.id": "conv-" + w.session[:8], "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": c.Name,
			"gen_ai.tool.call.id": "toolu_" + w.session[:8] + s.ID, "gen_ai.tool.call.arguments": c.Text, "gen_ai.tool.call.result": s.Text})
		w.last = now
	case "final":
		w.chat(now, "stop", text)
		w.span(now, w.started, true, "invoke_agent quarry", map[string]string{"gen_ai.conversation.id": "conv-" + w.session[:8], "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "quarry"})
	default:
		return false
	}
	return true
}

// mcp writes the recording of `earshot wrap` between an agent and a server of MCP.
type mcp struct {
	record
	session string
	asked   map[string]int
}

func newMCP(session string) *mcp { return &mcp{session: session, asked: map[string]int{}} }

func (w *mcp) line(now time.Time, dir string, data m) {
	data["jsonrpc"] = "2.0"
	w.add("/srv/quarry/data/wrap/mcp/"+w.session+".jsonl", now, frame.Frame{Kind: frame.Line, Data: encode(m{"t": stamp(now), "dir": dir, "frame": data})}, false)
}

func (w *mcp) write(s step, now time.Time) bool {
	switch s.What {
	case "user":
		w.line(now, "out", m{"id": 0, "method": "initialize", "params": m{"protocolVersion": "2025-11-25", "capabilities": m{}, "clientInfo": m{"name": "quarry-client", "version": "2.3.1"}}})
		w.line(now, "in", m{"id": 0, "result": m{"protocolVersion": "2025-11-25", "capabilities": m{"tools": m{}}, "serverInfo": m{"name": "quarry-server", "version": "0.4.0"}}})
	case "call":
		w.n++
		w.asked[s.ID] = w.n
		w.line(now, "out", m{"id": w.n, "method": "tools/call", "params": m{"name": s.Name, "arguments": raw(s.Text), "_meta": m{"progressToken": w.n}}})
	case "progress":
		w.line(now, "in", m{"method": "notifications/progress", "params": m{"progressToken": w.n, "progress": now.Sub(began).Seconds(), "message": s.Text}})
	case "pause":
		w.line(now, "in", m{"id": 900, "method": "elicitation/create", "params": m{"message": s.Text, "requestedSchema": m{"type": "object", "properties": m{"yes": m{"type": "boolean"}}}}})
	case "resume":
		w.line(now, "out", m{"id": 900, "result": m{"action": "accept", "content": m{"yes": true}}})
	case "cancel":
		w.line(now, "out", m{"method": "notifications/cancelled", "params": m{"requestId": w.n, "reason": s.Text}})
	case "result":
		w.line(now, "in", m{"id": w.asked[s.ID], "result": m{"content": []any{m{"type": "text", "text": s.Text}}}})
	case "final":
	default:
		return false
	}
	return true
}
