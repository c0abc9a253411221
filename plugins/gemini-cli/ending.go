package geminicli

import (
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// ending reads from the result of a call how a command or a sub-agent ended, which is a success for the program if it has run:
//
//	Output: …\nExit Code: 1\nSignal: 9\nBackground PIDs: 7\nProcess Group PGID: 8        the last lines; without those that are 0 in newer versions
//	Command exited with code: 1 | Command terminated by signal: 9                       as it is printed, if there was no output
//	Command was automatically cancelled because … | Command was cancelled by user …
//	Subagent 'name' finished.\nTermination Reason: GOAL | TIMEOUT | MAX_TURNS | ABORTED | ERROR…
func ending(m *msg.Message) {
	if m.IsError {
		return
	}
	const most = 512
	text := m.Content.String()
	start, end := text[:min(len(text), most)], text[max(0, len(text)-most):]
	class, code := "", ""
	switch {
	case m.Tool.Name == "run_shell_command":
		class, code = command(start, end)
	case strings.HasPrefix(start, "Subagent '"):
		_, reason, _ := strings.Cut(start, "\nTermination Reason: ")
		reason, _, _ = strings.Cut(reason, "\n")
		switch reason {
		case "", "GOAL":
		case "TIMEOUT":
			class = "timeout"
		case "ABORTED":
			class = "interrupted"
		default:
			class = "tool_error"
		}
	}
	m.SetAttr("exit_code", code)
	m.IsError, m.Tool.ErrorType = class != "", class
}

// command returns the class of the error of a command and its exit code, by the beginning and the end of its result.
func command(start, end string) (class, code string) {
	fails := func(number string) bool { n, err := strconv.Atoi(number); return err == nil && n != 0 }
	start = strings.TrimPrefix(start, "<untrusted_context>\n")
	switch code, exited := strings.CutPrefix(start, "Command exited with code: "); {
	case exited && fails(code):
		return "tool_error", code
	case strings.HasPrefix(start, "Command terminated by signal: "):
		return "tool_error", ""
	case strings.HasPrefix(start, "Command was automatically cancelled"):
		return "timeout", ""
	case strings.HasPrefix(start, "Command was cancelled by user"), strings.HasPrefix(start, "Command cancelled by user"):
		return "interrupted", ""
	}
	lines := strings.Split(strings.TrimSuffix(end, "\n</untrusted_context>"), "\n")
	for i := len(lines) - 1; i > 0; i-- {
		label, value, _ := strings.Cut(lines[i], ": ")
		switch label {
		case "Exit Code":
			if code = value; fails(value) {
				class = "tool_error"
			}
			return class, strings.TrimSuffix(code, "(none)")
		case "Signal":
			if fails(value) {
				class = "tool_error"
			}
		case "Background PIDs", "Process Group PGID":
		default:
			return class, ""
		}
	}
	return class, ""
}
