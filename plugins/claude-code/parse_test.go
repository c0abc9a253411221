package claudecode

import (
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/sdk/claude"
)

func TestParseOrigin(t *testing.T) {
	for path, want := range map[string]origin{
		"":                              {},
		"/p/-srv/0af1.jsonl":            {session: "0af1"},
		`C:\p\-srv\0af1.jsonl`:          {session: "0af1"},
		"/p/-srv/0af1.jsonl.1.gz":       {session: "0af1"},
		"/p/-srv/agent-12ab34cd.jsonl":  {agent: "12ab34cd"},
		"/p/s1/subagents/agent-a.jsonl": {session: "s1", agent: "a"},
		"/p/s1/subagents/agent-acompact-0b.meta.json":  {session: "s1", agent: "acompact-0b"},
		"/p/s1/subagents/workflows/wf_1/agent-a.jsonl": {session: "s1", agent: "a", workflow: "wf_1"},
		"/p/s1/subagents/workflows/wf_1/journal.jsonl": {session: "s1", workflow: "wf_1"},
		"/workflows/x/s1.jsonl":                        {session: "s1"},
		"/p/agent-\xff.jsonl":                          {agent: "\uFFFD"},
		"subagents/agent-a.jsonl":                      {agent: "a"},
	} {
		if got := parseOrigin(path); got != want {
			t.Errorf("%s: got %+v, want %+v", path, got, want)
		}
	}
}

func TestCutNotice(t *testing.T) {
	const end = "</task-notification>"
	for _, c := range []struct {
		name, in, body, rest string
		more                 bool
	}{
		{"one", "\na\n" + end, "\na\n", "", false},
		{"cut off", "\na", "\na", "", false},
		{"two", "1" + end + "\n" + claude.NoticeTag + "2" + end, "1", "2" + end, true},
		{"quoted", "<result>x\n" + claude.NoticeTag + "y" + end + "</result>" + end, "<result>x\n" + claude.NoticeTag + "y" + end + "</result>", "", false},
	} {
		body, rest, more := cutNotice(c.in)
		if body != c.body || rest != c.rest || more != c.more {
			t.Errorf("%s: got %q, %q, %t", c.name, body, rest, more)
		}
	}
}

func TestNames(t *testing.T) {
	for agent, want := range map[string]string{"acompact-946d2b": "compact", "aprompt_suggestion-1": "prompt_suggestion", "a1b2c3": "", "-": "", "": "", "x-1": ""} {
		if got := helper(agent); got != want {
			t.Errorf("helper(%q) = %q, want %q", agent, got, want)
		}
	}
}

func TestOptionsAreRefused(t *testing.T) {
	for _, options := range []string{`{"depth":1}`, `[]`, `{`} {
		if _, err := New().New(decoder.Stream{Options: []byte(options)}); err == nil {
			t.Errorf("options %s: no error", options)
		}
	}
	if _, err := New().New(decoder.Stream{Options: []byte(`{}`)}); err != nil {
		t.Error(err)
	}
}

func TestRestoreRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, snapshot := range []string{"", "{", `{"Version":99}`, `{}`} {
		if err := open(t, "s.jsonl").Restore([]byte(snapshot)); err == nil {
			t.Errorf("snapshot %q: no error", snapshot)
		}
	}
}
