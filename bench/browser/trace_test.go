package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"
)

// read returns a page as it is without a script.
func (w *world) read(t *testing.T, path string) string {
	t.Helper()
	r, err := http.Get(w.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v", path, r.StatusCode, err)
	}
	return string(b)
}

// trace is the address of the first trace of a conversation.
func (w *world) trace(t *testing.T, session string) string {
	t.Helper()
	page := w.read(t, "/session/"+session)
	found := regexp.MustCompile(`/trace/[0-9a-f]{32}`).FindString(page)
	if found == "" {
		t.Fatalf("the conversation %s has no link to a trace:\n%s", session, page)
	}
	return found
}

// step is the id of the first step of a trace with the name.
func (w *world) step(t *testing.T, trace, name string) string {
	t.Helper()
	var answer struct {
		Rows []struct{ ID, T string }
	}
	if err := json.Unmarshal([]byte(w.read(t, trace+"/rows")), &answer); err != nil {
		t.Fatal(err)
	}
	for _, r := range answer.Rows {
		if r.T == name {
			return r.ID
		}
	}
	t.Fatalf("%s has no step %s", trace, name)
	return ""
}

// longTrace reads a trace of ten thousand steps by keyboard and by dragging: a few rows are drawn at any time, and the
// address names the step that is shown.
func longTrace(t *testing.T, w *world, b *tab) {
	rows := `document.querySelectorAll("#rows .row[tabindex]").length` // those of the script
	b.open(t, w.url+w.trace(t, longSession))
	b.until(t, rows+` > 10`)
	t.Logf("%d steps: their page has rows %.0f ms after it was asked for", longSteps, eval[float64](t, b, `performance.now()`))
	b.press(t, "jj\r")
	b.until(t, `location.search.includes("step=") && document.querySelector("#beside .step")`)
	eval[any](t, b, `document.getElementById("rows").scrollTop = 200000`)
	b.until(t, `Array.from(document.querySelectorAll("#rows .row")).some(r => Math.abs(parseFloat(r.style.top) - 200000) < 400)`)
	if n := eval[int](t, b, rows); n > 120 {
		t.Errorf("%d rows are drawn", n)
	}
	// A row that stays in sight is not drawn again, and the rows that come next are there.
	eval[any](t, b, `(window.row = Array.from(document.querySelectorAll("#rows .row")).find(r => parseFloat(r.style.top) > 200100), document.getElementById("rows").scrollTop += 48)`)
	b.until(t, `Array.from(document.querySelectorAll("#rows .row")).some(r => parseFloat(r.style.top) > 200048 + document.getElementById("rows").clientHeight)`)
	if !eval[bool](t, b, `window.row.isConnected`) {
		t.Error("scrolling draws all rows again")
	}
	if n := eval[int](t, b, `performance.getEntriesByType("resource").filter(r => r.name.includes("/rows?")).length`); n > 5 {
		t.Errorf("the script asked for rows %d times", n)
	}
	scrolls(t, b)
	b.press(t, "[")
	b.until(t, `location.search.includes("depth=1") && `+rows+` === 1`)
	b.press(t, "]")
	b.until(t, `!location.search.includes("depth=") && `+rows+` > 10`)
	b.press(t, "f")
	b.until(t, fmt.Sprintf(`location.search.includes("only=failed") && %[1]s >= 5 && %[1]s <= %[2]d`, rows, longSteps/2/oneFails))
	b.press(t, "a")
	b.until(t, `!location.search.includes("only=") && `+rows+` > 10`)
	// Dragging over the map from a quarter to a half zooms.
	eval[any](t, b, `(() => { const m = document.getElementById("map"), r = m.getBoundingClientRect(), y = r.top + 5;
		const send = (to, type, part) => to.dispatchEvent(new PointerEvent(type, {clientX: r.left + r.width * part, clientY: y, bubbles: true, cancelable: true, button: 0}));
		send(m, "pointerdown", 0.25); send(window, "pointermove", 0.4); send(window, "pointerup", 0.5); })()`)
	b.until(t, `/zoom=\d+/.test(location.search) && !document.getElementById("unzoom").hidden && parseFloat(document.getElementById("window").getAttribute("width")) < 260`)
	b.shot(t, "trace-zoomed")
	b.press(t, "0")
	b.until(t, `!location.search.includes("zoom=")`)
	b.press(t, "?")
	b.until(t, `document.getElementById("keys").open`)
	b.shot(t, "trace-keys")
	eval[any](t, b, `document.getElementById("keys").close()`)
	if bad := b.consoleErrors(); len(bad) > 0 {
		t.Errorf("console: %q", bad)
	}
	weight := eval[int](t, b, `performance.getEntriesByType("navigation")[0].decodedBodySize + performance.getEntriesByType("resource").filter(r => r.name.includes("/assets/")).reduce((sum, r) => sum + r.decodedBodySize, 0)`)
	if t.Logf("the page and its assets weigh %d kB", weight/1000); weight > 300_000 {
		t.Errorf("the page weighs %d bytes", weight)
	}
}

// scrolls scrolls ten rows a frame and measures the work of the script in a frame, which has 16 ms and does not depend on the
// length of the trace. Beside the other tests it takes ten times as long as alone, so the limit is one that nobody could overlook.
func scrolls(t *testing.T, b *tab) {
	eval[any](t, b, `(() => {
		const rows = document.getElementById("rows");
		window.frames = []; window.work = [];
		let began, last = performance.now();
		const next = () => { // the callbacks of a frame run in their order: the script draws between two of ours
			requestAnimationFrame(() => { began = performance.now(); frames.push(began - last); last = began; });
			rows.scrollTop += 240;
			rows.dispatchEvent(new Event("scroll"));
			requestAnimationFrame(() => { rows.getBoundingClientRect(); work.push(performance.now() - began); if (work.length < 120) next(); });
		};
		next();
	})()`)
	b.until(t, `window.work.length === 120`)
	frames, work := eval[[]float64](t, b, `window.frames`), eval[[]float64](t, b, `window.work`)
	slices.Sort(frames)
	slices.Sort(work)
	t.Logf("scrolling %d steps: a frame takes %.1f ms, one of twenty %.1f ms; the script and the layout %.1f and %.1f ms of it", longSteps, frames[60], frames[114], work[60], work[114])
	if work[60] > 100 {
		t.Errorf("the script takes %.1f ms of a frame", work[60])
	}
}

// tail watches a conversation go on.
func tail(t *testing.T, w *world, b *tab) {
	const session = "7a110000-0000-4000-8000-000000000001"
	x := &transcript{session: session, at: time.Now().Add(-time.Minute)}
	x.user(0, "Is the tide in?")
	x.assistant(time.Second, "msg_tide_1", "end_turn", map[string]any{"type": "text", "text": "It is **rising**."})
	w.write(t, session, x.lines)
	b.open(t, w.url+"/sessions")
	for deadline := time.Now().Add(time.Minute); !eval[bool](t, b, `document.body.innerText.includes("Is the tide in?")`); b.open(t, w.url+"/sessions") {
		if time.Now().After(deadline) {
			t.Fatal("the conversation does not arrive")
		}
		time.Sleep(200 * time.Millisecond)
	}
	b.open(t, w.url+"/session/"+session)
	b.until(t, `document.body.textContent.includes("rising")`)
	eval[any](t, b, `window.before = true`)
	done := len(x.lines)
	x.at = time.Now()
	x.user(0, "And now?")
	x.assistant(time.Second, "msg_tide_2", "end_turn", map[string]any{"type": "text", "text": "High water."})
	w.write(t, session, x.lines[done:])
	b.until(t, `document.body.innerText.includes("High water.") && document.body.innerText.includes("And now?")`)
	if !eval[bool](t, b, `window.before`) {
		t.Error("the page was loaded again")
	}
	b.shot(t, "tail")
}
