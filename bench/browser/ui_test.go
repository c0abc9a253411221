package browser

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

func TestUI(t *testing.T) {
	w := open(t)
	b := newTab(t)
	rules := axe(t)
	t.Run("pages", func(t *testing.T) { everyPage(t, w, b, rules) })
	t.Run("boards", func(t *testing.T) { everyBoard(t, w, b, rules) })
	t.Run("paint", func(t *testing.T) { paints(t, w, b) })
	t.Run("zoom", func(t *testing.T) { zooms(t, w, b) })
	t.Run("theme", func(t *testing.T) { themeButton(t, w, b) })
	b.setAppearance(t, "light", 1280, 900)
	t.Run("keyboard", func(t *testing.T) { byKeyboard(t, w, b) })
	t.Run("trace", func(t *testing.T) { longTrace(t, w, b) })
	t.Run("tail", func(t *testing.T) { tail(t, w, b) })
	t.Run("live", func(t *testing.T) { live(t, w, b) })
	t.Run("statusCodes", func(t *testing.T) { statusCodes(t, w) })
}

// everyPage visits every page in each appearance: no element overflows the window, no text has
// too little contrast, the console has no errors, and no page takes long.
func everyPage(t *testing.T, w *world, b *tab, rules string) {
	demo, long := w.trace(t, demoSession), w.trace(t, longSession)
	step := w.step(t, demo, "Edit")
	pages := []struct{ name, path, has string }{
		{"slow", "/slow", "without it the delegation would have ended"},
		{"slow-filtered", "/slow?delegate=Explore&from=now-2d&to=now", "delegate: Explore"},
		{"slow-none", "/slow?status=error&agent=nobody", "has all of these filters"},
		{"trace", demo, "critical path"},
		{"trace-step", demo + "?step=" + step, "file_path"},
		{"trace-long", long, "10002 steps"},
		{"step", demo + "/step/" + step, "In its trace"},
		{"search", "/search?q=checkout", "Files in the arguments of calls"},
		{"search-none", "/search?q=zzzz", "No message has"},
		{"conversations", "/sessions", "Flaky checkout test"},
		{"conversations-filtered", "/sessions?from=now-1d&to=now&format=claude-code&agent=claude-code", "agent: claude-code"},
		{"conversations-none", "/sessions?from=now-9d&to=now-8d", "No conversation had messages in the range"},
		{"found", "/sessions?search=quay", "Weigh every crate"},
		{"nothing-found", "/sessions?search=zzzz", "No conversation has"},
		{"conversation", "/session/" + demoSession, "behind the scenes"},
		{"many-steps", "/session/" + longSession, "10001 steps"},
		{"many-steps-further", "/session/" + longSession + "?turn=1&step=9500", "9501 to 10000 of 10001"},
		{"many-steps-failed", "/session/" + longSession + "?turn=1&only=failed", "1 to 5"},
		{"stuck", "/session/" + stuckSession, "its own timeout is 60 s"},
		{"stuck-trace", w.trace(t, stuckSession), "its own timeout is 60 s"},
		{"tools", "/tools", "mcp__garden__water"},
		{"tools-filtered", "/tools?tool=Bash&from=now-1d&to=now", "tool: Bash"},
		{"boards", "/boards", "Who delegates to whom"},
		{"panel", "/boards/delegations/7", "Rows"},
		{"board-compared", "/boards/delegations?from=now-3h&to=now", "before:"},
		{"now", "/now", "1 stuck"},
		{"now-filtered", "/now?from=now-6h&to=now&tool=Bash", "tool: Bash"},
		{"cost", "/cost", "By project"},
		{"changes", "/changes", "false alarm in 30 days"}, // by the hour there are enough runs behind midnight to compare, or not
		{"compare", "/compare", "Durations of work that has ended"},
		{"compare-traces", "/compare?a=" + demoSession + "&b=" + stuckSession, "first difference"},
	}
	b.open(t, w.url+"/now")
	b.until(t, `document.body.innerText.includes("1 stuck")`) // the sidecar has read it, and has notified the page
	for _, scheme := range []string{"light", "dark"} {
		for _, size := range [][2]int64{{1440, 900}, {1000, 900}, {820, 1180}, {390, 844}} {
			if scheme == "dark" && size[0] < 1440 && os.Getenv("SHOTS") == "" {
				continue // the boxes are those of the light, the colors those of the wide window: only a person looks
			}
			b.setAppearance(t, scheme, size[0], size[1])
			for n, p := range pages {
				if size[0] == 820 && n >= 11 {
					break
				}
				if size[0] == 1000 && strings.Contains(p.path, "/trace/") {
					continue // nothing of it changes between 820 and 1440
				}
				name := fmt.Sprintf("%s-%s-%d", p.name, scheme, size[0])
				began := time.Now()
				b.open(t, w.url+p.path)
				took, paint := time.Since(began), b.firstPaint(t)
				b.unfold(t)
				// A turn has no text before the frame that follows the load (content-visibility: auto).
				b.until(t, fmt.Sprintf(`document.body.innerText.includes(%q)`, p.has))
				b.shot(t, name)
				if out := eval[[]string](t, b, overflowing); len(out) > 0 {
					t.Errorf("%s: overflow the window: %q", name, out)
				}
				if squeezed := eval[[]string](t, b, squeezed); len(squeezed) > 0 {
					t.Errorf("%s: a person cannot read %q", name, squeezed)
				}
				if pale := eval[[]string](t, b, lowContrast); len(pale) > 0 {
					t.Errorf("%s: hard to read: %q", name, pale)
				}
				if p.name != "many-steps" && p.name != "many-steps-further" && size[0] > 1000 { // these have the same elements, 500 times
					if bad := b.violations(t, rules); len(bad) > 0 {
						t.Errorf("%s: %q", name, bad)
					}
				}
				if bad := b.consoleErrors(); len(bad) > 0 {
					t.Errorf("%s: console: %q", name, bad)
				}
				if limit := 15 * time.Second; took > limit { // about one on an idle machine
					t.Errorf("%s: took %s, want %s", name, took, limit)
				}
				t.Logf("%-28s first paint %4.0f ms, answer %4.0f ms, all %s", name, paint[0], paint[1], took.Round(time.Millisecond))
			}
		}
	}
}

// overflowing lists the elements that make the page scroll sideways.
const overflowing = `(() => {
	const wide = document.documentElement.clientWidth;
	if (document.documentElement.scrollWidth <= wide) return [];
	return Array.from(document.querySelectorAll("body *")).filter(e => e.getBoundingClientRect().right > wide + 1).slice(0, 5).map(e => e.outerHTML.slice(0, 120));
})()`

// squeezed lists the reasons of verdicts that have less than two thirds of the window, and the titles of rows of which fewer
// than a dozen letters are seen, those of steps as if they were the deepest.
const squeezed = `(() => {
	const wide = document.documentElement.clientWidth, room = (e) => e.getBoundingClientRect().width;
	const step = Array.from(document.querySelectorAll(".trace .row .what")).slice(0, 1), depth = step[0]?.dataset.depth;
	if (depth) step[0].dataset.depth = 12;
	const left = step.filter(e => room(e) - parseFloat(getComputedStyle(e).paddingLeft) < 90);
	if (depth) step[0].dataset.depth = depth;
	return left.concat(Array.from(document.querySelectorAll(".because td")).filter(e => room(e) < wide * 2 / 3))
		.concat(Array.from(document.querySelectorAll("td.t > a")).filter(e => e.checkVisibility() && room(e) > room(e.parentElement) && room(e.parentElement) < 100))
		.slice(0, 5).map(e => e.textContent.slice(0, 60));
})()`

// lowContrast lists texts whose contrast is less than 4.5 to 1, the AA of WCAG.
const lowContrast = `(() => {
	const rgb = (c) => (c.match(/[\d.]+/g) || []).map(Number);
	const light = (c) => { const [r, g, b] = rgb(c).slice(0, 3).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const paper = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (rgb(c)[3] !== 0) return c; } return "rgb(255,255,255)"; };
	const seen = {};
	for (const e of document.querySelectorAll("body *")) {
		if (!Array.from(e.childNodes).some(n => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility()) continue;
		const pair = [light(getComputedStyle(e).color), light(paper(e))].sort((a, b) => a - b);
		if ((pair[1] + 0.05) / (pair[0] + 0.05) < 4.5) seen[e.tagName + "." + e.className] = e.textContent.trim().slice(0, 40);
	}
	return Object.entries(seen).map(String);
})()`

// byKeyboard navigates without a mouse.
func byKeyboard(t *testing.T, w *world, b *tab) {
	at := func(path string) string {
		return fmt.Sprintf(`document.readyState === "complete" && location.pathname + location.search === %q`, path)
	}
	b.open(t, w.url+"/")
	b.press(t, "/")
	b.until(t, `document.activeElement.type === "search"`)
	b.press(t, "checkout\r")
	b.until(t, at("/search?q=checkout"))
	b.open(t, w.url+"/sessions?search=checkout")
	b.press(t, "jjk")
	b.until(t, `document.querySelectorAll("tr.here").length === 1 && document.activeElement.matches("tr.here:first-child")`)
	b.press(t, "\r")
	b.until(t, at("/session/"+demoSession))
	b.press(t, "j\r")
	b.until(t, `document.querySelector("article.here details.inside").open`)
	b.press(t, "jj\r") // the second step, a tool with arguments
	b.until(t, `document.querySelector("li.here details").open && document.querySelector("li.here pre").checkVisibility()`)
	b.shot(t, "keyboard")
	b.press(t, "e")
	b.until(t, `!document.querySelector("details.inside").open`)
	for n, page := range eval[[]string](t, b, `Array.from(document.querySelectorAll("header nav a")).map(a => a.pathname)`) {
		b.press(t, fmt.Sprint(n+1))
		b.until(t, at(page))
	}
	b.press(t, "u")
	b.until(t, at("/"))
	// The browser's own keyboard focus is visible.
	b.press(t, "\t\t")
	b.until(t, `getComputedStyle(document.activeElement).outlineStyle === "solid"`)
	if bad := b.consoleErrors(); len(bad) > 0 {
		t.Errorf("console: %q", bad)
	}
}

// themeButton changes the colors and leads back to the same page.
func themeButton(t *testing.T, w *world, b *tab) {
	b.setAppearance(t, "light", 1280, 900)
	b.open(t, w.url+"/tools?from=now-1d&to=now")
	paper := `getComputedStyle(document.body).backgroundColor`
	was := eval[string](t, b, paper)
	for _, want := range []string{"light", "dark", "auto"} {
		eval[any](t, b, `document.querySelector(".theme button").click()`)
		b.until(t, fmt.Sprintf(`document.readyState === "complete" && location.pathname + location.search === "/tools?from=now-1d&to=now" && document.querySelector(".theme button").textContent.includes(%q)`, want))
		if got := eval[string](t, b, paper); (got != was) != (want == "dark") {
			t.Errorf("%s has the paper %s", want, got)
		}
	}
}

// live watches a page while an agent writes a message.
func live(t *testing.T, w *world, b *tab) {
	b.open(t, w.url+"/now")
	b.until(t, `document.querySelector("[data-live] table")`)
	eval[any](t, b, `window.before = true`)
	const session = "90110000-0000-4000-8000-000000000001"
	w.write(t, session, pending(session, time.Now(), time.Hour))
	b.until(t, `Array.from(document.querySelectorAll("a")).some(a => a.pathname === "/session/`+session+`")`)
	if !eval[bool](t, b, `window.before`) {
		t.Error("the page was loaded again")
	}
	if bad := b.consoleErrors(); len(bad) > 0 {
		t.Errorf("console: %q", bad)
	}
}

// statusCodes requests pages that exist and pages that do not.
func statusCodes(t *testing.T, w *world) {
	for path, want := range map[string]int{"/": 200, "/trace/nope": 404, "/trace/nope/rows": 404, "/elsewhere": 404, "/session/" + longSession + "?turn=99": 200} {
		r, err := http.Get(w.url + path)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Body.Close(); err != nil {
			t.Error(err)
		}
		if r.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, r.StatusCode, want)
		}
	}
}

// unfold opens the work behind the scenes.
func (b *tab) unfold(t *testing.T) {
	t.Helper()
	eval[any](t, b, `document.querySelectorAll("details.inside").forEach(d => d.open = true)`)
}
