package verdicts

import (
	"cmp"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/plugins"
)

// session is the id of an incident's session.
func session(name string) string {
	h := fnv.New64a()
	h.Write([]byte(name))
	s := fmt.Sprintf("%016x", h.Sum64())
	return s[:8] + "-" + s[8:12] + "-4000-8000-" + s[4:16]
}

func writerOf(format, name string) writer {
	switch format {
	case "claude-code":
		return newClaudeCode(session(name))
	case "opencode":
		return newOpenCode(session(name))
	case "codex":
		return newCodex(session(name))
	case "agno":
		return newAgno(session(name))
	case "letta":
		return newLetta(session(name))
	case "langgraph":
		return newLangGraph(session(name))
	case "openai-chat":
		return newOpenAIChat(session(name))
	case "gemini-cli":
		return newGeminiCLI(session(name))
	case "otel-genai":
		return newOTelGenAI(session(name))
	case "mcp":
		return newMCP(session(name))
	case "pi", "openclaw":
		return newPi(session(name))
	case "vercel-ui":
		return newVercelUI(session(name))
	case "copilot":
		return newCopilot(session(name))
	case "claude-stream":
		return newClaudeStream(session(name))
	case "acp":
		return newACP(session(name))
	case "anthropic-sse":
		return newAnthropic(session(name))
	case "openai-responses":
		return newOpenAIResponses(session(name))
	case "ag-ui":
		return newAGUI(session(name))
	}
	return nil
}

// made is a verdict that was made, on work that is itself the reason.
type made struct {
	Verdict, Subject, Evidence string
	At                         time.Duration
}

// play returns the verdicts of an incident in one format.
func play(t *testing.T, c *incident, format string) (out []made) {
	var heard []app.Heard
	streams := 0
	add := func(w writer) {
		most := 0
		for _, h := range w.heard() {
			most = max(most, h.Stream+1)
			h.Stream += streams
			heard = append(heard, h)
		}
		streams += most
	}
	at := began.Add(-240 * time.Hour)
	for i, p := range c.History {
		for n := range p.N {
			w := writerOf(format, fmt.Sprint(c.Name, "history", i, n))
			took := p.From + (p.To-p.From)*time.Duration(n)/time.Duration(max(p.N-1, 1))
			steps := []step{{What: "user", Text: "Go on."}, {At: time.Second, What: "call", ID: "h", Name: p.Tool, Text: p.Arguments},
				{At: time.Second + took, What: "result", ID: "h", Text: fmt.Sprint("done ", n)}, {At: took + 3*time.Second, What: "final", Text: "Done."}}
			for _, s := range steps {
				if !w.write(s, at.Add(s.At)) {
					t.Fatalf("%s: %s has no %s", c.Name, format, s.What)
				}
			}
			at = at.Add(took + 10*time.Second)
			add(w)
		}
	}
	w := writerOf(format, c.Name)
	if w == nil {
		t.Fatalf("%s: no format %s", c.Name, format)
	}
	for _, s := range c.Steps {
		now := began.Add(s.At)
		if s.Backlog {
			now = began.Add(s.At - 40*time.Minute)
		}
		n := len(w.heard())
		if !w.write(s, now.Add(c.skew(s.At))) {
			t.Fatalf("%s: %s cannot show %s", c.Name, format, s.What)
		}
		for i := range w.heard()[n:] {
			w.heard()[n+i].At = w.heard()[n+i].At.Add(-c.skew(s.At))
		}
	}
	for _, h := range w.heard() {
		if h.At.Before(began) && !h.Live {
			h.Backlog, h.Written, h.At, h.Live = true, h.At, began, false
		}
		h.Stream += streams
		heard = append(heard, h)
	}
	type key struct {
		span  msg.SpanID
		name  string
		since int64
	}
	seen := map[key]bool{} // one that holds is reported again when its session is read again
	err := app.Rehearse(plugins.Bundled()[format](), heard, began.Add(c.Until), app.Rehearsed{Asleep: [2]time.Time{began.Add(c.Asleep[0]), began.Add(c.Asleep[1])}, Verdict: func(now time.Time, v msg.Verdict) {
		if k := (key{v.Span, v.Name, v.Since}); seen[k] {
			return
		} else if v.Resolved == 0 {
			seen[k] = true
		}
		if v.Resolved != 0 || v.Cause != (msg.SpanID{}) || now.Before(began) {
			return
		}
		out = append(out, made{Verdict: v.Name, Subject: cmp.Or(v.Tool, "run"), Evidence: v.Evidence, At: now.Sub(began)})
	}})
	if err != nil {
		t.Fatalf("%s in %s: %v", c.Name, format, err)
	}
	return out
}

// subject maps the names of tools that a format has for the same.
func subject(format, s string) string {
	if s == "delegation" {
		switch format {
		case "claude-code", "claude-stream", "anthropic-sse":
			return "Agent"
		case "opencode", "copilot":
			return "task"
		case "agno":
			return "delegate_task_to_member"
		}
	}
	return s
}

var only = flag.String("only", "*/*", "the incidents to re-enact: PART/NAME, a pattern")

var update = flag.Bool("update", false, "write the table of docs/verdicts.md")

const within = 30 * time.Second

// score is a count of verdicts.
type score struct{ right, missed, wrong, cases, quiet int }

func (s score) String() string {
	share := func(n, of int) string { return fmt.Sprintf("%.3f", float64(n)/float64(max(of, 1))) }
	return fmt.Sprintf("%d cases (%d of them healthy): precision %s (%d of %d verdicts), recall %s (%d of %d)", s.cases, s.quiet,
		share(s.right, s.right+s.wrong), s.right, s.right+s.wrong, share(s.right, s.right+s.missed), s.right, s.right+s.missed)
}

func (s *score) add(o score) {
	s.right, s.missed, s.wrong, s.cases, s.quiet = s.right+o.right, s.missed+o.missed, s.wrong+o.wrong, s.cases+o.cases, s.quiet+o.quiet
}

// TestIncidents re-enacts the corpus and holds the goals: precision 0.98 and recall 0.95 over
// all, each verdict within 30 s.
func TestIncidents(t *testing.T) {
	paths, err := filepath.Glob("incidents/" + *only + ".txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("no incidents", err)
	}
	parts, formats := map[string]*score{}, map[string]*score{}
	confusion := map[[2]string]int{}
	var all score
	for _, path := range paths {
		c, err := load(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range c.Formats {
			s := judge(t, c, format, confusion)
			for _, to := range []struct {
				of  map[string]*score
				key string
			}{{parts, c.Part}, {formats, format}} {
				if to.of[to.key] == nil {
					to.of[to.key] = &score{}
				}
				to.of[to.key].add(s)
			}
			all.add(s)
		}
	}
	var table strings.Builder
	for _, k := range slices.SortedFunc(maps.Keys(confusion), func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }) {
		fmt.Fprintf(&table, "  %-20s %-20s %4d\n", k[0], k[1], confusion[k])
	}
	t.Logf("%d incidents\n  %-20s %-20s cases\n%s", len(paths), "the facts", "the verdict", &table)
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		t.Logf("%-12s %s", name, formats[name])
	}
	for _, part := range []string{"before", "after", "holdout-1", "holdout-2", "holdout-3", "holdout-4", "holdout-5", "holdout-6"} {
		if parts[part] != nil {
			t.Logf("%-12s %s", part, parts[part])
		}
	}
	t.Logf("%-12s %s", "all", all)
	if *only == "*/*" {
		document(t, len(paths), len(formats), all, confusion)
	}
	if p := float64(all.right) / float64(all.right+all.wrong); p < 0.98 {
		t.Errorf("precision %.3f, less than 0.98", p)
	}
	if r := float64(all.right) / float64(all.right+all.missed); r < 0.95 {
		t.Errorf("recall %.3f, less than 0.95", r)
	}
}

// document compares the table of docs/verdicts.md with this run's, or writes it.
func document(t *testing.T, incidents, formats int, all score, confusion map[[2]string]int) {
	const path, begin, end = "../../docs/verdicts.md", "<!-- incidents: go test ./bench/verdicts -run TestIncidents -update -->\n", "<!-- end -->\n"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	was, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no %s … %s", path, begin, end)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d incidents in %d formats: %s.\n\n| the facts | the verdict | cases |\n|---|---|---|\n", incidents, formats, all)
	for _, k := range slices.SortedFunc(maps.Keys(confusion), func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }) {
		fmt.Fprintf(&b, "| `%s` | `%s` | %d |\n", k[0], k[1], confusion[k])
	}
	switch {
	case *update:
		if err := os.WriteFile(path, []byte(before+begin+b.String()+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	case was != b.String():
		t.Errorf("%s has another table than this run: -update writes it", path)
	}
}

// judge compares the verdicts of a case with those that the facts allow.
func judge(t *testing.T, c *incident, format string, confusion map[[2]string]int) (s score) {
	got := play(t, c, format)
	s.cases = 1
	if len(c.Expect) == 0 {
		s.quiet = 1
		if len(got) == 0 {
			confusion[[2]string{"healthy", "healthy"}]++
		}
	}
	used := make([]bool, len(got))
	for _, e := range c.Expect {
		found := slices.IndexFunc(got, func(m made) bool {
			return m.Verdict == e.Verdict && m.Subject == subject(format, e.Subject) && m.At >= e.From-2*time.Second && m.At <= e.From+within
		})
		if found >= 0 && !used[found] {
			used[found] = true
			s.right++
			confusion[[2]string{e.Verdict, e.Verdict}]++
			continue
		}
		s.missed++
		confusion[[2]string{e.Verdict, "healthy"}]++
		t.Logf("%s/%s in %s: missed %s on %s at %s; made %+v", c.Part, c.Name, format, e.Verdict, e.Subject, e.From, got)
	}
	for i, m := range got {
		if !used[i] {
			s.wrong++
			confusion[[2]string{"healthy", m.Verdict}]++
			t.Logf("%s/%s in %s: false %s on %s at %s: %s", c.Part, c.Name, format, m.Verdict, m.Subject, m.At, m.Evidence)
		}
	}
	return s
}
