package verdicts

import (
	"fmt"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
)

// vercelUI writes the recording of a tap in front of an app that speaks the UI message stream of Vercel's AI SDK.
type vercelUI struct {
	record
	session string
	turn    int
	said    []any
}

func newVercelUI(session string) *vercelUI { return &vercelUI{session: session} }

func (w *vercelUI) frame(now time.Time, f frame.Frame) {
	w.add(fmt.Sprintf("http://127.0.0.1:3000/api/chat#%s-%d", w.session, w.turn), now, f, true)
}

func (w *vercelUI) event(now time.Time, typ string, more m) {
	more["type"] = typ
	w.frame(now, frame.Frame{Kind: frame.Event, Data: encode(more)})
}

func (w *vercelUI) piece(now time.Time, kind, text string) {
	id := w.id("txt-")
	w.event(now, kind+"-start", m{"id": id})
	w.event(now, kind+"-delta", m{"id": id, "delta": text})
	w.event(now, kind+"-end", m{"id": id})
}

func (w *vercelUI) done(now time.Time) {
	w.event(now, "finish-step", m{})
	w.event(now, "finish", m{"finishReason": "stop"})
	w.frame(now, frame.Frame{Kind: frame.Event, Data: []byte("[DONE]")})
	w.frame(now, frame.Frame{Kind: frame.Close})
}

func (w *vercelUI) write(s step, now time.Time) bool {
	call := "tc-" + w.session[:8] + s.ID
	switch s.What {
	case "user":
		w.turn++
		w.said = append(w.said, m{"id": w.id("u-" + w.session[:8]), "role": "user", "parts": []any{m{"type": "text", "text": s.Text}}})
		w.frame(now, frame.Frame{Kind: frame.Request, Name: "POST /api/chat", FromClient: true, Data: encode(m{"id": w.session, "messages": w.said, "trigger": "submit-message"})})
		w.event(now, "start", m{"messageId": fmt.Sprintf("msg-%s-%d", w.session[:13], w.turn)})
		w.event(now, "start-step", m{})
	case "text":
		w.piece(now, "text", s.Text)
	case "think":
		w.piece(now, "reasoning", s.Text)
	case "final":
		w.piece(now, "text", s.Text)
		w.done(now)
	case "call":
		w.event(now, "tool-input-start", m{"toolCallId": call, "toolName": s.Name})
		w.event(now, "tool-input-available", m{"toolCallId": call, "toolName": s.Name, "input": raw(s.Text)})
	case "ask":
		w.event(now, "tool-approval-request", m{"approvalId": "ap-" + s.ID, "toolCallId": call})
	case "result":
		w.event(now, "tool-output-available", m{"toolCallId": call, "output": s.Text})
		w.event(now, "finish-step", m{})
		w.event(now, "start-step", m{})
	case "error":
		w.event(now, "tool-output-error", m{"toolCallId": call, "errorText": s.Text})
		w.event(now, "finish-step", m{})
		w.event(now, "start-step", m{})
	case "fail":
		w.event(now, "error", m{"errorText": s.Text})
		w.frame(now, frame.Frame{Kind: frame.Close})
	case "close":
		w.frame(now, frame.Frame{Kind: frame.Close, Name: frame.Lost})
	default:
		return false
	}
	return true
}
