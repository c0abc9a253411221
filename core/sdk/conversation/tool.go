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
