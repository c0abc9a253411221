package conversation

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// ToolServer returns the MCP server in the name of a tool: mcp__<server>__<tool>.
func ToolServer(tool string) string {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	if !ok {
		return ""
	}
	server, _, _ := strings.Cut(rest, "__")
	return server
}

// ErrorClass returns the class of a tool's error by its text: that of the first phrase in it, of pairs of a
// phrase and a class.
func ErrorClass(text string, pairs ...string) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		if strings.Contains(text, pairs[i]) {
			return pairs[i+1]
		}
	}
	return "tool_error"
}

// Fault makes a message that of an error with this text, if there is one.
func Fault(m *msg.Message, text jsonv.Value) {
	if text.Exists() {
		m.IsError, m.Content = true, text.Text()
	}
}

// Exited writes the exit code of a command into the message of its result, and reports whether the command failed.
func Exited(m *msg.Message, code jsonv.Value) (failed bool) {
	m.SetAttr("exit_code", code.Digits())
	return code.Is(jsonv.Number) && code.Int() != 0
}

// Failed makes a result that of a tool that failed, if it did.
func Failed(m *msg.Message, failed bool) {
	if failed {
		m.IsError, m.Tool.ErrorType = true, "tool_error"
	}
}
