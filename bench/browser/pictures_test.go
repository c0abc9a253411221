package browser

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestPictures makes the pictures of docs/: the page Changes of three weeks in which a tool became slower with a new client, and
// what Slack is sent of a call that hangs and then ends. `make browser SHOTS=DIR` leaves them in DIR.
func TestPictures(t *testing.T) {
	dir := t.TempDir()
	sent := make(chan slackMessage, 16)
	slack := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m slackMessage
		if body, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(body, &m) != nil {
			t.Errorf("Slack was sent %q, %v", body, err)
		}
		sent <- m
	}))
	t.Cleanup(slack.Close)
	w := &world{config: filepath.Join(dir, "earshot.yaml"), traffic: dir}
	if err := os.Mkdir(filepath.Join(dir, "claude-code"), 0o700); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`data_dir: %[1]s/data
telemetry: {listen: ""}
log: {level: warn}
sources:
  - {name: claude, type: file, format: claude-code, paths: ["%[1]s/claude-code/*.jsonl"]}
exporters:
  slack: {url: %[2]s, rules: {verdicts: [tool_running], link: "https://earshot.example/session/{session}"}}
`, dir, slack.URL)
	if err := os.WriteFile(w.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	turns(t, w)
	earshot(t, "run", "-c", w.config, "--until-idle", "3s")
	w.url = serve(t, w)
	b := newTab(t)
	b.setAppearance(t, "light", 1180, 520)
	b.open(t, w.url+"/changes?from=now-14d&to=now")
	b.until(t, `document.body.innerText.includes("since client 2.1.224")`)
	b.shot(t, "changes")

	start(t, "run", "-c", w.config)
	at := time.Now().Add(-70 * time.Second)
	c := &transcript{session: stuckSession, at: at}
	c.user(0, "Ask the crane whether it is free.")
	c.assistant(2*time.Second, "msg_crane", "", map[string]any{"type": "text", "text": "I ask the crane before I move a crate."})
	c.assistant(time.Second, "msg_crane", "tool_use", map[string]any{"type": "tool_use", "id": "toolu_crane", "name": "Bash",
		"input": map[string]any{"command": "curl http://crane.quay.example/state", "timeout": 60000}})
	w.write(t, stuckSession, c.lines)
	fired := receive(t, sent)
	said := len(c.lines)
	c.at = time.Now()
	c.user(0, []any{map[string]any{"type": "tool_result", "tool_use_id": "toolu_crane", "content": "free"}})
	c.assistant(0, "msg_free", "end_turn", map[string]any{"type": "text", "text": "The crane is free."})
	w.write(t, stuckSession, c.lines[said:])
	resolved := receive(t, sent)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, slackPage+fired.html()+resolved.html())
	}))
	t.Cleanup(page.Close)
	b.setAppearance(t, "light", 780, 260)
	b.open(t, page.URL)
	for _, want := range []string{"tool_running", "its own timeout is 60 s", "last words: I ask the crane before I move a crate.", "Open the conversation", "resolved (ended)"} {
		b.until(t, fmt.Sprintf(`document.body.innerText.includes(%q)`, want))
	}
	b.shot(t, "notification")
}

// turns are those of three weeks; since version 2.1.224 the command takes a third longer.
func turns(t *testing.T, w *world) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 7))
	begin := time.Now().UTC().Truncate(24 * time.Hour).Add(-20 * 24 * time.Hour)
	for i := range 160 {
		version, median := "2.1.223", 200.0
		if i >= 100 {
			version, median = "2.1.224", 265
		}
		session := fmt.Sprintf("7u2700%02x-0000-4000-8000-%012d", i, i)
		c := &transcript{session: session, at: begin.Add(time.Duration(i) * 3 * time.Hour)}
		call := func(n int, name, command string, took float64) {
			id := fmt.Sprintf("toolu_%d_%d", i, n)
			c.assistant(time.Second, fmt.Sprintf("msg_%d_%d", i, n), "tool_use", map[string]any{"type": "tool_use", "id": id, "name": name, "input": map[string]string{"command": command}})
			c.user(time.Duration(took*math.Exp(0.15*r.NormFloat64())*float64(time.Second)), []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": "done"}})
		}
		c.user(0, "Is the ferry late?")
		call(0, "Read", "timetable", 30)
		call(1, "Bash", "make tide", median)
		c.assistant(time.Second, fmt.Sprintf("msg_%d_end", i), "end_turn", map[string]any{"type": "text", "text": "It is."})
		for n := range c.lines {
			c.lines[n] = strings.ReplaceAll(c.lines[n], `"version":"2.1.229"`, fmt.Sprintf(`"version":%q`, version))
		}
		w.write(t, session, c.lines)
	}
}

// slackMessage is a message of blocks.
type slackMessage struct {
	Blocks []struct {
		Type     string
		Text     slackText
		Elements []slackText
	}
}

type slackText struct{ Text string }

func receive(t *testing.T, sent chan slackMessage) slackMessage {
	t.Helper()
	select {
	case m := <-sent:
		return m
	case <-time.After(2 * time.Minute):
		t.Fatal("Slack was sent nothing")
		return slackMessage{}
	}
}

const slackPage = `<!doctype html><title>A notification</title><style>
body { font: 15px/1.45 sans-serif; color: #1d1c1d; background: #fff; margin: 16px 20px }
article { margin-bottom: 16px } h1 { font-size: 15px; margin: 0 } small { color: #616061; font-size: 13px; display: block } a { color: #1264a3 }
i { display: inline-block; width: .8em; height: .8em; border-radius: 50%; background: #e8912d } i.red { background: #e01e5a } i.ok { background: #2eb67d }
</style>`

var (
	slackBold = regexp.MustCompile(`\*([^*]+)\*`)
	slackLink = regexp.MustCompile(`<([^|>]+)\|([^>]+)>`)
	slackIcon = strings.NewReplacer(":large_orange_circle:", "<i></i>", ":red_circle:", "<i class=red></i>", ":white_check_mark:", "<i class=ok></i>")
)

// html shows a message as Slack does: bold text, links and icons. What Earshot escaped stays so.
func (m *slackMessage) html() string {
	show := func(s string) string {
		s = slackLink.ReplaceAllStringFunc(s, func(l string) string {
			part := slackLink.FindStringSubmatch(l)
			if u, err := url.Parse(part[1]); err != nil || u.Scheme != "https" {
				return html.EscapeString(l)
			}
			return fmt.Sprintf("<a href=%q>%s</a>", part[1], part[2])
		})
		return slackIcon.Replace(slackBold.ReplaceAllString(s, "<b>$1</b>"))
	}
	var out strings.Builder
	out.WriteString("<article><h1>Earshot</h1>")
	for _, b := range m.Blocks {
		if b.Type == "section" {
			fmt.Fprintf(&out, "<div>%s</div>", show(b.Text.Text))
		}
		for _, e := range b.Elements {
			fmt.Fprintf(&out, "<small>%s</small>", show(e.Text))
		}
	}
	return out.String() + "</article>"
}
