package wrap

import (
	"encoding/json"
	"strings"
)

// Formats are the formats of recordings, each a folder.
var Formats = []string{"mcp", "acp", "codex-app-server"}

// formatOf returns the format of a connection with that message; "" if it may be of several.
func formatOf(line []byte) string {
	var m struct {
		Version string `json:"jsonrpc"`
		Method  string
		Params  struct {
			ProtocolVersion json.RawMessage
			Meta            map[string]json.RawMessage `json:"_meta"`
		}
		Result struct{ ProtocolVersion json.RawMessage }
	}
	if json.Unmarshal(line, &m) != nil && m.Method == "" {
		return ""
	}
	version := m.Params.ProtocolVersion
	if m.Method == "" {
		version = m.Result.ProtocolVersion
	}
	group, _, _ := strings.Cut(m.Method, "/")
	switch {
	case m.Version == "" && m.Method != "": // codex app-server leaves it out
		return "codex-app-server"
	case len(version) > 0 && version[0] == '"':
		return "mcp"
	case len(version) > 0: // ACP counts its versions
		return "acp"
	}
	switch group {
	case "session", "authenticate", "fs", "terminal":
		return "acp"
	case "tools", "resources", "prompts", "completion", "logging", "sampling", "elicitation", "roots", "server", "notifications", "ping":
		return "mcp"
	}
	return ""
}
