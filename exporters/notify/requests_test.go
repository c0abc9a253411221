package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
)

var update = flag.Bool("update", false, "rewrite the golden files, and fail")

// transcript is a server that keeps each request as a reader would write it.
type transcript struct {
	*httptest.Server
	text bytes.Buffer
}

func newTranscript(t *testing.T) *transcript {
	r := &transcript{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		fmt.Fprintf(&r.text, "%s %s\n", q.Method, q.URL.Path)
		for _, name := range []string{"Content-Type", "User-Agent", "Idempotency-Key", "X-Scope"} {
			fmt.Fprintf(&r.text, "%s: %s\n", name, q.Header.Get(name))
		}
		body, err := io.ReadAll(q.Body)
		if err == nil {
			err = json.Indent(&r.text, body, "", " ")
		}
		if err != nil {
			t.Error(err)
		}
		r.text.WriteByte('\n')
	}))
	t.Cleanup(r.Close)
	return r
}

// TestRequests has the whole requests to each target: of three verdicts of a session, a change, a notification after one that was
// withheld, and ends with and without a reason.
func TestRequests(t *testing.T) {
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	of := func(session string, span byte, name string) msg.Verdict {
		return msg.Verdict{
			Tenant: "default", Source: "transcripts", Format: "claude-code", TraceID: msg.TraceID{1}, Span: msg.SpanID{span}, Session: session, Agent: "pilot", Tool: "Ba\nsh", Name: name,
			Since: noon.Add(-13 * time.Minute).UnixNano(), At: noon.UnixNano(), Evidence: "Bash has run 13 min & more", Path: "pilot (14 min) › Bash (13 min)", Words: "<b>sounding</b>\n" + strings.Repeat("on ", 99),
		}
	}
	first := []msg.Verdict{of("s/1", 1, "tool_running"), of("s/1", 2, "zombie"), of("s/1", 3, "waiting_permission")}
	first[2].Words, first[2].Agent = "", ""
	change := msg.Verdict{
		Tenant: "default", Source: "changes", Span: msg.SpanID{13}, Name: msg.AlertOfChange, Agent: "pilot", Since: noon.Add(-time.Hour).UnixNano(), At: noon.UnixNano(),
		Evidence: "pilot: duration +20%", Path: "since 2026-03-04",
	}
	later := of("s2", 15, "child_dead")
	later.At = noon.Add(2 * time.Hour).UnixNano()
	ended, over := resolved(first[0]), resolved(first[1])
	over.Resolution = ""

	rules := defaults()
	rules.Verdicts, rules.Link, rules.MaxPerHour = names(), "https://page/{session}?a=1&trace={trace}", 2
	for name, config := range map[string]func(url string) export.Config{
		"webhook": func(url string) export.Config {
			return &Webhook{URL: spec.NewSecret(url + "/h"), Headers: spec.Headers{"X-Scope": spec.NewSecret("harbour")}, Rules: rules}
		},
		"slack":        func(url string) export.Config { return &Slack{URL: spec.NewSecret(url + "/h"), Rules: rules} },
		"alertmanager": func(url string) export.Config { return &Alertmanager{URL: url + "/", Rules: rules} },
		"pagerduty": func(url string) export.Config {
			return &PagerDuty{URL: url + "/h", RoutingKey: spec.NewSecret("key"), Rules: rules}
		},
	} {
		to := newTranscript(t)
		x, err := config(to.URL).NewExporter(t.Context(), env(t.TempDir()))
		start := at(x, err)
		for _, step := range []struct {
			after time.Duration
			list  []msg.Verdict
		}{
			{0, append([]msg.Verdict{first[0]}, first...)}, {0, []msg.Verdict{change}}, {0, []msg.Verdict{of("s2", 14, "orphan")}},
			{2 * time.Hour, []msg.Verdict{later}}, {2 * time.Hour, []msg.Verdict{ended, over}},
		} {
			if err := put(t, start(t, noon.Add(step.after)), step.list...); err != nil {
				t.Fatal(name, err)
			}
		}
		got, file := to.text.String(), filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			t.Error("rewritten: read the difference")
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestSlackHasTheFirstTen: a message has room for so many verdicts, and for the number of the others.
func TestSlackHasTheFirstTen(t *testing.T) {
	for n, more := range map[int]int{10: 0, 11: 1, 13: 3} {
		to := newTranscript(t)
		x := at((&Slack{URL: spec.NewSecret(to.URL + "/h"), Rules: rules()}).NewExporter(t.Context(), env(t.TempDir())))(t, base)
		var list []msg.Verdict
		for i := range n {
			list = append(list, verdictOf(byte(i), "zombie"))
		}
		if err := put(t, x, list...); err != nil {
			t.Fatal(err)
		}
		text := to.text.String()
		if shown := strings.Count(text, "*zombie*"); shown != 10 || strings.Contains(text, fmt.Sprintf(`"and %d more"`, more)) != (more > 0) || strings.Count(text, `"context"`) != min(n, 11) {
			t.Errorf("of %d verdicts %d are shown: %s", n, shown, text)
		}
	}
}

// TestAnswers: a target may ask for a pause, a redirection is not followed, and no error has the address of a webhook, which is a secret.
func TestAnswers(t *testing.T) {
	asked := map[string]time.Duration{"429 7": 7 * time.Second, "429 ": 0, "503 soon": 0, "503 2": 2 * time.Second, "302 ": 0}
	posts := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		posts++
		var status int
		var after string
		_, _ = fmt.Sscan(q.URL.Query().Get("answer"), &status, &after)
		w.Header().Set("Retry-After", after)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "not\nnow")
	}))
	defer s.Close()
	send := func(url string) error {
		x := at((&Webhook{URL: spec.NewSecret(url), Rules: rules()}).NewExporter(t.Context(), env(t.TempDir())))(t, base)
		return put(t, x, verdictOf(1, "zombie"))
	}
	for answer, wait := range asked {
		err := send(s.URL + "/h?answer=" + strings.ReplaceAll(answer, " ", "+"))
		var after *export.RetryAfter
		if got := errors.As(err, &after); got != (wait > 0) || got && after.Wait != wait || export.IsPermanent(err) || !strings.HasPrefix(fmt.Sprint(err), "notify: webhook: HTTP "+answer[:3]) || !strings.HasSuffix(err.Error(), ": not now") {
			t.Errorf("%s: %v, wants a pause of %v", answer, err, wait)
		}
	}
	if posts != len(asked) {
		t.Errorf("%d requests for %d notifications", posts, len(asked))
	}
	s.Close()
	for url, permanent := range map[string]bool{s.URL + "/passphrase": false, "http://127.0.0.1:port/passphrase": true} {
		if err := send(url); err == nil || export.IsPermanent(err) != permanent || strings.Contains(err.Error(), "passphrase") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestOutputOfACommand: the error of a program has the beginning of what it printed, and one that leaves another program behind is not waited for.
func TestOutputOfACommand(t *testing.T) {
	c := &Command{Args: []string{"/bin/sh", "-c", "sleep 5 & echo no pager >&2; exit 3"}, Rules: rules()}
	x := at(c.NewExporter(t.Context(), env(t.TempDir())))(t, base)
	began := time.Now()
	err := put(t, x, verdictOf(1, "zombie"))
	if err == nil || export.IsPermanent(err) || !strings.HasSuffix(err.Error(), "exit status 3: no pager ") {
		t.Error(err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("it took %v", took)
	}
	var out bytes.Buffer
	for l, part := 0, (&limited{to: &out, left: 5}); l < 3; l++ {
		if n, err := part.Write([]byte("abc")); n != 3 || err != nil {
			t.Error(n, err)
		}
	}
	if out.String() != "abcab" {
		t.Errorf("it kept %q", out.String())
	}
}
