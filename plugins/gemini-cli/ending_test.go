package geminicli

import (
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder/decodertest"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestEnding: how a command and an agent ended is read from the result, of which the output may be anything.
func TestEnding(t *testing.T) {
	const shell, agent = "run_shell_command", "invoke_agent"
	for _, c := range []struct{ tool, text, class, code string }{
		{shell, "<untrusted_context>\nOutput: one\nProcess Group PGID: 7\n</untrusted_context>", "", ""},
		{shell, "<untrusted_context>\nOutput: (empty)\nExit Code: 3\nProcess Group PGID: 7\n</untrusted_context>", "tool_error", "3"},
		{shell, "Output: Exit Code: 3\nas it said\nProcess Group PGID: 7", "", ""},
		{shell, "Output: one\nSignal: 9\nBackground PIDs: 8, 9\nProcess Group PGID: 7", "tool_error", ""},
		{shell, "Command: x\nDirectory: (root)\nOutput: one\nError: (none)\nExit Code: 0\nSignal: 0\nProcess Group PGID: 7", "", "0"},
		{shell, "Command: x\nDirectory: (root)\nOutput: one\nError: (none)\nExit Code: (none)\nSignal: (none)\nProcess Group PGID: 7", "", ""},
		{shell, "Output: " + strings.Repeat("line\n", 1000) + "Exit Code: 127", "tool_error", "127"},
		{shell, "Command was automatically cancelled because it exceeded the timeout of 5.0 minutes without output.", "timeout", ""},
		{shell, "Command was cancelled by user before it could complete.", "interrupted", ""},
		{shell, "Command exited with code: 3", "tool_error", "3"},
		{"read_file", "Exit Code: 3", "", ""},
		{agent, "Subagent 'x' finished.\nTermination Reason: GOAL\nResult:\nTermination Reason: ERROR", "", ""},
		{agent, "Subagent 'x' finished.\nTermination Reason: MAX_TURNS\nResult:\nnone", "tool_error", ""},
		{agent, "Subagent 'x' finished.\nTermination Reason: TIMEOUT\nResult:\nnone", "timeout", ""},
	} {
		m := msg.Message{Content: msg.Plain(c.text)}
		m.Tool.Name = c.tool
		if ending(&m); m.Tool.ErrorType != c.class || m.IsError != (c.class != "") || m.Attr("exit_code") != c.code {
			t.Errorf("%q: %q, exit code %q; want %q, %q", c.text[:min(len(c.text), 60)], m.Tool.ErrorType, m.Attr("exit_code"), c.class, c.code)
		}
	}
}

// TestSubagents: what a sub-agent found is no title of the session, and an agent whose end was refused goes on.
func TestSubagents(t *testing.T) {
	for _, m := range decodertest.Play(t, New(), "subagent_title") {
		if m.Title != "" {
			t.Errorf("the title %q", m.Title)
		}
	}
	for _, m := range decodertest.Play(t, New(), "subagent_failed") {
		if m.Kind == msg.Stop && m.Complete == msg.Complete {
			t.Error("the run has ended")
		}
	}
}
