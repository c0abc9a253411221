package tap

import (
	"cmp"
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

// idPrefixes are those of agents that add headers with each version, and the one of headers that people
// have their agents send, to name a team for example.
var idPrefixes = [...]string{"x-claude-code-", "x-codex-", "x-opencode-", "x-earshot-"}

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
	return encodeIDs(ids)
}

// answeredBy adds the provider's own id of the request, which it sends with the response: by it the
// agent's telemetry names the response.
func answeredBy(ids string, h http.Header) string {
	id := h.Get("Request-Id")
	if id == "" {
		return ids
	}
	all := make(map[string]string)
	if ids != "" && json.Unmarshal([]byte(ids), &all) != nil {
		return ids
	}
	all["request-id"] = strings.ToValidUTF8(cropped(id), "\uFFFD")
	return cmp.Or(encodeIDs(all), ids)
}

func encodeIDs(ids map[string]string) string {
	if len(ids) == 0 {
		return ""
	}
	b, err := json.Marshal(ids)
	if err != nil || len(b) > maxIDs {
		return ""
	}
	return string(b)
}
