package grace

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

func exists(c, file string) bool {
	_, err := os.Stat(filepath.Join("testdata", c, file))
	return err == nil
}

func TestSessionOfOrigin(t *testing.T) {
	for origin, want := range map[string]string{
		"":                                    "",
		"logs/harbour.jsonl":                  "harbour",
		`C:\logs\harbour.1.gz`:                "harbour",
		"http://127.0.0.1:7801/api/agent/run": "",
		"http://h/api/message/list?conversation_id=c0ffee&page=1": "c0ffee",
	} {
		if got := sessionOfOrigin(origin); got != want {
			t.Errorf("%q: got %q, want %q", origin, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	for options, want := range map[string]string{`{"mode":"chat"}`: `option "mode"`, `[]`: "options"} {
		_, err := New().New(decoder.Stream{Options: json.RawMessage(options)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", options, err, want)
		}
	}
	if _, err := New().New(decoder.Stream{Options: json.RawMessage(`{}`)}); err != nil {
		t.Error(err)
	}
}

func TestRestoreRefusesOtherVersions(t *testing.T) {
	for _, s := range []string{`{"Version":0}`, `{`, `{"Version":99}`} {
		if err := newStream(t, "").Restore([]byte(s)); err == nil {
			t.Errorf("%s is taken", s)
		}
	}
}

// TestSessionSources: the request, a row, the URL, GRACE's
// first message, and else the turn.
func TestSessionSources(t *testing.T) {
	progress := strings.Replace(sent(t, "progress", "running", "", "c0ffee", "on it"), `"role"`, `"x":0,"role"`, 1)
	reply := sent(t, "auto_reply", "success", "", "", "Hello.")
	for name, c := range map[string]struct {
		origin string
		frames []frame.Frame
		want   string
	}{
		"request":  {"http://h/api/agent/run", append([]frame.Frame{{Kind: frame.Request, Name: "POST /api/agent/run", Data: []byte(`{"question":"x","conversation_id":"c0ffee"}`)}}, lines(reply)...), "c0ffee"},
		"URL":      {"http://h/x?conversation_id=c0ffee", lines(reply), "c0ffee"},
		"progress": {"http://h/api/agent/run", lines(progress, reply), "c0ffee"},
		"file":     {"c0ffee.jsonl", lines(reply), "c0ffee"},
		"nothing":  {"", lines(reply), "turn-1772445600013"},
	} {
		d := newStream(t, c.origin)
		var out decoder.Output
		for i := range c.frames {
			if err := d.Decode(&c.frames[i], &out); err != nil {
				t.Fatal(err)
			}
		}
		if got := out.Messages[len(out.Messages)-1].Session; got != c.want {
			t.Errorf("%s: session %q, want %q", name, got, c.want)
		}
	}
}

// TestUnansweredQuestionIsShown: rows that end with a question emit it as open, and the same
// rows with an answer complete the emitted question.
func TestUnansweredQuestionIsShown(t *testing.T) {
	question := load(t, "unanswered", "in.json")[0].Data
	d := newStream(t, "http://h/api/message/list")
	var out, early decoder.Output
	if err := d.Decode(&frame.Frame{Kind: frame.Body, Data: question}, &out); err != nil {
		t.Fatal(err)
	}
	if err := d.Flush(&early); err != nil {
		t.Fatal(err)
	}
	if len(early.Messages) != 1 || early.Messages[0].Complete != msg.Partial {
		t.Fatalf("shown: %s", rowsOf(t, early.Messages))
	}
	answered := strings.Replace(string(question), "}]", `},{"id":301,"conversation_id":"09e00000-0000-4000-8000-000000000012","role":"assistant","status":"success","uuid":"","content":"Aye.","timestamp":1772452900000,"meta":"{\"action_type\":\"auto_reply\"}"}]`, 1)
	if err := d.Decode(&frame.Frame{Kind: frame.Body, Data: []byte(answered)}, &out); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, m := range out.Messages {
		found = found || m.Key == early.Messages[0].Key && m.Complete == msg.Complete
	}
	if !found {
		t.Errorf("%s stays open:\n%s", early.Messages[0].Key, rowsOf(t, out.Messages))
	}
}
