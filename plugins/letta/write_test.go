package letta

import (
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
)

func TestScopeOf(t *testing.T) {
	for address, want := range map[string]scope{
		"":                                                           {},
		"http://h:8283/v1/runs/run-1/stream":                         {},
		"/v1/agents/agent-1/messages/stream":                         {"agent-1", "agent-1"},
		"/v1/agents/a1/messages?limit=5":                             {"a1", "a1"},
		"/v1/conversations/conv-1/messages":                          {"conv-1", ""},
		"/v1/conversations/agent-1/messages":                         {"agent-1", "agent-1"},
		"/v1/conversations/default/messages":                         {},
		"/v1/groups/group-1/messages/stream":                         {"group-1", ""},
		"captures/2026/agent-1.jsonl":                                {"agent-1", "agent-1"},
		`C:\captures\agent-1\run.sse`:                                {"agent-1", "agent-1"},
		"captures/agent-1/conv-2.jsonl.gz":                           {"conv-2", "agent-1"},
		"captures/\xff/agent-\xff.jsonl":                             {"agent-\uFFFD", "agent-\uFFFD"},
		"/v1/conversations/conv-1/m?agent_id":                        {"conv-1", ""},
		"/v1/conversations/default/messages?agent_id=agent-1":        {"agent-1", "agent-1"},
		"/v1/conversations/conv-1/messages?agent_id=agent-1":         {"conv-1", "agent-1"},
		"/v1/agents/agent-1/messages?conversation_id=conv-1&limit=1": {"conv-1", "agent-1"},
		"/v1/agents/agent-1/messages?conversation_id=default":        {"agent-1", "agent-1"},
	} {
		if got := scopeOf(address); got != want {
			t.Errorf("%s: got %+v, want %+v", address, got, want)
		}
	}
}

// TestSession: the session of a message is that of the request's path, else of the option,
// the origin, the run.
func TestSession(t *testing.T) {
	const origin, options = "/v1/agents/agent-origin/messages", `{"session":"conv-option"}`
	request := frame.Frame{Kind: frame.Request, Name: "POST /v1/agents/agent-request/messages/stream", Data: []byte(`{"input":"hi"}`)}
	content := events(`{"message_type":"assistant_message","id":"m","run_id":"run-1","content":"x"}`)
	for _, c := range []struct {
		name, origin, options string
		frames                []frame.Frame
		session, agent        string
	}{
		{"request", origin, options, append([]frame.Frame{request}, content...), "agent-request", "agent-request"},
		{"option", origin, options, content, "conv-option", "agent-origin"},
		{"option names an agent", "", `{"session":"agent-option"}`, content, "agent-option", "agent-option"},
		{"origin", origin, "", content, "agent-origin", "agent-origin"},
		{"run", "in.sse", "", content, "run-1", ""},
		{"first message", "in.sse", "", events(`{"message_type":"assistant_message","id":"m","content":"x"}`), "m", ""},
		{"nothing", "in.sse", "", events(`{"message_type":"assistant_message","content":"x"}`), "run:", ""},
		{"not even a run", "in.sse", "", events(`{"message_type":"whatever"}`), "unknown", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := New().New(decoder.Stream{Origin: c.origin, Options: []byte(c.options)})
			if err != nil {
				t.Fatal(err)
			}
			got, _ := play(t, d, c.frames)
			m := got[len(got)-1]
			if c.session == "run:" && len(m.Session) > len(c.session) {
				m.Session = m.Session[:len(c.session)]
			}
			if m.Session != c.session || m.Agent.ID != c.agent {
				t.Errorf("session %q of agent %q, want %q of %q", m.Session, m.Agent.ID, c.session, c.agent)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	for options, ok := range map[string]bool{
		``: true, `{}`: true, `{"session":"s"}`: true, `{"sesion":"s"}`: false, `{"session":1}`: false, `[]`: false,
	} {
		_, err := New().New(decoder.Stream{Options: []byte(options)})
		if (err == nil) != ok {
			t.Errorf("options %s: error %v, want ok %v", options, err, ok)
		}
	}
}

func TestSameMessage(t *testing.T) {
	const id = "message-0b1c2d3e-0000-4000-8000-0000000001f5"
	for otid, want := range map[string]bool{
		"0b1c2d3e-0000-4000-8000-0000000001f5":  true,
		"0b1c2d3e-0000-4000-8000-000000000180":  true,
		"0B1C2D3E-0000-4000-8000-0000000001FF":  true,
		"0b1c2d3e-0000-4000-8000-00000000017f":  false,
		"0b1c2d3e-0000-4000-8000-0000000002f5":  false,
		"0b1c2d3e-0000-4000-8000-0000000001zz":  false,
		"provider-assistant-1-aaa":              false,
		"":                                      false,
		"message-0b1c2d3e-0000-4000-8000-00000": false,
	} {
		if got := sameMessage(otid, id); got != want {
			t.Errorf("%s: %v, want %v", otid, got, want)
		}
	}
}
