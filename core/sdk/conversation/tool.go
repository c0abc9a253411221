package conversation

import "strings"

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
