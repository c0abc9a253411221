package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
)

// evil is text that an agent may write: mentions, links, formats, marks that reverse text.
const evil = "<!channel> <http://evil.example|click> *bold* & \u202egnp.exe\x00\n`code` _x_"

// receiver is a server that checks each request against the published schema of its kind.
type receiver struct {
	*httptest.Server
	t      *testing.T
	mu     sync.Mutex
	bodies []string
	status int // of the next answers; 0: that of the schema
}

func newReceiver(t *testing.T, path string, ok int, check func(t *testing.T, body []byte)) *receiver {
	r := &receiver{t: t}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		body, err := io.ReadAll(q.Body)
		if err != nil || q.Method != http.MethodPost || q.URL.Path != path || q.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s %s: %v", q.Method, q.URL, q.Header.Get("Content-Type"), err)
		}
		if r.status != 0 {
			w.WriteHeader(r.status)
			return
		}
		check(t, body)
		r.bodies = append(r.bodies, string(body))
		w.WriteHeader(ok)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.bodies
	r.bodies = nil
	return out
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// strict decodes a body that has no other fields than v.
func strict(t *testing.T, body []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Errorf("%v in %s", err, body)
	}
}

// checkSlack follows https://api.slack.com/reference/block-kit/blocks: at most 50 blocks, a
// section with a text of 3000 characters, a context of 10 elements.
func checkSlack(t *testing.T, body []byte) {
	type text struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Verbatim bool   `json:"verbatim"` // else Slack makes links of addresses
	}
	var m struct {
		Text   string `json:"text"`
		Blocks []struct {
			Type     string `json:"type"`
			Text     *text  `json:"text"`
			Elements []text `json:"elements"`
		} `json:"blocks"`
	}
	strict(t, body, &m)
	if m.Text == "" || len(m.Blocks) == 0 || len(m.Blocks) > 50 {
		t.Errorf("%d blocks, text %q", len(m.Blocks), m.Text)
	}
	all := m.Text
	for _, b := range m.Blocks {
		texts := b.Elements
		switch {
		case b.Type == "section" && b.Text != nil && len(b.Elements) == 0:
			texts = []text{*b.Text}
		case b.Type == "context" && b.Text == nil && 0 < len(b.Elements) && len(b.Elements) <= 10:
		default:
			t.Errorf("block %+v", b)
		}
		for _, x := range texts {
			if n := len([]rune(x.Text)); x.Type != "mrkdwn" || !x.Verbatim || n == 0 || n > 3000 {
				t.Errorf("text %q of %d", x.Type, n)
			}
			all += "\n" + x.Text
		}
	}
	if rest := regexp.MustCompile(`<http://page/[^|>]*\|Open the conversation>`).ReplaceAllString(all, ""); strings.ContainsAny(rest, "<>\x00\u202e") {
		t.Errorf("not escaped: %q", rest)
	}
	if regexp.MustCompile(`\pL＿\pL`).MatchString(all) {
		t.Errorf("a name is changed: %q", all)
	}
}

// checkAlertmanager follows postableAlerts of its openapi.yaml.
func checkAlertmanager(t *testing.T, body []byte) {
	var list []struct {
		StartsAt     time.Time         `json:"startsAt"`
		EndsAt       time.Time         `json:"endsAt"`
		Labels       map[string]string `json:"labels"`
		Annotations  map[string]string `json:"annotations"`
		GeneratorURL string            `json:"generatorURL"`
	}
	strict(t, body, &list)
	name := regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	for _, a := range list {
		if a.Labels["alertname"] == "" || a.StartsAt.IsZero() || !a.EndsAt.After(a.StartsAt) || a.Labels["session"] != "" && !strings.HasPrefix(a.GeneratorURL, "http://page/") {
			t.Errorf("%+v", a)
		}
		for k, v := range a.Labels {
			if !name.MatchString(k) || v == "" {
				t.Errorf("label %q=%q", k, v)
			}
		}
	}
	if len(list) == 0 {
		t.Error("no alerts")
	}
}

// checkPagerDuty follows the Events API v2: PD-CEF.
func checkPagerDuty(t *testing.T, body []byte) {
	var e struct {
		RoutingKey  string `json:"routing_key"`
		EventAction string `json:"event_action"`
		DedupKey    string `json:"dedup_key"`
		Client      string `json:"client"`
		Payload     *struct {
			Summary       string         `json:"summary"`
			Source        string         `json:"source"`
			Severity      string         `json:"severity"`
			Timestamp     time.Time      `json:"timestamp"`
			Component     string         `json:"component"`
			Group         string         `json:"group"`
			Class         string         `json:"class"`
			CustomDetails map[string]any `json:"custom_details"`
		} `json:"payload"`
		Links []struct{ Href, Text string } `json:"links"`
	}
	strict(t, body, &e)
	if len(e.RoutingKey) != 32 || e.DedupKey == "" || len(e.DedupKey) > 255 {
		t.Errorf("%s", body)
	}
	switch {
	case e.EventAction == "resolve" && e.Payload == nil:
	case e.EventAction == "trigger" && e.Payload != nil:
		p := e.Payload
		if p.Summary == "" || len([]rune(p.Summary)) > 1024 || p.Source == "" || !slices.Contains([]string{"critical", "error", "warning", "info"}, p.Severity) || p.Timestamp.IsZero() {
			t.Errorf("%+v", p)
		}
	default:
		t.Errorf("%s", body)
	}
}

func checkWebhook(t *testing.T, body []byte) {
	var n Notification
	strict(t, body, &n)
	if n.Version != 1 || n.Key == "" || len(n.Alerts) == 0 || n.Session != "" && n.Link != "http://page/session/s%2F1" {
		t.Errorf("%s", body)
	}
}

var base = time.Date(2026, 3, 4, 12, 0, 0, 0, time.Local)

func verdictOf(span byte, name string) msg.Verdict {
	return msg.Verdict{
		Tenant: "default", Source: "transcripts", Format: "claude-code", TraceID: msg.TraceID{1}, Span: msg.SpanID{span}, Kind: msg.SpanTool, Session: "s/1", Run: "r", Agent: "pilot", Tool: "Bash",
		Name: name, Since: base.Add(-13 * time.Minute).UnixNano(), At: base.UnixNano(), Evidence: "Bash `make test` has run 13 min; its longest of 42 runs took 2 min " + evil, Path: "pilot (14 min) › Bash `make test` (13 min)", Words: evil, Ver: 1,
	}
}

func resolved(v msg.Verdict) msg.Verdict {
	v.Resolved, v.Resolution, v.Ver = v.At+int64(time.Minute), "ended", 2
	return v
}

func env(dir string) export.Env {
	return export.Env{StateDir: dir, Logger: slog.New(slog.DiscardHandler)}
}

func rules() Rules {
	r := defaults()
	r.Link = "http://page/session/{session}"
	return r
}

func put(t *testing.T, x *Exporter, list ...msg.Verdict) error {
	t.Helper()
	return x.Export(t.Context(), x.Select(&export.Batch{ID: "b", Verdicts: list}))
}

func at(x export.Exporter, err error) func(t *testing.T, now time.Time) *Exporter {
	return func(t *testing.T, now time.Time) *Exporter {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		e := x.(*Exporter)
		e.now = func() time.Time { return now }
		return e
	}
}

// TestTargets sends a verdict and its end to each target, whose schema a real server checks.
func TestTargets(t *testing.T) {
	hook := newReceiver(t, "/h", 204, checkWebhook)
	chat := newReceiver(t, "/services/T/B/x", 200, checkSlack)
	manager := newReceiver(t, "/api/v2/alerts", 200, checkAlertmanager)
	pager := newReceiver(t, "/v2/enqueue", 202, checkPagerDuty)
	for name, c := range map[string]struct {
		to      *receiver
		config  export.Config
		fires   string
		resolve string
	}{
		"webhook":      {hook, &Webhook{URL: spec.NewSecret(hook.URL + "/h"), Rules: rules()}, `"status":"firing"`, `"status":"resolved"`},
		"slack":        {chat, &Slack{URL: spec.NewSecret(chat.URL + "/services/T/B/x"), Rules: rules()}, `*tool_running*`, `resolved (ended): *tool_running*`},
		"alertmanager": {manager, &Alertmanager{URL: manager.URL + "/", Rules: rules()}, `"verdict":"tool_running"`, `"endsAt":"2026-03-04T12:01:00`},
		"pagerduty":    {pager, &PagerDuty{RoutingKey: spec.NewSecret(strings.Repeat("0", 32)), URL: pager.URL + "/v2/enqueue", Rules: rules()}, `"trigger"`, `"resolve"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			start := func() *Exporter { return at(c.config.NewExporter(t.Context(), env(dir)))(t, base) }
			x, v := start(), verdictOf(1, "tool_running")
			c.to.answer(503)
			if err := put(t, x, v); err == nil || export.IsPermanent(err) || strings.Contains(err.Error(), c.to.URL) {
				t.Errorf("down: %v", err)
			}
			for status, permanent := range map[int]bool{400: true, 405: true, 410: true, 304: false, 401: false, 403: false, 404: false, 408: false, 425: false, 429: false, 500: false} {
				c.to.answer(status)
				if err := put(t, x, v); err == nil || export.IsPermanent(err) != permanent {
					t.Errorf("refused with %d: %v", status, err)
				}
			}
			c.to.answer(0)
			for range 2 { // it is reported again, and after a restart
				if err := put(t, x, v); err != nil {
					t.Fatal(err)
				}
				x = start()
			}
			if got := c.to.take(); len(got) != 1 || !strings.Contains(got[0], c.fires) {
				t.Errorf("firing: %d %s", len(got), got)
			}
			for range 2 {
				if err := put(t, x, resolved(v)); err != nil {
					t.Fatal(err)
				}
			}
			got := c.to.take()
			want := c.resolve
			if name == "alertmanager" {
				want = `"endsAt":"` + base.Add(time.Minute).UTC().Format("2006-01-02T15:04:05")
			}
			if len(got) != 1 || !strings.Contains(got[0], want) {
				t.Errorf("resolved: %d %s", len(got), got)
			}
		})
	}
}

// TestChangesAreSent: changes are sent to each target, those of one look together, once, and may be silenced.
func TestChangesAreSent(t *testing.T) {
	change := func(span byte, tool string) msg.Verdict {
		return msg.Verdict{
			Tenant: "default", Source: "changes", Span: msg.SpanID{span}, Name: msg.AlertOfChange, Agent: "pilot", Tool: tool, Since: base.Add(-time.Hour).UnixNano(), At: base.UnixNano(),
			Evidence: "pilot, tool " + tool + ": duration +20% since client 2.1.224 " + evil, Path: "since 2026-03-04", Ver: 1,
		}
	}
	hook := newReceiver(t, "/h", 204, checkWebhook)
	chat := newReceiver(t, "/services/T/B/x", 200, checkSlack)
	manager := newReceiver(t, "/api/v2/alerts", 200, checkAlertmanager)
	pager := newReceiver(t, "/v2/enqueue", 202, checkPagerDuty)
	silent := rules()
	silent.SilenceTools = []string{"Sleep"}
	for name, c := range map[string]struct {
		to     *receiver
		config export.Config
		posts  int
	}{
		"webhook":      {hook, &Webhook{URL: spec.NewSecret(hook.URL + "/h"), Rules: silent}, 1},
		"slack":        {chat, &Slack{URL: spec.NewSecret(chat.URL + "/services/T/B/x"), Rules: silent}, 1},
		"alertmanager": {manager, &Alertmanager{URL: manager.URL + "/", Rules: silent}, 1},
		"pagerduty":    {pager, &PagerDuty{RoutingKey: spec.NewSecret(strings.Repeat("0", 32)), URL: pager.URL + "/v2/enqueue", Rules: silent}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			list := []msg.Verdict{change(1, "Bash"), change(2, "Read"), change(3, "Sleep")}
			for _, over := range []bool{false, true} {
				for range 2 { // a restart reports them again
					x := at(c.config.NewExporter(t.Context(), env(dir)))(t, base)
					if err := put(t, x, list...); err != nil {
						t.Fatal(err)
					}
				}
				got := strings.Join(c.to.take(), "\n")
				if n := strings.Count(got, "\n") + 1; n != c.posts || !over && !strings.Contains(got, "tool Read") || strings.Contains(got, "Sleep") {
					t.Errorf("over %v: %d posts, want %d: %s", over, n, c.posts, got)
				}
				for i := range list {
					list[i] = resolved(list[i])
				}
			}
		})
	}
}

// TestCommand: a program without a shell gets the notification on its standard input, and
// nothing of the traffic in its arguments.
func TestCommand(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	program := filepath.Join(dir, "page me.sh")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ncat > \"$1\"\nprintf '%s' \"$2\" > \"$1.arg\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := &Command{Args: []string{program, out, "$(touch " + out + ".evil)"}, Rules: rules()}
	x := at(c.NewExporter(t.Context(), env(dir)))(t, base)
	if err := put(t, x, verdictOf(1, "zombie")); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	checkWebhook(t, body)
	if arg, _ := os.ReadFile(out + ".arg"); string(arg) != c.Args[2] {
		t.Errorf("argument %q", arg)
	}
	slow := filepath.Join(dir, "slow.sh")
	if err := os.WriteFile(slow, []byte("#!/bin/sh\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.Args, c.Rules.Timeout = []string{slow}, spec.Duration(100*time.Millisecond)
	x = at(c.NewExporter(t.Context(), env(dir)))(t, base)
	if err := put(t, x, verdictOf(2, "zombie")); err == nil || export.IsPermanent(err) {
		t.Errorf("a program that hangs: %v", err)
	}
}

// TestClip: no control character and no mark that reverses text is left, and every other character is.
func TestClip(t *testing.T) {
	for r, want := range map[rune]rune{
		0: ' ', 0x1f: ' ', ' ': ' ', '~': '~', 0x7f: ' ', 0x80: 0x80, 0x2029: 0x2029, 0x202a: ' ', 0x202e: ' ', 0x202f: 0x202f, 0x2065: 0x2065, 0x2066: ' ', 0x2069: ' ', 0x206a: 0x206a,
	} {
		if got := clip("a"+string(r)+"b", 3); got != "a"+string(want)+"b" {
			t.Errorf("%#x: %q", r, got)
		}
	}
	for text, want := range map[string]string{"éé": "éé", "ééé": "ééé", "éééé": "éé…"} {
		if got := clip(text, 3); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestQuietHours: the first minute is quiet and the last is not, over midnight too.
func TestQuietHours(t *testing.T) {
	for hours, times := range map[string]map[string]bool{
		"11:00-13:00":   {"10:59": false, "11:00": true, "12:59": true, "13:00": false, "00:00": false},
		"22:30 - 07:15": {"22:29": false, "22:30": true, "07:14": true, "07:15": false}, "12:00-12:00": {"11:59": false, "12:00": false, "12:01": false}, "": {"00:00": false, "12:00": false},
		"22:00-07:00": {"21:59": false, "22:00": true, "23:59": true, "00:00": true, "06:59": true, "07:00": false, "12:00": false},
	} {
		q, err := parseQuiet(hours)
		if err != nil {
			t.Fatal(err)
		}
		for text, want := range times {
			at, err := time.ParseInLocation("2006-01-02 15:04", "2026-03-04 "+text, time.Local)
			if err != nil {
				t.Fatal(err)
			}
			if q.at(at) != want || q.at(at.In(time.FixedZone("elsewhere", 5*60*60))) != want {
				t.Errorf("%s, quiet %s: %t", text, hours, !want)
			}
		}
	}
}

// TestRules: grouping, silences, quiet hours, the limit of an hour, and news that are old.
func TestRules(t *testing.T) {
	hook := newReceiver(t, "/h", 200, checkWebhook)
	open := func(t *testing.T, change func(*Rules)) (*Exporter, func(time.Duration)) {
		c := &Webhook{URL: spec.NewSecret(hook.URL + "/h"), Rules: rules()}
		change(&c.Rules)
		x := at(c.NewExporter(t.Context(), env(t.TempDir())))(t, base)
		return x, func(d time.Duration) { x.now = func() time.Time { return base.Add(d) } }
	}
	sent := func(t *testing.T, want ...string) {
		t.Helper()
		var got []string
		for _, b := range hook.take() {
			var n Notification
			strict(t, []byte(b), &n)
			got = append(got, fmt.Sprintf("%s %d withheld %d", n.Status, len(n.Alerts), n.Withheld))
		}
		if !slices.Equal(got, want) {
			t.Errorf("sent %q, want %q", got, want)
		}
	}
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Run("groups", func(t *testing.T) {
		x, _ := open(t, func(*Rules) {})
		other, above := verdictOf(3, "looping"), verdictOf(4, "tool_running")
		other.Session, above.Cause = "s/1", msg.SpanID{1} // the caller of it is not notified
		must(t, put(t, x, verdictOf(1, "tool_running"), verdictOf(2, "model_silent"), other, above, verdictOf(5, "waiting_person")))
		sent(t, "firing 3 withheld 0")
	})
	t.Run("silences", func(t *testing.T) {
		x, _ := open(t, func(r *Rules) { r.SilenceAgents, r.SilenceTools = []string{"pi*"}, []string{"Ba?h", "*-test"} })
		for who, silent := range map[[2]string]bool{
			{"pilot", "Bash"}: true, {"mate", "Bash"}: true, {"pilot", "Read"}: true, {"pilot", ""}: true, {"mate", "Read"}: false, {"", ""}: false,
			{"mate", "tide-test"}: true, {"mate", "Ba/h"}: false, {"co-pilot", ""}: false,
		} {
			v := verdictOf(1, "zombie")
			if v.Agent, v.Tool = who[0], who[1]; len(x.Select(&export.Batch{Verdicts: []msg.Verdict{v}}).Verdicts) == 0 != silent {
				t.Errorf("%q is silent: %t", who, !silent)
			}
		}
		x, _ = open(t, func(r *Rules) { r.SilenceTools = []string{"*"} })
		ofNone := verdictOf(1, "zombie")
		ofNone.Tool = ""
		must(t, put(t, x, ofNone, verdictOf(2, "zombie")))
		sent(t, "firing 1 withheld 0")
	})
	t.Run("over at once", func(t *testing.T) { // nobody is woken by what a batch has with its end
		x, _ := open(t, func(*Rules) {})
		v := verdictOf(1, "zombie")
		must(t, put(t, x, v, resolved(v), verdictOf(2, "zombie")))
		must(t, put(t, x, resolved(v)))
		sent(t, "firing 1 withheld 0")
		must(t, put(t, x, verdictOf(2, "zombie"), resolved(verdictOf(2, "zombie")), resolved(verdictOf(3, "zombie")), verdictOf(3, "zombie")))
		sent(t, "resolved 1 withheld 0", "firing 1 withheld 0")
	})
	t.Run("over while it is held", func(t *testing.T) { // with the last batch of the quiet hours, with the first after them, and after a restart
		v, other, last := verdictOf(1, "zombie"), verdictOf(2, "zombie"), verdictOf(3, "zombie")
		for _, again := range []bool{false, true} {
			c := &Webhook{URL: spec.NewSecret(hook.URL + "/h"), Rules: rules()}
			c.Rules.QuietHours = "11:00-12:01"
			dir := t.TempDir()
			x := at(c.NewExporter(t.Context(), env(dir)))(t, base)
			must(t, put(t, x, v, other, last))
			must(t, put(t, x, resolved(v)))
			must(t, put(t, x, v, resolved(v)))
			if again {
				x = at(c.NewExporter(t.Context(), env(dir)))(t, base)
			}
			x.now = func() time.Time { return base.Add(time.Minute) }
			must(t, put(t, x, resolved(other)))
			sent(t, "firing 1 withheld 0")
			must(t, put(t, x, resolved(v), resolved(other), resolved(last)))
			sent(t, "resolved 1 withheld 0")
		}
	})
	t.Run("withheld after the quiet hours", func(t *testing.T) {
		x, clock := open(t, func(r *Rules) { r.QuietHours, r.MaxPerHour = "11:00-13:00", 1 })
		other := verdictOf(2, "zombie")
		other.Session = "s/1"
		other.Tenant = "other"
		must(t, put(t, x, verdictOf(1, "zombie"), other))
		clock(2 * time.Hour)
		must(t, put(t, x))
		clock(4 * time.Hour)
		must(t, put(t, x))
		sent(t, "firing 1 withheld 0")
		must(t, put(t, x, resolved(verdictOf(1, "zombie")), resolved(other)))
		sent(t, "resolved 1 withheld 1")
	})
	t.Run("many are held", func(t *testing.T) {
		x, clock := open(t, func(r *Rules) { r.QuietHours = "11:00-13:00" })
		var list []msg.Verdict
		for i := range maxHeld + 5 {
			v := verdictOf(1, "zombie")
			v.Since += int64(time.Duration(i) * time.Millisecond)
			list = append(list, v)
		}
		must(t, put(t, x, list...))
		must(t, put(t, x, list[0], list[maxHeld]))
		clock(2 * time.Hour)
		must(t, put(t, x))
		sent(t, fmt.Sprintf("firing %d withheld 0", maxHeld))
	})
	t.Run("remembered for a week", func(t *testing.T) {
		for days, want := range map[int][]string{6: {"resolved 1 withheld 0"}, 8: nil} {
			x, clock := open(t, func(*Rules) {})
			must(t, put(t, x, verdictOf(1, "zombie")))
			clock(time.Duration(days) * 24 * time.Hour)
			late := verdictOf(2, "zombie")
			late.At = x.now().UnixNano()
			must(t, put(t, x, late))
			sent(t, "firing 1 withheld 0", "firing 1 withheld 0")
			must(t, put(t, x, resolved(verdictOf(1, "zombie"))))
			sent(t, want...)
		}
	})
	t.Run("its file", func(t *testing.T) { // one that cannot be read or written is an error, and there need be none
		dir := t.TempDir()
		t.Chdir(t.TempDir())
		c := &Webhook{URL: spec.NewSecret(hook.URL + "/h"), Rules: rules()}
		x := at(c.NewExporter(t.Context(), export.Env{Logger: env("").Logger}))(t, base)
		must(t, put(t, x, verdictOf(1, "zombie")))
		must(t, put(t, x, verdictOf(1, "zombie")))
		sent(t, "firing 1 withheld 0")
		if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
			t.Errorf("%v, %v", files, err)
		}
		x = at(c.NewExporter(t.Context(), env(dir)))(t, base)
		must(t, os.WriteFile(filepath.Join(dir, "notify"), nil, 0o600))
		if put(t, x, verdictOf(1, "zombie")) == nil {
			t.Error("a directory that is a file is no error")
		}
		hook.take()
		must(t, os.Remove(filepath.Join(dir, "notify")))
		must(t, put(t, x, verdictOf(2, "zombie")))
		must(t, os.WriteFile(x.file, []byte("{"), 0o600))
		if _, err := c.NewExporter(t.Context(), env(dir)); err == nil {
			t.Error("a broken file is no error")
		}
		c.Rules.QuietHours = "late"
		if _, err := c.NewExporter(t.Context(), env(t.TempDir())); err == nil {
			t.Error("quiet hours that are none are no error")
		}
		hook.take()
	})
	t.Run("quiet hours", func(t *testing.T) {
		x, clock := open(t, func(r *Rules) { r.QuietHours = "11:00-13:00" })
		must(t, put(t, x, verdictOf(1, "zombie"), verdictOf(2, "zombie")))
		must(t, put(t, x, resolved(verdictOf(2, "zombie"))))
		sent(t)
		clock(2 * time.Hour)
		must(t, put(t, x)) // any batch follows
		sent(t, "firing 1 withheld 0")
		must(t, put(t, x))
		must(t, put(t, x, resolved(verdictOf(1, "zombie"))))
		sent(t, "resolved 1 withheld 0")
	})
	t.Run("erased while it is held", func(t *testing.T) {
		dir := t.TempDir()
		c := &Webhook{URL: spec.NewSecret(hook.URL + "/h"), Rules: rules()}
		c.Rules.QuietHours = "11:00-13:00"
		x := at(c.NewExporter(t.Context(), env(dir)))(t, base)
		gone, stays := verdictOf(1, "zombie"), verdictOf(2, "zombie")
		gone.Session, gone.Words = "gone", "the passphrase of the keeper"
		must(t, put(t, x, gone, stays))
		must(t, x.Rewrite(func(b *export.Batch) bool {
			n := len(b.Verdicts)
			b.Verdicts = slices.DeleteFunc(b.Verdicts, func(v msg.Verdict) bool { return v.Session == "gone" })
			return len(b.Verdicts) != n
		}))
		state, err := os.ReadFile(x.file)
		if err != nil || bytes.Contains(state, []byte("keeper")) || bytes.Contains(state, []byte("gone")) {
			t.Errorf("%s, %v", state, err)
		}
		x.now = func() time.Time { return base.Add(2 * time.Hour) }
		must(t, put(t, x))
		sent(t, "firing 1 withheld 0")
	})
	t.Run("limit", func(t *testing.T) {
		x, clock := open(t, func(r *Rules) { r.MaxPerHour = 2 })
		for n := range byte(5) {
			must(t, put(t, x, verdictOf(n, "zombie")))
		}
		sent(t, "firing 1 withheld 0", "firing 1 withheld 0")
		must(t, put(t, x, resolved(verdictOf(0, "zombie")), resolved(verdictOf(4, "zombie"))))
		sent(t, "resolved 1 withheld 3")
		clock(61 * time.Minute)
		late := verdictOf(9, "zombie")
		late.At = base.Add(time.Hour).UnixNano()
		must(t, put(t, x, late))
		sent(t, "firing 1 withheld 0")
	})
	t.Run("old news", func(t *testing.T) {
		x, clock := open(t, func(*Rules) {})
		clock(2 * time.Hour)
		must(t, put(t, x, verdictOf(1, "zombie")))
		must(t, put(t, x, resolved(verdictOf(1, "zombie"))))
		sent(t)
	})
}
