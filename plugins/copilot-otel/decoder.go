// Package copilototel decodes the OpenTelemetry of GitHub Copilot: its CLI, VS Code and Visual Studio, over OTLP or from
// their files.
//
// Facts of the format that are easy to get wrong:
//
//   - VS Code has one response four times: the span chat, the events inference details and agent.turn, and the sum of
//     invoke_agent. The first two have the id of the response; the others count only where nothing else does.
//   - The cached tokens are in the input; those written to a cache are cache_creation up to CLI 1.0.78 and
//     cache_write since.
//   - github.copilot.cost is a multiplier of a request and no money; nano_aiu is summed again on invoke_agent.
//   - A sub-agent is an invoke_agent below the call that runs it. Visual Studio has several roots in a conversation, no
//     tokens, and the parent in virtual_parent.genai where the trace has lost it.
//   - The file of the CLI has an object for each span: times are [seconds, nanoseconds], attributes an object.
package copilototel

import (
	_ "embed"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/sdk/otlp"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return (&otlp.Profile{
		Name: "copilot-otel", Revision: 2,
		Summary: "OpenTelemetry of GitHub Copilot: CLI, VS Code and Visual Studio.",
		Names:   names, Rules: rules, Event: event, LeavesOut: leavesOut,
	}).Factory()
}

var names = otlp.With(otlp.GenAI, map[otlp.Field][]string{
	otlp.Session:    {"copilot_chat.conversation_id", "session.id", "copilot_chat.session_id", "copilot_chat.chat_session_id"},
	otlp.Input:      {"copilot_chat.user_request"},
	otlp.Delegate:   {"github.copilot.subagent.name"},
	otlp.FirstChunk: {"copilot_chat.time_to_first_token", "github.copilot.time_to_first_token_ms"},
})

// rules sets the kind of a span.
func rules(s *otlp.Span) {
	otlp.GenAIRules(s)
	if virtual := s.Has("virtual_parent.genai"); s.Parent == "" && len(virtual) == 16 {
		s.Parent = strings.ToLower(virtual)
	}
	switch {
	case s.Kind != otlp.Other:
	case s.Op != "", strings.HasPrefix(s.Name, "permission"), strings.HasPrefix(s.Name, "hook"), strings.HasPrefix(s.Name, "execute_hook"), s.Session != "":
		s.Kind = otlp.Step
		s.Waits = strings.HasPrefix(s.Name, "permission") || s.Op == "permission"
	}
	if s.Kind != otlp.Tool && s.To != "" {
		s.Attr("github.copilot.subagent.name", s.To)
		s.To = ""
	}
}

// event completes an event.
func event(s *otlp.Span, name string, body otlp.Value) bool {
	if !otlp.GenAIEvent(s, name, body) {
		s.Counted = false
		return false
	}
	return true
}
