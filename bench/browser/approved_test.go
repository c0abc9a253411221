package browser

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"
)

// TestApproved compares the layout of every page, over the demo's transcripts at a fixed time, with the approved one:
// for each visible element its box and its text, and how many shapes a drawing has. Pixels are not compared: how a
// letter is drawn differs between machines. Where texts are as wide as on the machine of the approved files (their
// first line states it), boxes may differ by a pixel, elsewhere by a part of the window. The colors of every sort of
// element are compared in both themes, in approved/colors.txt: these are the same everywhere.
//
//	make browser APPROVE=1                 # writes the approved files again: read the difference
//	UPDATE=1 go test -run TestApproved .   # the same without a build
func TestApproved(t *testing.T) {
	t.Setenv("TZ", "UTC")
	w := known(t)
	b := newTab(t)
	const day = "?from=2024-03-05T00:00:00Z&to=2024-03-06T00:00:00Z"
	demo := w.trace(t, demoSession)
	step := w.step(t, demo, "Edit")
	pages := map[string]string{
		"slow": "/slow" + day, "conversations": "/sessions" + day, "conversation": "/session/" + demoSession, "trace": demo, "trace-step": demo + "?step=" + step,
		"trace-failed": demo + "?only=failed", "step": demo + "/step/" + step, "search": "/search?q=checkout", "boards": "/boards", "cost": "/cost" + day,
		"compare": "/compare" + day, "compare-traces": "/compare?a=" + demoSession + "&b=" + w.session(t, "forecaster"), "panel": "/boards/delegations/7" + day, "changes": "/changes" + day, "now": "/now" + day, "tools": "/tools" + day,
	}
	for _, board := range []string{"delegations", "tools", "tokens", "sessions", "streaming", "trace"} {
		pages["board-"+board] = "/boards/" + board + day
	}
	colors := make(map[string]bool)
	for _, width := range []int64{1440, 390} {
		for name, path := range pages {
			t.Run(fmt.Sprint(name, "-", width), func(t *testing.T) {
				b.setAppearance(t, "light", width, 900)
				b.openStill(t, w.url+path)
				b.shot(t, fmt.Sprintf("approved-%s-%d", name, width))
				approve(t, filepath.Join("approved", fmt.Sprintf("%s-%d.txt", name, width)), eval[[]string](t, b, layout), func(want, got []string) []string {
					return differences(want, got, float64(width))
				})
				if width != 1440 {
					return
				}
				for _, theme := range []string{"light", "dark"} {
					b.setAppearance(t, theme, width, 900) // the page takes the other colors where it is
					for _, c := range eval[[]string](t, b, painted) {
						colors[theme+" "+c] = true
					}
				}
			})
		}
	}
	if !t.Failed() || os.Getenv("UPDATE") != "" {
		approve(t, filepath.Join("approved", "colors.txt"), slices.Sorted(maps.Keys(colors)), missing)
	}
	t.Run("notices", func(t *testing.T) { notices(t, w, b, demo) })
}

// openStill opens a page, and waits until all of it is drawn where it stays.
func (b *tab) openStill(t *testing.T, url string) {
	t.Helper()
	b.open(t, url)
	b.until(t, `document.readyState === "complete" && !document.querySelector("[data-late]") && (!document.getElementById("trace") || document.querySelector("#rows .row button, #rows .row[tabindex], #rows .empty"))`)
	b.until(t, `Array.from(document.querySelectorAll(".plot.drawn")).every(p => Math.abs(p.querySelector(".uplot").clientWidth - p.clientWidth) < 2)`)
	b.unfold(t)
	eval[any](t, b, still)
}

// notices makes changes that the comparison has to find, and one of the fonts that it has to bear.
func notices(t *testing.T, w *world, b *tab, trace string) {
	for _, m := range []struct {
		name, path, style string
		fails             bool
	}{
		{"a panel is hidden", "/boards/delegations", "#panel-7 { display: none }", true},
		{"a panel has moved", "/boards/delegations", ".grid { display: flex; flex-direction: column-reverse }", true},
		{"a column is hidden", trace, ".trace .row .n:last-child { display: none }", true},
		{"the critical path is hidden", trace, "#map { display: none }", true},
		{"other fonts", "/boards/delegations", "body, button, select, input { font-family: \"DejaVu Serif\", serif; letter-spacing: .1px }", false},
		{"larger letters", trace, "body { font-size: 14.4px }", false},
	} {
		b.setAppearance(t, "light", 1440, 900)
		b.openStill(t, w.url+m.path+"?from=2024-03-05T00:00:00Z&to=2024-03-06T00:00:00Z")
		want := eval[[]string](t, b, layout)
		eval[any](t, b, fmt.Sprintf(`(() => { const s = new CSSStyleSheet(); s.replaceSync(%q); document.adoptedStyleSheets = document.adoptedStyleSheets.concat(s); })()`, m.style))
		got := eval[[]string](t, b, layout)
		if bad := differences(want, got, 1440); len(bad) > 0 != m.fails {
			t.Errorf("%s: the comparison finds %d differences: %.600q", m.name, len(bad), bad[:min(len(bad), 3)])
		}
	}
	b.setAppearance(t, "dark", 1440, 900)
	b.openStill(t, w.url+trace)
	want := eval[[]string](t, b, painted)
	eval[any](t, b, `document.documentElement.style.setProperty("--soft", "#444")`)
	if len(missing(want, eval[[]string](t, b, painted))) == 0 {
		t.Error("another color is not noticed")
	}
}

// painted lists the sorts of elements that have a text of their own or a shape, with the colors that they have.
const painted = `(() => {
	const out = new Set(), clear = (c) => /, 0\)$/.test(c) || c === "transparent";
	const paper = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!clear(c)) return c; } return "no paper"; };
	const name = (e) => e.tagName.toLowerCase() + Array.from(e.classList).filter(c => c !== "here").sort().map(c => "." + c).join("");
	for (const e of document.querySelectorAll("body *")) {
		if (e.closest(".uplot, script, noscript, option, select") || !e.checkVisibility()) continue;
		const s = getComputedStyle(e);
		if (/^(rect|path|circle)$/.test(e.tagName)) { out.add(name(e.closest("svg")) + " " + name(e) + " " + (s.fill === "none" ? s.stroke : s.fill)); continue; }
		const text = Array.from(e.childNodes).some(n => n.nodeType === 3 && n.data.trim());
		if (text) out.add(name(e.parentElement) + " " + name(e) + " " + s.color + " on " + paper(e));
	}
	return Array.from(out).sort();
})()`

// still has everything drawn where it stays: elements out of sight as well, whose size is a guess until then. A
// list of options whose markup came in two pieces is as wide as those of the first piece until it is laid out anew.
const still = `(() => { const s = new CSSStyleSheet(); s.replaceSync("* { content-visibility: visible !important; transition: none !important; animation: none !important; }"); document.adoptedStyleSheets = [s];
	for (const e of document.querySelectorAll("select")) { e.style.display = "none"; e.offsetWidth; e.style.display = ""; }
})()`

// layout lists the visible elements, in the order of the page, behind a line with the width of texts. A time of this
// machine's clock is left out.
const layout = `(() => {
	const out = [], wide = (css) => { const c = document.createElement("canvas").getContext("2d"); c.font = css; return c.measureText("The quick brown fox, 0123456789").width.toFixed(1); };
	const font = (e) => { const s = getComputedStyle(e); return s.fontSize + " " + s.fontFamily; };
	out.push("fonts " + wide(font(document.body)) + " " + wide("bold " + font(document.body)) + " " + wide("12px ui-monospace, monospace"));
	for (const e of document.querySelectorAll("body *")) {
		if (e.closest("svg") && e.tagName !== "svg" || e.closest("script, noscript, option, .uplot") || !e.checkVisibility({ contentVisibilityAuto: false })) continue;
		let text = Array.from(e.childNodes).filter(n => n.nodeType === 3).map(n => n.data).join(" ").replace(/\s+/g, " ").trim().slice(0, 80);
		if (e.tagName === "TIME" && new Date(e.dateTime).getFullYear() > 2024) text = "a time";
		if (e.tagName === "svg") text = e.querySelectorAll("rect, path, circle").length + " shapes";
		if (e.tagName === "SELECT") text = Array.from(e.options).map(o => o.text).join(" ").slice(0, 80);
		if (!text && !/^(svg|INPUT|SELECT|BUTTON)$/.test(e.tagName)) continue;
		const r = e.getBoundingClientRect();
		if (!r.width || !r.height) continue;
		const c = e.getAttribute("class");
		out.push([e.tagName.toLowerCase() + (c ? "." + c.trim().replace(/\s+/g, ".") : ""), Math.round(r.left + scrollX), Math.round(r.top + scrollY), Math.round(r.width), Math.round(r.height), text].join(" "));
	}
	return out.length > 300 ? out.slice(0, 300).concat("and " + (out.length - 300) + " more") : out;
})()`

// approve compares lines with the approved ones, or writes them.
func approve(t *testing.T, path string, got []string, differences func(want, got []string) []string) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (UPDATE=1 writes it)", err)
	}
	bad := differences(strings.Split(strings.TrimSuffix(string(b), "\n"), "\n"), got)
	for _, d := range bad[:min(len(bad), 5)] {
		t.Error(d)
	}
	if len(bad) > 5 {
		t.Errorf("%d lines are different", len(bad))
	}
	if len(bad) > 0 {
		t.Error("make browser SHOTS=DIR shows it, and make browser APPROVE=1 approves it")
	}
}

// missing lists the lines that only one of the two has.
func missing(want, got []string) (bad []string) {
	for _, l := range want {
		if !slices.Contains(got, l) {
			bad = append(bad, "approved, and not there: "+l)
		}
	}
	for _, l := range got {
		if !slices.Contains(want, l) {
			bad = append(bad, "not approved: "+l)
		}
	}
	return bad
}

// differences compares two layouts, each behind the line with the width of its texts.
func differences(want, got []string, width float64) (bad []string) {
	same := want[0] == got[0]
	for i := 1; i < max(len(got), len(want)); i++ {
		a, b := "nothing", "nothing"
		if i < len(want) {
			a = want[i]
		}
		if i < len(got) {
			b = got[i]
		}
		if !alike(a, b, same, width) {
			bad = append(bad, fmt.Sprintf("line %d is\n\t%s\nand was approved as\n\t%s", i+1, b, a))
		}
	}
	return bad
}

// alike reports whether two lines have the same element and text in about the same place.
func alike(a, b string, sameFonts bool, width float64) bool {
	if a == b {
		return true
	}
	var names, texts [2]string
	var boxes [2][4]float64 // x, y, width, height
	for i, line := range []string{a, b} {
		n, err := fmt.Sscan(line, &names[i], &boxes[i][0], &boxes[i][1], &boxes[i][2], &boxes[i][3])
		if n != 5 || err != nil {
			return false
		}
		texts[i] = strings.Join(strings.Fields(line)[5:], " ")
	}
	if names[0] != names[1] || texts[0] != texts[1] {
		return false
	}
	// Wider texts move their neighbours, and wrap: everything below moves down.
	near := [4]float64{0.08 * width, 30 + 0.15*boxes[0][1], 0.08 * width, 30 + 0.3*boxes[0][3]}
	if sameFonts {
		near = [4]float64{1, 1, 1, 1}
	}
	for i, n := range near {
		if math.Abs(boxes[0][i]-boxes[1][i]) > n {
			return false
		}
	}
	return true
}

// known is `earshot ui` over the demo's transcripts, which were written on a morning of 2024.
func known(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	base := time.Date(2024, 3, 5, 9, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return base.Add(time.Duration(s * float64(time.Second))) }
	times := template.FuncMap{
		"iso":   func(s float64) string { return at(s).Format("2006-01-02T15:04:05.000Z07:00") },
		"sec":   func(s float64) string { return fmt.Sprint(at(s + 120).Unix()) },
		"naive": func(s float64) string { return at(s).Format("2006-01-02T15:04:05.000000") },
		"unix":  func(s float64) string { return fmt.Sprintf("%.3f", float64(at(s).UnixMilli())/1000) },
	}
	from := filepath.Join(root, "cmd", "earshot", "demo")
	for _, format := range []string{"claude-code", "legion"} {
		err := filepath.WalkDir(filepath.Join(from, format), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			filled, err := template.New(path).Funcs(times).Parse(string(text))
			if err != nil {
				return err
			}
			var b bytes.Buffer
			if err := filled.Execute(&b, nil); err != nil {
				return err
			}
			name, _ := filepath.Rel(from, strings.TrimSuffix(path, ".tmpl"))
			to := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(to, b.Bytes(), 0o600); err != nil {
				return err
			}
			return os.Chtimes(to, at(120), at(120))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	w := &world{config: filepath.Join(dir, "earshot.yaml")}
	text := fmt.Sprintf(`data_dir: %[1]s/data
sources:
  - {name: legion, type: file, format: legion, paths: ["%[1]s/legion/sessions/*/messages.jsonl"]}
  - {name: claude, type: file, format: claude-code, paths: ["%[1]s/claude-code/**/*.jsonl"]}
telemetry: {listen: ""}
log: {level: warn}
`, dir)
	if err := os.WriteFile(w.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	earshot(t, "run", "-c", w.config, "--until-idle", "3s")
	line, err := bufio.NewReader(start(t, "ui", "-c", w.config, "--listen", "127.0.0.1:0")).ReadString('\n')
	if w.url = strings.TrimSpace(line); err != nil || !strings.HasPrefix(w.url, "http://") {
		t.Fatalf("earshot ui printed %q: %v", line, err)
	}
	return w
}

// session is the id of the conversation that has the text in its line of the list.
func (w *world) session(t *testing.T, text string) string {
	t.Helper()
	for line := range strings.Lines(w.read(t, "/sessions")) {
		if found := regexp.MustCompile(`/session/([^"?]+)"`).FindStringSubmatch(line); found != nil && strings.Contains(line, text) {
			return found[1]
		}
	}
	t.Fatalf("no conversation has %s", text)
	return ""
}
