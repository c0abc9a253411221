package tap

import (
	"encoding/json"
	"net/http"
	"strings"
)

// idHeaders are the headers in which agents identify a request: the session, the agent, the agent above it. None of them is
// a credential.
var idHeaders = map[string]bool{
	"session-id": true, "session_id": true, "thread-id": true, "conversation-id": true, "conversation_id": true, "originator": true,
	"x-client-request-id": true, "x-openai-subagent": true, "x-session-affinity": true, "x-session-id": true, "x-parent-session-id": true,
	"x-request-id": true, "x-initiator": true, "x-interaction-id": true, "x-interaction-type": true, "x-agent-task-id": true, "x-app": true,
}

// idPrefixes are those of agents that add headers with each version.
var idPrefixes = [...]string{"x-claude-code-", "x-codex-", "x-opencode-"}

// maxIDs is the number of bytes of the ids of a request.
const maxIDs = 16 << 10

// requestIDs are the headers that identify a request, a JSON object of their names in lower case; empty when there are
// none.
func requestIDs(h http.Header) string {
	ids := make(map[string]string)
	for name, values := range h {
		name = strings.ToLower(name)
		known := idHeaders[name]
		for _, p := range idPrefixes {
			known = known || strings.HasPrefix(name, p)
		}
		if known && len(values) > 0 && values[0] != "" {
			ids[name] = strings.ToValidUTF8(cropped(values[0]), "\uFFFD")
		}
	}
	if len(ids) == 0 {
		return ""
	}
	b, err := json.Marshal(ids)
	if err != nil || len(b) > maxIDs {
		return ""
	}
	return string(b)
}
